"""Presets of systems, ``mtpp-systems`` version 1: figures of each, and their sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpp.machine.presets import figures_of_table, preset_tables


def systems_document(names: Sequence[str], *, sources: bool) -> dict[str, Any]:
    """Return the figures of presets as JSON takes them: rates in FLOP/s and bytes/s, sizes in bytes.

    Parameters
    ----------
    sources
        Whether to say where each figure comes from.
    """
    return {"format": "mtpp-systems", "version": 1, "systems": [_system(name, sources=sources) for name in names]}


def _system(name: str, *, sources: bool) -> dict[str, Any]:
    table = preset_tables()[name]
    figures = figures_of_table(table, name)
    found: dict[str, Any] = {
        "name": name,
        "description": table["description"],
        "precision": table.get("precision"),
        "peak_flops_per_s": figures["peak_flops_per_s"],
        "memory_bandwidth_bytes_per_s": figures["memory_bandwidth_bytes_per_s"],
        "bandwidth_bytes_per_s": int(figures["bandwidth_bytes_per_s"]),
        "fast_memory_bytes": figures.get("fast_memory_bytes"),
    }
    if sources:
        found["sources"] = {KEYS[key]: source for key, source in table["sources"].items()}
    return found


KEYS = {
    "peak_flops": "peak_flops_per_s",
    "memory_bandwidth": "memory_bandwidth_bytes_per_s",
    "bandwidth": "bandwidth_bytes_per_s",
    "fast_memory": "fast_memory_bytes",
}
"""Keys of presets, and those of their figures in documents."""
