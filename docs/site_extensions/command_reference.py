"""Options in the reference of commands: what an option defaults to, and what it may be, in its own sentence."""

from __future__ import annotations

import re
from typing import Any

from click import Context, Option
from sphinx.application import Sphinx

_DEFAULT = re.compile(r"^\s*:default: ``(.*)``$")
_CHOICES = re.compile(r"^\s*:options: (.*)$")
_REQUIRED = "**Required**"
_OPTION = re.compile(r"^\.\. option:: ")


def _tidied(lines: list[str]) -> list[str]:
    """Return the lines of one option with its fields in words."""
    kept, told = [], []
    for line in lines:
        default, choices = _DEFAULT.match(line), _CHOICES.match(line)
        if choices:
            told.append("One of " + ", ".join(f"``{one.strip()}``" for one in choices[1].split("|")) + ".")
        elif default:
            value = _switch(lines[0], default[1].strip("'"))
            told.append(f"Default: ``{value}``.")
        else:
            kept.append(line)
    if not told:
        return kept
    last = max(i for i, line in enumerate(kept) if line.strip())
    if last == 0:
        return [kept[0], "", f"    {' '.join(told)}", *kept[1:]]
    return [*kept[:last], f"{kept[last]} {' '.join(told)}", *kept[last + 1 :]]


def _switch(option: str, default: str) -> str:
    """Return the one of two names of an option, one for yes and one for no, that its default is."""
    names = _OPTION.sub("", option).split(", ")
    if default not in ("True", "False") or len(names) != 2:
        return default
    return names[default == "False"]


def _filled(context: Context, lines: list[str]) -> list[str]:
    """Fill in what the help of an option lists once it is asked for: names of formats, for ``{}``."""
    text = "\n".join(lines)
    for option in context.command.params:
        if isinstance(option, Option) and "{}" in (option.help or ""):
            record = option.get_help_record(context)
            before, after = str(option.help).split("{}", 1)
            if record is not None:
                names = record[1].removeprefix(before).partition(after[:8])[0]
                text = text.replace(f"{before}{{}}", f"{before}{names}")
    return text.split("\n")


def _plain(line: str) -> str:
    """Return a line of help whose asterisks are asterisks, not marks of emphasis."""
    if "``" in line or _OPTION.match(line):
        return line
    required, mark, rest = line.partition(_REQUIRED)
    return required + mark + rest.replace("*", r"\*") if mark else line.replace("*", r"\*")


def _process_options(app: Sphinx, context: Context, lines: list[str]) -> None:
    if not lines:
        return  # a heading stands above whatever there is, empty lines as well
    lines[:] = map(_plain, _filled(context, lines))
    starts = [i for i, line in enumerate(lines) if _OPTION.match(line)]
    if starts:
        found = lines[: starts[0]]
        for begin, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            found += _tidied(lines[begin:end])
        lines[:] = found


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to sphinx-click."""
    app.connect("sphinx-click-process-options", _process_options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
