"""Training plans put together from the oracles alone: what a correct program has to write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import training_oracles
from training_oracles import PICOSECONDS, OracleStage

from mtpp.checker.training.bounds import TrainingClaim
from mtpp.checker.training.document import as_fraction
from mtpp.checker.training.model import StatedModel, training_model_in_ticks
from mtpp.training.problem import PlanningProblem

SHA256 = hashlib.sha256(b"the model").hexdigest()


def training_plan_document(
    problem: PlanningProblem, stages: Sequence[OracleStage], bound: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the plan of a pipeline as read back from JSON; without *bound* its own time is said to be proven."""
    unit = PICOSECONDS[problem.model.time_unit]
    parts = training_oracles.pipeline_parts(problem, stages)
    time = max(part.time for part in parts)
    if bound is None:
        proof = {"less_than": pair(time)}
        bound = {"value": pair(time), "method": "downset", "tier": "enumerated", "proof": proof}
    lower = Fraction(*bound["value"])
    rows: list[dict[str, Any]] = []
    for i, (stage, part) in enumerate(zip(stages, parts, strict=True)):
        d, t = stage.data_parallel, stage.tensor_parallel
        chosen = {
            str(problem.model.layers[v].id): training_oracles.configurations(problem, v, t)[c].id
            for v, c in zip(stage.layers, stage.chosen, strict=True)
        }
        s = sum(later.data_parallel for later in stages[i:])
        rows.append(
            {
                "index": i,
                "layers": [problem.model.layers[v].id for v in stage.layers],
                "data_parallel": d,
                "tensor_parallel": t,
                "devices": d * t,
                "in_flight": training_oracles.ceil_divided(s, d),
                "memory_bytes": part.memory,
                "time": float(part.time / unit),
                "time_ticks": pair(part.time),
                "compute": float(part.compute / unit),
                "communication": float((part.edges + part.gradients) / unit),
                "edges": float(part.edges / unit),
                "gradients": float(part.gradients / unit),
                "utilization": float(part.time / time) if time else 1.0,
                "configurations": chosen,
            }
        )
    document = {
        **_head(problem),
        "feasible": True,
        "time_per_sample": float(time / unit),
        "time_per_sample_ticks": pair(time),
        "throughput_per_s": float(10**12 / time) if time else None,
        "lower_bound": bound,
        "ratio": (1.0 if time == 0 else None) if lower == 0 else float(time / lower),
        "optimal": time == lower,
        "devices_used": sum(row["devices"] for row in rows),
        "degrees_sum": sum(stage.data_parallel for stage in stages),
        "stages": rows,
        "knapsack": {"method": "exact", "heuristic_differs": []},
        "notes": [],
        "stopped": "finished",
        "elapsed_s": 0.25,
    }
    return _reread(document)


def no_plan_document(problem: PlanningProblem, least_memory: int | None, *, proven: bool = True) -> dict[str, Any]:
    """Return what says that there is no plan, as read back from JSON."""
    rest = {"least_memory_bytes": least_memory, "reason": "none", "stages": [], "stopped": "finished", "elapsed_s": 1}
    return _reread({**_head(problem), "feasible": False, "proven": proven, **rest})


def pair(value: Fraction) -> list[int]:
    """Return numerator and denominator in lowest terms."""
    return [value.numerator, value.denominator]


def _head(problem: PlanningProblem) -> dict[str, Any]:
    model, schemes = problem.model, problem.schemes
    return {
        "format": "mtpp-training-plan",
        "version": 1,
        "planner": "piper",
        "model": {"name": model.name, "sha256": SHA256, "layers": len(model.layers), "edges": len(model.edges)},
        "time_unit": model.time_unit,
        "ticks_per_unit": PICOSECONDS[model.time_unit],
        "system": {
            "devices": problem.devices,
            "memory_bytes": problem.memory_bytes,
            "bandwidth_bytes_per_s": problem.link.bandwidth_bytes_per_s,
            "max_micro_batches": problem.micro_batches,
            "exact_micro_batches": problem.exact_micro_batches,
            "convention": problem.convention,
            "data_parallel": schemes.data_parallel,
            "tensor_parallel": schemes.tensor_parallel,
            "recompute": schemes.recompute,
            "topology": None,
        },
    }


def _reread(document: Any) -> Any:
    return json.loads(json.dumps(document), parse_float=Decimal)


def training_claim(plan: dict[str, Any], model: StatedModel) -> TrainingClaim:
    """Return what a plan claims of its lower bound."""
    stated, ticks = plan["lower_bound"], training_model_in_ticks(model, plan["system"]["bandwidth_bytes_per_s"])
    return TrainingClaim(ticks, plan["system"], as_fraction(stated["value"]), stated["proof"])
