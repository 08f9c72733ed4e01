"""Flags of every parameter that a message may name, and their completion in shells."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from module_graph import parsed
from processes import ROOT, environment, refused, run
from shells import after_tabs, bash_replies, fish_completions

from mtpp.cli.flags import flag_of
from mtpp.cli.main import COMMANDS, root
from mtpp.cli.terminal.completing import rejoined

ROOMS = ("api", "formats", "mtpp", "runtime", "solvers", "views")

IN_PYTHON_ALONE = {
    **dict.fromkeys(("device", "group", "loss", "modules", "rank"), "a training loop of one's own"),
    "args": "a function says with what its module is exported",
    "kwargs": "as args",
    "layout": "layouts of engines are read and written in Python",
    "max_memory": "maps of modules to devices are made in Python",
    "name": "of an op of a plan that was made",
    "observer": "the terminal",
    "place": "a key of machine files",
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


SHELLS = ("bash", "zsh", "fish")
LINES = {
    "mtpp part": "mtpp partition ",
    "mtpp partition mod": "mtpp partition model.onnx ",
    "mtpp partition model.onnx --max-b": "mtpp partition model.onnx --max-bottleneck ",
    "mtpp partition model.onnx --format mark": "mtpp partition model.onnx --format markdown ",
    "mtpp partition --algorithm series": "mtpp partition --algorithm series-parallel ",
    "mtpp partition --system lap": "mtpp partition --system laptop-cpu ",
    "mtpp partition --system my": "mtpp partition --system my.toml ",
    "mtpp compare . --algorithms auto,anneal,br": "mtpp compare . --algorithms auto,anneal,brkga ",
    "mtpp generate transformer --kind dec": "mtpp generate transformer --kind decoder ",
    "mtpp verify sub": "mtpp verify subfolder/",
    "mtpp partition --dim batch=1 --format=js": "mtpp partition --dim batch=1 --format=json ",
    "mtpp partition --dim batch=1 mod": "mtpp partition --dim batch=1 model.onnx ",
}
"""What is typed before the TAB, and what stands there after it."""

needs = {name: pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here") for name in SHELLS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a model, a system and a folder in it."""
    (tmp_path / "model.onnx").touch()
    (tmp_path / "my.toml").touch()
    (tmp_path / "subfolder").mkdir()
    return tmp_path


@pytest.mark.parametrize("shell", [pytest.param(name, marks=needs[name]) for name in ("bash", "zsh")])
def test_a_tab_completes_the_word(shell: str, folder: Path) -> None:
    """Commands, options, their values, presets, files and folders, at the prompt of a real shell."""
    completed = [line.rstrip(" /") for line in after_tabs(shell, list(LINES), folder)]
    assert completed == [line.rstrip(" /") for line in LINES.values()]


@needs["fish"]
@pytest.mark.parametrize("typed", LINES)
def test_fish_offers_the_word(typed: str, folder: Path) -> None:
    """The same words in fish, which says what it would offer."""
    assert LINES[typed].split()[-1] in [word.replace("./", "") for word in fish_completions(typed, folder)]


@needs["bash"]
def test_bash_is_offered_all(folder: Path) -> None:
    """Every command for an empty word; every choice of an option; what is left of a list; files for the rest."""
    assert bash_replies(["mtpp", ""], folder) == list(COMMANDS)
    assert bash_replies(["mtpp", "partition", "m", "--format", "="], folder) == ["table", "json", "csv", "markdown"]
    assert bash_replies(["mtpp", "completion", ""], folder) == list(SHELLS)
    assert bash_replies(["mtpp", "certify", "--bounds", "node,no"], folder) == ["node,node-convex"]
    assert bash_replies(["mtpp", "warmup", "--for", "partition,v"], folder) == ["partition,verify"]
    assert bash_replies(["mtpp", "verify", ""], folder) == ["default"]


def test_words_are_put_together() -> None:
    """What bash breaks at = and : is whole again; other words stay as they are."""
    broken = ["partition", "--dim", "batch", "=", "1", "--from", "torch", "a.b", ":", "f", "--format", "=", "js"]
    assert rejoined(broken) == ["partition", "--dim", "batch=1", "--from", "torch", "a.b:f", "--format=js"]
    assert rejoined(["--format", "="]) == ["--format="]
    assert rejoined(["a", "", "b"]) == ["a", "", "b"]


def test_a_completion_imports_no_solver_and_no_other_command() -> None:
    """A TAB costs the start of Python and click: names stand in tables."""
    code = (
        "import sys\nfrom mtpp.cli.main import root\nfrom mtpp.cli.terminal.completing import script\n"
        "from click.shell_completion import BashComplete\n"
        "complete = BashComplete(root, {}, 'mtpp', '_MTPP_COMPLETE').get_completions\n"
        "assert len(complete([], '')) > 10\n"
        "assert 'slice' in [item.value for item in complete(['partition', '--algorithm'], 's')]\n"
        "assert 'onnx' in [item.value for item in complete(['partition', '--from'], '')]\n"
        "late = ('numpy', 'numba', 'onnx', 'networkx', 'rich')\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in late]\n"
        "commands = [name for name in sys.modules if name in ('mtpp.cli.plan', 'mtpp.cli.run', 'mtpp.cli.generate')]\n"
        "sys.exit(f'{loaded} {commands}' if loaded or commands else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_needs_no_shell_to_be_printed(shell: str) -> None:
    """It may be written while an image is built that has none of them; another shell is refused in one line."""
    assert "_MTPP_COMPLETE" in run("completion", shell).stdout
    refused("completion", "tcsh")
