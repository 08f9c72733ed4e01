"""Shape of a graph as ``mtpp inspect`` shows it: its composition in series and parallel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LISTED = 3


def structure_text(structure: Mapping[str, Any]) -> str:
    """Return the composition of a graph as one line."""
    blocks, widest, cores = structure["blocks"], structure["widest"], structure["cores"]
    shape = ""
    if blocks:
        nested = f", {structure['depth']} deep" if structure["depth"] > 1 else ""
        shape = f"{blocks:,} block{'s' if blocks > 1 else ''}{nested}, at most {widest:,} branches"
    if not cores:
        return f"series-parallel: {shape}" if shape else "a chain"
    *others, smallest = [f"{core['ops']:,}" for core in cores[:_LISTED]]
    if len(cores) > _LISTED:
        listed = ", ".join([*others, smallest, "…"])
    else:
        listed = f"{', '.join(others)} and {smallest}" if others else smallest
    ends = f"{cores[0]['after'] or 'the inputs'} … {cores[0]['before'] or 'the outputs'}"
    which = "; the largest" if len(cores) > 1 else ""
    around = f"{len(cores):,} core{'s' if len(cores) > 1 else ''} ({listed} ops{which}: {ends})"
    return f"series-parallel around {around}" + (f"; {shape}" if shape else "")
