"""Plans by ``graphpipe`` put together from the oracles alone: what a correct program has to write.

It reads ``mtpp-training-model`` documents whose layers have one configuration, with costs by samples; a plan is lists
of layer names with d, b, k and the micro-batches in flight of each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple

from pipeline_events import simulate_events

from mtpp.checker.training.graphpipe.bounds import GraphClaim, Measure
from mtpp.checker.training.graphpipe.costs import graph_model
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document
from mtpp.training.model import TrainingModel

SHA256 = hashlib.sha256(b"the model").hexdigest()
TICKS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
SECOND = 10**12


class Planned(NamedTuple):
    """A stage: names of layers, replicas, samples of a micro-batch, micro-batches in flight, and k."""

    layers: Sequence[str]
    d: int
    b: int
    in_flight: int
    k: int = 1


def graph_plan_document(
    model: dict[str, Any], asked: dict[str, Any], stages: Sequence[Planned], bound: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the plan of some stages as read back from JSON; without *bound* its bound is ``work``.

    *asked* is as for :func:`graph_plan_oracles.best_iteration`.
    """
    rows = [_stage_row(model, asked, i, stage) for i, stage in enumerate(stages)]
    transfers = _transfers(model, asked, stages)
    iteration = simulated(model, asked, stages)
    assert iteration is not None
    bound = bound or {"value": least_work(model, asked), "method": "work", "tier": "exact", "proof": {}}
    batch, unit = asked["mini_batch"], TICKS[model["time_unit"]]
    times = [
        Fraction(row["forward_ticks"] + row["backward_ticks"], row["micro_batch"])
        + Fraction(row["synchronisation_ticks"], batch)
        for row in rows
    ]
    times += [Fraction(one["forward_ticks"], stages[one["source"]].b) for one in transfers]
    times += [Fraction(one["backward_ticks"], stages[one["target"]].b) for one in transfers]
    value = bound["value"]
    return _reread(
        {
            **_head(model, asked),
            "feasible": True,
            "least_memory_bytes": None,
            "iteration_ticks": iteration,
            "iteration_time": float(Fraction(iteration, unit)),
            "samples_per_s": float(Fraction(batch * SECOND, iteration)) if iteration else None,
            "time_per_sample_ticks": list(max(times).as_integer_ratio()),
            "lower_bound": bound,
            "ratio": float(Fraction(iteration, value)) if value else 1.0 if iteration == 0 else None,
            "optimal": iteration == value,
            "depth": _depth(len(stages), transfers),
            "devices_used": sum(stage.d for stage in stages),
            "transfers": transfers,
            "stages": rows,
            "notes": [],
            "stopped": "finished",
            "elapsed_s": 0.25,
        }
    )


def no_graph_plan_document(
    model: dict[str, Any], asked: dict[str, Any], bound: dict[str, Any], stages: Sequence[Planned] | None
) -> dict[str, Any]:
    """Return what says that there is no plan; *stages* are one that needs the least memory, if any is known."""
    rows = [_stage_row(model, asked, i, stage) for i, stage in enumerate(stages or ())]
    return _reread(
        {
            **_head(model, asked),
            "feasible": False,
            "least_memory_bytes": max((row["memory_bytes"] for row in rows), default=None),
            "memory_bound": bound,
            "proven": bound["value"] > asked["memory_bytes"],
            "least_memory_stages": rows,
            "reason": "none",
            "stages": [],
            "transfers": [],
            "iteration_ticks": None,
            "stopped": "finished",
            "elapsed_s": 1,
        }
    )


def planned_stages(model: dict[str, Any], pipeline: dict[str, Any]) -> list[Planned]:
    """Return the stages of a pipeline of :mod:`graph_plan_oracles` in a topological order; that of a line stays."""
    stages = [
        Planned(row["layers"], row["replicas"], row["micro_batch"], row["in_flight"], row["k"])
        for row in pipeline["stages"]
    ]
    return in_order(stages, [(one["source"], one["target"]) for one in pipeline["transfers"]])


def in_order(stages: Sequence[Planned], ends: Sequence[tuple[int, int]]) -> list[Planned]:
    """Return stages so that edges between them lead forward."""
    order: list[int] = []
    while len(order) < len(stages):
        free = [s for s in range(len(stages)) if s not in order and all(a in order for a, b in ends if b == s)]
        order.append(free[0])
    return [stages[s] for s in order]


