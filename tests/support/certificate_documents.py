"""Rows and tables of certificates: documents put together from the oracles alone, and rows made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import oracles
from plan_documents import SHA256, reread, simple_bound

from mtpp.inference.certificate import LowerBound
from mtpp.inference.certificate_table import BoundFigure, CertificateRow
from mtpp.inference.graph import CostGraph
from mtpp.machine.device import Device
from mtpp.machine.presets import load_device


def certificate_row(
    graph: CostGraph,
    system: Device,
    k: int,
    assignment: Sequence[int] | None,
    *,
    path: str = "model.json",
    sha256: str = SHA256,
) -> dict[str, Any]:
    """Return the row of an assignment op → stage with the simple bound; without one, the row of a bound alone."""
    ticks = oracles.to_ticks(graph, system, k)
    bound = simple_bound(ticks.work, graph.op_names, k)
    value = bound["value"]
    row: dict[str, Any] = {
        "model": graph.name,
        "path": path,
        "sha256": sha256,
        "dims": {},
        "ops": graph.op_count,
        "tensors": graph.tensor_count,
        "time_unit": graph.time_unit,
        "ticks_per_unit": ticks.per_unit,
        "system": system.to_document(),
        "k": k,
        "lower": value,
        "lower_method": bound["method"],
        "tier": bound["tier"],
        "lower_proof": bound["proof"],
    }
    if assignment is not None:
        upper = oracles.bottleneck(graph, system, assignment, k)
        row |= {
            "upper": upper,
            "upper_algorithm": "anneal",
            "ratio": upper / value if value else (1.0 if upper == 0 else None),
            "optimal": upper == value,
            "assignment": {name: assignment[v] for v, name in enumerate(graph.op_names)},
        }
    return row | {
        "bounds": {"simple": value, "bottleneck": None},
        "solved": ["simple"],
        "seconds": {"partition": 0.25, "simple": 0.0, "bottleneck": 1.5, "total": 2},
        "stopped": "finished",
    }


def table(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the table of some rows, as read back from JSON."""
    document: dict[str, Any] = reread(table_to_write(rows))
    return document


def table_to_write(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the table of some rows, with floats."""
    summary = [_entry(k, [row for row in rows if row["k"] == k]) for k in sorted({row["k"] for row in rows})]
    return {"format": "mtpp-certificates", "version": 1, "rows": list(rows), "summary": summary}


def _entry(k: int, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counted = [row for row in rows if row["bounds"]["simple"]]
    with_upper = [row for row in counted if "upper" in row]
    names = list(dict.fromkeys(name for row in counted for name in row["bounds"]))
    bounds, over = {}, {}
    for i, name in enumerate(names if with_upper else ()):
        best = [max(row["bounds"].get(one) or 0 for one in names[: i + 1]) for row in with_upper]
        bounds[name] = mean([row["upper"] / value for row, value in zip(with_upper, best, strict=True)])
    for name in names[1:]:
        tried = [row for row in counted if name in row["bounds"]]
        ratios = [(row["bounds"][name] or row["bounds"]["simple"]) / row["bounds"]["simple"] for row in tried]
        solved = sum(name in row["solved"] for row in tried)
        over[name] = {"geomean": mean(ratios), "cells": len(tried), "solved": solved}
    return {
        "k": k,
        "cells": len(rows),
        "models": len(counted),
        "closed": sum(row.get("optimal", False) for row in rows),
        "geomean_ratio": mean([row["upper"] / row["lower"] for row in with_upper]) if with_upper else None,
        "geomean_bounds": bounds,
        "over_simple": over,
        "best": {"simple": len(rows)},
    }


def mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.prod(ratios) ** (1 / len(ratios))


_SYSTEM = load_device().to_document()


def row(
    model: str = "net", k: int = 2, upper: int | None = None, method: str = "simple", **bounds: Any
) -> CertificateRow:
    """Return a row with these bounds in ticks by name, underscores for hyphens.

    A negative bound is one of that size whose time was up, None one that proved nothing. *method* names the best;
    other fields are given with a trailing underscore: ``ops_=124``.
    """
    fields = {name[:-1]: bounds.pop(name) for name in list(bounds) if name.endswith("_")}
    figures = {
        name.replace("_", "-"): BoundFigure(
            None if value is None else abs(value), 0.25, value is not None and value >= 0
        )
        for name, value in bounds.items()
    }
    tier = fields.pop("tier", "exact")
    given: dict[str, Any] = {
        "path": f"{model}.json",
        "sha256": "0" * 64,
        "dims": {},
        "ops": 12,
        "tensors": 11,
        "time_unit": "ps",
        "ticks_per_unit": 1,
        "system": _SYSTEM,
        "upper_algorithm": None if upper is None else "anneal",
        "assignment": None if upper is None else {"a": 0},
        "partition_seconds": 0.5,
        "total_seconds": 0.5 + 0.25 * len(figures),
        "stopped": "target",
    } | fields
    best = figures[method].value
    assert best is not None
    return CertificateRow(model=model, k=k, upper=upper, lower=LowerBound(best, method, tier), bounds=figures, **given)
