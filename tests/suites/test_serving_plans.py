"""Plans of language models cut to a few layers: throughput, capacity and both phases, against all plans there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mtpp
from tests.support.serving_oracle import (
    CONFIGURATIONS,
    MACHINES,
    Oracle,
    both_phases,
    cut_configuration,
    least_within,
    machine_for,
)

SHORT = {("llama-70b", "two"), ("qwen3-next-80b", "three equal"), ("qwen3-8b", "four kinds")}
CELLS = [
    pytest.param(name, machine, marks=[] if (name, machine) in SHORT else pytest.mark.slow)
    for name in CONFIGURATIONS
    for machine in MACHINES
]


@pytest.mark.parametrize(("name", "machine"), CELLS)
def test_plans_are_the_best_of_all_cuts_and_orders(name: str, machine: str, shared_data: Path, tmp_path: Path) -> None:
    """The least bottleneck; the largest context and most sequences; the least bottleneck within a first token."""
    source, layers = shared_data / "llm" / "configs" / f"{name}.json", 12 if MACHINES[machine].small else 8
    path = cut_configuration(source, layers, tmp_path)
    load = {"machine": machine_for(machine, mtpp.read(path).graph.all_bytes), "kv_dtype": "fp8"}
    check_throughput(path, load)
    check_capacity(path, load, "context")
    check_capacity(path, load, "sequences")
    check_both_phases(path, load)


def check_throughput(path: str, load: dict[str, Any]) -> None:
    """Compare the least bottleneck of decoding."""
    model = mtpp.read(path, context=2048, sequences=3, **load)
    best = Oracle(model).least_bottleneck()
    assert best is not None
    plan = mtpp.partition(model)
    assert plan.optimal
    assert plan.bottleneck == best


def check_capacity(path: str, load: dict[str, Any], objective: str) -> None:
    """Look at all plans at the capacity and at the next value; the plan is the fastest that fits, and verified."""
    plan = mtpp.partition(mtpp.read(path, **load), objective=objective)
    stated = plan.document()["capacity"]
    assert mtpp.verify(plan.document(), path).passed
    there = Oracle(mtpp.read(path, **{objective: stated["value"]}, **load))
    assert plan.bottleneck == there.least_bottleneck()
    following = stated["next_infeasible"] or 50 * stated["value"]
    assert Oracle(mtpp.read(path, **{objective: following}, **load)).fits() == (stated["next_infeasible"] is None)


def check_both_phases(path: str, load: dict[str, Any]) -> None:
    """Compare the least bottleneck of decoding among plans whose prompts keep to a limit, the least one included."""
    decoding = mtpp.read(path, context=512, sequences=2, phase="both", **load)
    prompts = mtpp.read(path, context=512, sequences=2, phase="prefill", **load)
    plans = sorted(both_phases(Oracle(decoding), Oracle(prompts)))
    for limit in (None, min(latency for _, latency in plans), plans[len(plans) // 2][1]):
        within = mtpp.partition(decoding, max_latency=None if limit is None else f"{limit}ps")
        assert within.optimal
        assert within.bottleneck == (plans[0][0] if limit is None else least_within(plans, limit))
        assert limit is None or within.document()["first_token"]["latency"] <= limit
    assert mtpp.verify(within.document(), path).passed