def reference_case(case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Planned]]:
    """Return model, what is asked, and the plan of one of the ``models`` of the reference."""
    asked = {
        "devices": case["devices"],
        "memory_bytes": case["memory_bytes"],
        "bandwidth": case["bandwidth_bytes_per_s"],
        "mini_batch": case["mini_batch"],
        "sizes": case["micro_batch_sizes"],
    }
    plan = case["a_plan"]
    stages = [Planned(*row) for row in zip(plan["groups"], plan["d"], plan["b"], plan["in_flight"], strict=True)]
    place = {name: s for s, stage in enumerate(stages) for name in stage.layers}
    ends = {(place[e["source"]], place[e["target"]]) for e in case["model"]["edges"]}
    return case["model"], asked, in_order(stages, [(a, b) for a, b in ends if a != b])


def diamond() -> tuple[dict[str, Any], dict[str, Any], list[Planned]]:
    """Return a model of four layers, two of them side by side, what is asked, and a plan with a stage for each."""

    def layer(name: str, forward: int, backward: int, kept: int, parameters: int) -> dict[str, Any]:
        table = {
            str(s): {"forward": 2 + forward * s, "backward": 3 + backward * s, "memory_bytes": kept * s}
            for s in (1, 2, 4)
        }
        one = {
            "id": "plain",
            "time": table["2"]["forward"] + table["2"]["backward"],
            "parameter_bytes": parameters,
            "memory_bytes_per_micro_batch": 2 * kept,
            "memory_bytes": 3 * parameters,
            "micro_batches": table,
        }
        return {"name": name, "configurations": {"1": [one]}}

    ends = [("a", "b", 6), ("a", "c", 10), ("b", "d", 8), ("c", "d", 4)]
    model = {
        "format": "mtpp-training-model",
        "version": 1,
        "name": "diamond",
        "time_unit": "ns",
        "micro_batch_size": 2,
        "layers": [layer("a", 5, 9, 7, 4), layer("b", 8, 15, 5, 9), layer("c", 6, 14, 3, 5), layer("d", 4, 8, 6, 2)],
        "edges": [{"source": u, "target": v, "bytes": size} for u, v, size in ends],
    }
    asked = {
        "devices": 6,
        "memory_bytes": 60,
        "bandwidth": 5 * 10**9,
        "mini_batch": 16,
        "sizes": [2, 4],
        "latency": 700,
    }
    stages = [Planned(["a"], 1, 2, 3), Planned(["b"], 2, 2, 2), Planned(["c"], 1, 2, 2), Planned(["d"], 1, 2, 1)]
    return model, asked, stages


