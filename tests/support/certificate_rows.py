"""Rows of tables of certificates, made by hand."""

from __future__ import annotations

from typing import Any

from mtpp.inference.certificate import LowerBound
from mtpp.inference.certificate_table import BoundFigure, CertificateRow
from mtpp.machine.presets import load_device

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
