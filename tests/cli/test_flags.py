"""Every parameter that a message may name has a flag, or an argument, on the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
from module_graph import parsed
from processes import ROOT

from mtpp.cli.flags import flag_of
from mtpp.cli.main import root

ROOMS = ("api", "formats", "mtpp", "runtime", "solvers", "views")

IN_PYTHON_ALONE = {
    **dict.fromkeys(("device", "group", "loss", "modules", "rank"), "a training loop of one's own"),
    "args": "a function says with what its module is exported",
    "kwargs": "as args",
    "name": "of an op of a plan that was made",
    "observer": "the terminal",
    "reading": "options say how files are read",
    "recipe": "a subcommand of generate",
}
"""Parameters that no command has, and what is there in their place: functions check them where they are called."""


def _commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found)


def _said() -> set[str]:
    """Return what a user can write or sees in the usage: flags, and names of arguments."""
    parameters = [parameter for command in _commands(root) for parameter in command.params]
    flags = {flag for one in parameters if isinstance(one, click.Option) for flag in one.opts + one.secondary_opts}
    arguments = {one.make_metavar(click.Context(root)) for one in parameters if isinstance(one, click.Argument)}
    return flags | {name.strip("[]").removesuffix("...") for name in arguments}


def _named() -> dict[str, set[str]]:
    """Return the parameters that errors and texts name, with the files that do."""
    found: dict[str, set[str]] = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for name in _names_in(parsed(path)):
                found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


def _names_in(tree: ast.AST) -> Iterator[str]:
    notes = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            notes.add(id(node.value))
        if isinstance(node, ast.keyword) and node.arg == "parameter":
            yield from (one.value for one in ast.walk(node.value) if _is_name(one))
        if isinstance(node, ast.arguments):
            every = [*node.posonlyargs, *node.args]
            defaults = [*zip(every[len(every) - len(node.defaults) :], node.defaults, strict=True)]
            defaults += [(one, value) for one, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value]
            yield from (value.value for one, value in defaults if one.arg == "parameter" and _is_name(value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield from re.findall("‹([a-z_]+)›", node.value)


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()


def test_parameters_have_flags() -> None:
    """No message on the command line shows a name that only Python knows; what has no flag is named by somebody."""
    named, said = _named(), _said()
    assert {"k", "dims", "bounds", "memory_limit", "time_limit_s"} <= set(named)  # in calls, in defaults, in texts
    assert not set(IN_PYTHON_ALONE) - set(named)
    without = {name: where for name, where in named.items() if flag_of(name) not in said}
    assert {name: where for name, where in without.items() if name not in IN_PYTHON_ALONE} == {}