def setting_document(model: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the part of every document that says what was asked."""
    return _head(model, asked)


def as_training_model(model: dict[str, Any]) -> TrainingModel:
    """Return a model document as the program reads it."""
    return training_model_from_document(parse_json(json.dumps(model).encode(), "model"), "model")


def simulated(model: dict[str, Any], asked: dict[str, Any], stages: Sequence[Planned]) -> int | None:
    """Return the iteration of a plan, None if its passes wait for each other."""
    rows = [_stage_row(model, asked, i, stage) for i, stage in enumerate(stages)]
    document = {
        "mini_batch": asked["mini_batch"],
        "stages": [
            {
                "micro_batch": row["micro_batch"],
                "forward": row["forward_ticks"],
                "backward": row["backward_ticks"],
                "synchronisation": row["synchronisation_ticks"],
                "in_flight": row["in_flight"],
                "k": row["forwards_backwards"],
            }
            for row in rows
        ],
        "transfers": [
            {
                "source": one["source"],
                "target": one["target"],
                "forward": one["forward_ticks"],
                "backward": one["backward_ticks"],
            }
            for one in _transfers(model, asked, stages)
        ],
    }
    done = simulate_events(document)
    return None if done is None else int(done["iteration"])


def least_work(model: dict[str, Any], asked: dict[str, Any]) -> int:
    """Return the bound ``work``, from its definition."""
    total = 0
    for layer in model["layers"]:
        one = layer["configurations"]["1"][0]
        total += min(
            d * (asked["mini_batch"] // b) * (costs["forward"] + costs["backward"]) for b, d, costs in _ways(one, asked)
        )
    return -(-total * TICKS[model["time_unit"]] // asked["devices"])


def least_layer(model: dict[str, Any], asked: dict[str, Any]) -> int:
    """Return the bound ``layer`` of the memory, from its definition."""
    needs = []
    for layer in model["layers"]:
        one = layer["configurations"]["1"][0]
        needs.append(one["memory_bytes"] + min(costs["memory_bytes"] for *_, costs in _ways(one, asked)))
    return max(needs)


def _ways(one: dict[str, Any], asked: dict[str, Any]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    for b in asked["sizes"]:
        for d in range(1, asked["devices"] + 1):
            if b % d == 0 and str(b // d) in one["micro_batches"]:
                yield b, d, one["micro_batches"][str(b // d)]


def _head(model: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": "mtpp-training-plan",
        "version": 2,
        "planner": "graphpipe",
        "model": {
            "name": model["name"],
            "sha256": SHA256,
            "layers": len(model["layers"]),
            "edges": len(model["edges"]),
        },
        "time_unit": model["time_unit"],
        "ticks_per_unit": TICKS[model["time_unit"]],
        "system": {
            "devices": asked["devices"],
            "memory_bytes": asked["memory_bytes"],
            "bandwidth_bytes_per_s": asked["bandwidth"],
            "latency_ticks": asked.get("latency", 0),
            "sequential": bool(asked.get("sequential")),
        },
        "rules": {
            "times_of": model["micro_batch_size"],
            "micro_batch_sizes": list(asked["sizes"]),
            "per_stage_micro_batch": bool(asked.get("per_stage")),
            "forwards_backwards": list(asked.get("intervals", (1,))),
            "in_flight": "least" if asked.get("least") else "any",
            "data_parallel": True,
            "recompute": True,
        },
        "mini_batch": asked["mini_batch"],
    }


def _stage_row(model: dict[str, Any], asked: dict[str, Any], index: int, stage: Planned) -> dict[str, Any]:
    unit = TICKS[model["time_unit"]]
    ones = {layer["name"]: layer["configurations"]["1"][0] for layer in model["layers"]}
    tables = [ones[name]["micro_batches"][str(stage.b // stage.d)] for name in stage.layers]
    parameters = sum(ones[name]["parameter_bytes"] for name in stage.layers)
    fixed = sum(ones[name]["memory_bytes"] for name in stage.layers)
    return {
        "index": index,
        "layers": list(stage.layers),
        "data_parallel": stage.d,
        "tensor_parallel": 1,
        "devices": stage.d,
        "micro_batch": stage.b,
        "forwards_backwards": stage.k,
        "in_flight": stage.in_flight,
        "forward_ticks": sum(table["forward"] for table in tables) * unit,
        "backward_ticks": sum(table["backward"] for table in tables) * unit,
        "synchronisation_ticks": -(-2 * (stage.d - 1) * parameters * SECOND // (stage.d * asked["bandwidth"])),
        "memory_bytes": fixed + stage.in_flight * sum(table["memory_bytes"] for table in tables),
        "configurations": {name: ones[name]["id"] for name in stage.layers},
    }


def _transfers(model: dict[str, Any], asked: dict[str, Any], stages: Sequence[Planned]) -> list[dict[str, Any]]:
    place = {name: s for s, stage in enumerate(stages) for name in stage.layers}
    ends = {(place[e["source"]], place[e["target"]]) for e in model["edges"]}
    if asked.get("sequential"):
        ends |= {(s, s + 1) for s in range(len(stages) - 1)}
    found = []
    for a, b in sorted((a, b) for a, b in ends if a != b):
        ticks = []
        for sender in (a, b):
            moved = sum(
                -(-e["bytes"] * stages[sender].b // model["micro_batch_size"])
                for e in model["edges"]
                if (place[e["source"]], place[e["target"]]) == (a, b)
            )
            width = min(stages[a].d, stages[b].d)
            ticks.append(asked.get("latency", 0) + -(-moved * SECOND // (asked["bandwidth"] * width)))
        found.append({"source": a, "target": b, "forward_ticks": ticks[0], "backward_ticks": ticks[1]})
    return found


def _depth(stages: int, transfers: Sequence[dict[str, Any]]) -> int:
    ends = [(one["source"], one["target"]) for one in transfers]
    reached = set(range(stages))
    for depth in count():
        if not reached:
            return depth
        reached = {target for source, target in ends if source in reached}
    raise AssertionError


def _reread(document: Any) -> Any:
    return json.loads(json.dumps(document), parse_float=Decimal)


def bound_claim(
    model: dict[str, Any],
    asked: dict[str, Any],
    method: str,
    value: int,
    measure: Measure = "iteration",
    left_out: frozenset[int] = frozenset(),
) -> GraphClaim:
    """Return the claim that no plan of a model document is below *value*."""
    setting = Setting.of(setting_document(model, asked))
    return GraphClaim(graph_model(as_training_model(model), setting), setting, measure, value, method, left_out)
