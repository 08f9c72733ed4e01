"""Algorithms measured against each other, ``mtpp-comparison`` version 1, as JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mtpp.inference.model_file import OWN_COSTS

FORMAT = "mtpp-comparison"
VERSION = 1


def comparison_document(comparison: Any, elapsed_s: float) -> dict[str, Any]:
    """Return a comparison as JSON takes it.

    Parameters
    ----------
    comparison
        A :class:`mtpp.solvers.certify.comparison.ComparedRuns`.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "system": comparison.system.to_document(),
        "k": list(comparison.stage_counts),
        "algorithms": comparison.algorithms,
        "seed": comparison.limits.seed,
        "time_limit_s": comparison.limits.time_limit_s,
        "work_limit": comparison.limits.work_limit,
        "interrupted": comparison.interrupted,
        **({} if comparison.plain else {"objective": comparison.goal.objective}),
        **({"replicas": True} if comparison.replicas else {}),
        "models": [
            {
                "name": model.name,
                "source": model.path,
                "sha256": model.sha256,
                "ops": model.ops,
                "tensors": model.tensors,
                "dims": dict(model.dims),
                **({"proposed_dims": list(model.proposed_dims)} if model.proposed_dims else {}),
                **({"assumptions": list(model.assumptions)} if model.assumptions else {}),
                **({} if model.costs_sha256 is None else {"costs_sha256": model.costs_sha256}),
                **({OWN_COSTS: True} if model.own_costs else {}),
            }
            for model in comparison.models
        ],
        "rows": run_rows(comparison),
        "summary": [
            {
                "algorithm": mean.algorithm,
                "k": mean.k,
                "models": mean.models,
                "geomean_ratio": mean.ratio,
                "seconds": round(mean.seconds, 6),
            }
            for mean in comparison.means()
        ],
        "elapsed_s": round(elapsed_s, 3),
    }


def run_rows(comparison: Any) -> list[dict[str, Any]]:
    """Return the runs as JSON values."""
    models = {model.path: model for model in comparison.models}
    return [
        {
            "model": models[cell.source].name,
            "source": cell.source,
            "ops": models[cell.source].ops,
            "k": cell.k,
            "algorithm": cell.algorithm,
            "time_unit": cell.time_unit,
            "ticks_per_unit": cell.ticks_per_unit,
            "bottleneck": cell.bottleneck,
            **({} if comparison.plain else {"latency": cell.latency}),
            **({} if cell.goal.limit is None else {cell.goal.limited: cell.goal.limit}),
            "simple_bound": _plain(cell.simple_bound),
            "ratio": cell.ratio,
            "evaluations": cell.evaluations,
            "seconds": round(cell.seconds, 6),
            "stopped": str(cell.stopped),
            "found_by": cell.found_by,
            "problem": cell.problem,
        }
        for cell in comparison.cells
    ]


def _plain(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)
