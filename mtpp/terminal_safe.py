"""Text out of files, made safe to show: names in a graph may hold what a terminal takes for orders."""

from __future__ import annotations

import re
import shlex

_COLOUR = "\x1b\\[[0-9;]*m"
_INVISIBLE = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters, those that turn the direction of writing, other ends of lines, and halves of characters."""

_UNSAFE = re.compile(_INVISIBLE)
_UNSAFE_IN_TABLES = re.compile(f"{_COLOUR}|(?!\n){_INVISIBLE}")


def terminal_safe(text: str) -> str:
    r"""Return *text* with what no terminal should be sent written as Python escapes it, ``\x1b`` for example."""
    return text if text.isprintable() else _UNSAFE.sub(_escaped, text)


def shell_word(text: str) -> str:
    """Return *text* as a POSIX shell takes it for one word; what cannot be seen as escapes of bash, zsh and ksh."""
    if text.isprintable():
        return shlex.quote(text)
    plain = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_UNSAFE.sub(_escaped, plain)}'"


class StyledText(str):
    """Text with colours of its own, in which names are safe already; of other text a terminal takes no colours."""

    def __add__(self, other: str) -> str:
        """Join with more; what is added to without colours of its own loses them on a terminal."""
        joined = super().__add__(other)
        return StyledText(joined) if isinstance(other, StyledText) else joined


def terminal_safe_lines(text: str) -> str:
    """Return *text* as :func:`terminal_safe` does, with its ends of lines; colours stay in styled text alone."""
    if isinstance(text, StyledText):
        return terminal_safe_table(text)
    return "\n".join(map(terminal_safe, text.split("\n")))


def terminal_safe_table(text: str) -> str:
    """Return the text of a table likewise; ends of lines and colours, which are its own, stay."""
    return _UNSAFE_IN_TABLES.sub(lambda found: found[0] if found[0].endswith("m") else _escaped(found), text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
