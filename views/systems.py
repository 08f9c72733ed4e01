"""Table of the presets of systems, or of the figures of one with their sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mtpp.units import exact_bytes, format_bandwidth, format_quantity
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table, table_of_records
from mtpp.views.terminal import Medium

_NAMES = {
    "peak_flops_per_s": "peak",
    "fast_memory_bytes": "memory",
    "memory_bandwidth_bytes_per_s": "memory bandwidth",
    "bandwidth_bytes_per_s": "link",
}
"""Figures of a system in the order shown, and what columns call them."""

_NOTES = (
    "Peaks are of dense arithmetic and are not reached: times are lower estimates.",
    "Links are one way; `mtpp systems NAME` says where each figure comes from.",
)


@view
def systems_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a table with a row for each system; of one whose sources are known, a row for each of its figures."""
    rows = document["systems"]
    if medium.form == "csv":
        plain = [{key: value for key, value in row.items() if key != "sources"} for row in rows]
        return [table_of_records(plain)]
    if "sources" in rows[0]:
        return [_one(rows[0])]
    peak, *others = _NAMES.values()
    columns = [Column("system", left=True), Column(peak), Column("of", left=True), *map(Column, others)]
    cells = []
    for row in rows:
        rate, *rest = (_figure(row, key) for key in _NAMES)
        cells.append([row["name"], rate, row["precision"], *rest])
    return [Table("", columns, cells, notes=_NOTES)]


def _one(row: Mapping[str, Any]) -> Table:
    """Return the figures of one system with their sources."""
    lines = [
        (name, f"{_figure(row, key)}{_of(row, key)}: {row['sources'][key]}")
        for key, name in _NAMES.items()
        if row[key] is not None
    ]
    return Table(f"{row['name']}: {row['description']}", figures=lines)


def _of(row: Mapping[str, Any], key: str) -> str:
    return f" of {row['precision']}" if key == "peak_flops_per_s" and row["precision"] else ""


def _figure(row: Mapping[str, Any], key: str) -> str | None:
    """Write a figure of a system with its unit: ``312 TFLOP/s``, ``4 TOP/s``, ``80 GB``; None where there is none."""
    value = row[key]
    if value is None:
        return None
    if key == "peak_flops_per_s":
        return format_quantity(value, "OP/s" if str(row["precision"]).startswith("INT") else "FLOP/s")
    if key == "fast_memory_bytes":
        return re.sub("([A-Za-z])", r" \1", exact_bytes(value), count=1)
    return format_bandwidth(value)
