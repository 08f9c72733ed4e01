"""Rules of engines compared, ``mtpp-layout-comparison`` version 1, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum, log
from typing import Any

FORMAT = "mtpp-layout-comparison"
VERSION = 1


def summary_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the geometric mean of the ratios of each engine on each machine, and the number of models behind it.

    Layouts that do not fit, that leave layers to a CPU or that an engine refuses have no ratio, and are counted.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["engine"], row["machine"], row["devices"]), []).append(row)
    return [_mean(key, group) for key, group in groups.items()]


def _mean(key: tuple[Any, ...], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    engine, machine, devices = key
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    return {
        "engine": engine,
        "machine": machine,
        "devices": devices,
        "models": len(rows),
        "compared": len(ratios),
        "geomean_ratio": exp(fsum(map(log, ratios)) / len(ratios)) if ratios else None,
        "largest_ratio": max(ratios, default=None),
        "refused": sum(row["refused"] is not None for row in rows),
        "too_large": sum(row["fits"] is False for row in rows),
        "untimed": sum(row["comparable"] is False and row["fits"] is True for row in rows),
    }
