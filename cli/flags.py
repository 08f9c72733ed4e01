"""Flags of the command line, by the names that parameters have in Python."""

from __future__ import annotations

_OTHERS = {
    "adapters": "--with",
    "auto_dims": "--dims",
    "commands": "--for",
    "compare": "--no-compare",
    "data_parallel": "--no-data-parallel",
    "dense": "--branches",
    "dims": "--dim",
    "folder": "-o",
    "form": "--emit",
    "from_format": "--from",
    "imports": "--import",
    "k": "-k",
    "listing": "FILE",
    "models": "MODEL",
    "n": "-n",
    "name": "NAME",
    "open_page": "--open",
    "output_format": "--format",
    "path": "-o",
    "paths": "MODEL",
    "pipeline": "FILE",
    "plan": "PLAN",
    "recompute": "--no-recompute",
    "tensor_parallel": "--no-tensor-parallel",
    "shown_as": "--as",
    "time_limit_s": "--time-limit",
    "total_time_limit_s": "--total-time-limit",
}
"""Parameters whose flags are not their names with dashes, or that are arguments."""


def flag_of(parameter: str) -> str:
    """Return the flag that sets a parameter of :mod:`mtpp.api`."""
    return _OTHERS.get(parameter) or f"--{parameter.replace('_', '-')}"
