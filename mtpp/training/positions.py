"""Positions of layers and ops in a model's file, and their places along the line that a planner cuts, as two types.

Both are integers from 0 on. A file may list its ops in any order; along a line each op stands behind all that it reads
from. An order of one line's places is no order of the file's positions.
"""

from __future__ import annotations

from typing import NewType

FilePosition = NewType("FilePosition", int)
"""Index of a layer or op among those of its model, as the file lists them."""

LinePlace = NewType("LinePlace", int)
"""Index of an op along a line: one topological order of a model."""
