"""Text for terminals with its colours taken away."""

from __future__ import annotations

import re

_STYLE = re.compile("\x1b\\[[0-9;]*m")


def colourless(text: str) -> str:
    """Return *text* without the escape sequences that set colours and weights."""
    return _STYLE.sub("", text)
