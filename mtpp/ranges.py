"""Ranges of numbers that options take and documents hold, where several modules ask for them."""

from __future__ import annotations

MOST_STAGES = 1_000_000
"""A plan lists every stage, so their number has to have some limit."""

MOST_SEED = 2**63 - 1

MOST_DEPTH = 1000
"""Names in the path of a module."""
