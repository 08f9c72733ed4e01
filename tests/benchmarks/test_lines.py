"""Lines of code by kind."""

from __future__ import annotations

from benchmarks.lines import Lines, lines_of

TEXT = '''"""A module."""

import sys
from a import (
    b,
)

LIMIT = 4
"""Of something."""


def f(x):
    """Do it.

    In two steps.
    """
    y = b(x)

    return y  # done
'''


def test_every_line_is_of_one_kind() -> None:
    """Blank lines of a body belong to it; texts below constants are docstrings."""
    assert lines_of(TEXT) == Lines(files=1, lines=19, bodies=3, docstrings=6, imports=4, blank=4)
