"""Text out of files, made safe to show: names in a graph may hold what a terminal takes for orders."""

from __future__ import annotations

import re

_COLOUR = "\x1b\\[[0-9;]*m"
_INVISIBLE = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters, those that turn the direction of writing, other ends of lines, and halves of characters."""

_UNSAFE = re.compile(_INVISIBLE)
_UNSAFE_IN_TABLES = re.compile(f"{_COLOUR}|(?!\n){_INVISIBLE}")


def terminal_safe(text: str) -> str:
    r"""Return *text* with what no terminal should be sent written as Python escapes it, ``\x1b`` for example."""
    return text if text.isprintable() else _UNSAFE.sub(_escaped, text)


def terminal_safe_table(text: str) -> str:
    """Return the text of a table likewise; ends of lines and colours, which are its own, stay."""
    return _UNSAFE_IN_TABLES.sub(lambda found: found[0] if found[0].endswith("m") else _escaped(found), text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
