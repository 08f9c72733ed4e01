"""Claims of split plans that hold for less than was asked for, and proofs that show more than they should."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from planning import plan_with
from processes import run

import mtpp
from mtpp.training.pfeife.schedule import PassSchedule, read_pass

Document = dict[str, Any]


def graph(ops: list[Document], transfers: list[int]) -> Document:
    """Return a line of ops in an abstract unit."""
    rows = [{"name": f"v{v}", **op} for v, op in enumerate(ops)]
    tensors = [
        {"name": f"t{v}", "producer": f"v{v}", "consumers": [f"v{v + 1}"], "transfer": ticks, "bytes": 1}
        for v, ticks in enumerate(transfers)
    ]
    return {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "1", "ops": rows, "tensors": tensors}


def planned(model: Any, **asked: Any) -> Any:
    """Plan by pfeife."""
    return plan_with(model, planner="pfeife", **asked)


def accepted(plan: Document, model: Any) -> bool:
    """Say whether a document is verified."""
    return bool(mtpp.verify(plan, model).passed)


def test_halves_of_backward_passes_are_no_whole_path() -> None:
    """The next stage goes on after the half for inputs: one micro-batch through four stages takes 170, not 240."""
    model = graph([{"work": 10}] * 8, [0] * 7)
    plan = planned(model, devices=4, micro_batches=1, schedule="zero-bubble", loops=[1])
    assert plan.iteration_ticks == 170
    assert plan.optimal
    assert accepted(plan.document(), model)


def test_a_bound_of_whole_passes_is_none_of_halves() -> None:
    """A bad split whose path of whole passes is as long as its iteration."""
    model = graph([{"work": 10}] * 12, [0] * 11)
    rows = [[f"{s}{kind}0" for kind in "FIW"] for s in range(4)]
    schedule = PassSchedule.build([[read_pass(name) for name in row] for row in rows], [])
    document = planned(model, devices=4, micro_batches=1, schedule=schedule).document()
    assert document["iteration_ticks"] < 330
    for value in (document["lower_bound"]["value"] + 1, 330):
        forged = json.loads(json.dumps(document))
        for key in ("lower_bound", "family_bound"):
            forged[key]["value"] = value
        forged["lower_bound"].update(method="loads", proof={})
        assert not accepted(forged, model)


def test_a_load_without_micro_batches_is_no_way_back_in_time() -> None:
    """From the last forward pass of a device to its first backward pass there is nothing that runs one at a time."""
    model = graph([{"work": 100, "backward": 0}, {"work": 0, "backward": 100}, {"work": 0, "backward": 0}], [0, 0])
    sizes: Document = {"devices": 3, "micro_batches": 4, "loops": [1]}
    best = planned(model, **sizes).iteration_ticks
    forged = planned(model, **sizes, prefetch=[4, 4, 4]).document()
    ticks = forged["iteration_ticks"]
    assert ticks > best
    runs = [["0F0", "0F3"], ["1F3", "1F3"], ["2F3", "2B0"], ["1B0", "1B3"]]
    cell = {"loops": 1, "loop_batch": 4, "total": 1, "paths": [{"weight": 1, "load": 2, "runs": runs}]}
    forged["rules"]["prefetch"] = None
    forged["family_bound"] = {"value": ticks, "method": "paths", "tier": "exact", "proof": {"cells": [cell]}}
    forged["lower_bound"].update(method="family", proof={}, value=ticks)
    forged |= {"ratio": 1.0, "family_ratio": 1.0, "optimal": True}
    assert not accepted(forged, model)


@pytest.mark.parametrize("seed", range(24))
def test_stages_that_take_no_time_are_proven_as_well(seed: int) -> None:
    """A path begins with the pass that sends its first message, even if that takes no time."""
    rng = Random(seed)
    ops = [{"work": rng.choice([0, 0, 4, 7]), "backward": rng.choice([0, 3, 8])} for _ in range(6)]
    model = graph(ops, [rng.choice([0, 5, 50]) for _ in range(5)])
    plan = planned(model, devices=2, micro_batches=rng.choice([1, 2, 4]))
    assert accepted(plan.document(), model)


def test_an_order_that_was_searched_is_one_of_many() -> None:
    """A plan is called optimal only if no other order is faster; a bound along one order does not show that."""
    rng = Random(3)
    for _ in range(12):
        ops = [{"work": rng.choice([1, 2, 5, 9])} for _ in range(4)]
        model = graph(ops, [])
        model["tensors"] = [
            {"name": f"t{i}", "producer": f"v{a}", "consumers": [f"v{b}"], "transfer": rng.randint(0, 9), "bytes": 1}
            for i, (a, b) in enumerate([(0, 2), (1, 3)])
        ]
        sizes: Document = {"devices": 2, "micro_batches": 2, "loops": [1]}
        plan = planned(model, **sizes, order="search")
        best = min(
            planned(_ordered(model, order), **sizes).iteration_ticks
            for order in permutations(range(4))
            if order.index(0) < order.index(2) and order.index(1) < order.index(3)
        )
        assert plan.iteration_ticks >= best
        assert not plan.optimal or plan.iteration_ticks == best
        assert accepted(plan.document(), model)
    even = {**graph([{"work": 1}] * 4, []), "tensors": []}
    one = planned(even, devices=1, micro_batches=2, loops=[1], order="search")
    assert one.optimal
    assert accepted(one.document(), even)


def _ordered(model: Document, order: tuple[int, ...]) -> Document:
    return {**model, "ops": [model["ops"][v] for v in order]}


def test_an_order_is_the_files_unless_one_was_searched() -> None:
    """Bounds along any other order hold for that one only."""
    model = graph([{"work": work} for work in (9, 1, 5, 7)], [])
    searched = planned(model, devices=2, micro_batches=2, order="search").document()
    searched["rules"]["order"] = "file"
    assert not accepted(searched, model)
    own = planned(model, devices=2, micro_batches=2).document()
    own["rules"]["order"] = "search"
    assert not accepted(own, model)


def layers(*configurations: tuple[str, int, int, int]) -> Document:
    """Return two layers with the same configurations: id, time, bytes for each micro-batch, and fixed bytes."""
    rows = [
        {"id": name, "time": time, "parameter_bytes": 0, "memory_bytes_per_micro_batch": kept, "memory_bytes": fixed}
        for name, time, kept, fixed in configurations
    ]
    both = [{"name": name, "configurations": {"1": rows}} for name in "ab"]
    edges = [{"source": "a", "target": "b", "bytes": 0}]
    header = {"format": "mtpp-training-model", "version": 1, "name": "m", "time_unit": "ms"}
    return {**header, "layers": both, "edges": edges}


@pytest.mark.parametrize("memory", [22, 59, 100, 119])
def test_no_plan_is_proven_over_all_configurations(memory: int) -> None:
    """The slower configuration holds less, though it keeps more for a micro-batch."""
    model = layers(("x", 3, 0, 60), ("y", 6, 1, 10))
    sizes: Document = {"devices": 1, "micro_batches": 1, "loops": [1]}
    plan = planned(model, **sizes, memory=memory)
    assert plan.document()["costs"]["configurations"] == ("fastest" if memory < 60 else "smallest")
    assert plan.optimal == (memory < 60)
    assert accepted(plan.document(), model)
    with pytest.raises(mtpp.Infeasible, match="22B would do, 21B would not"):
        planned(model, **sizes, memory=21)


def test_layers_run_as_the_rule_says() -> None:
    """Slower configurations than the fastest that fit are refused, and so are those of other layers."""
    model = layers(("x", 3, 0, 60), ("y", 6, 1, 10))
    slow = layers(("y", 6, 1, 10))
    sizes: Document = {"devices": 2, "micro_batches": 2, "loops": [1]}
    own = planned(model, **sizes).document()
    forged = planned(slow, **sizes).document()
    forged["model"] = own["model"]
    assert not accepted(forged, model)
    doubled = json.loads(json.dumps(own))
    doubled["stages"][0]["configurations"] |= doubled["stages"][1]["configurations"]
    assert not accepted(doubled, model)
    assert accepted(own, model)


@pytest.mark.slow
def test_what_needs_least_memory_is_a_plan_of_what_was_asked_for(tmp_path: Path) -> None:
    """As many micro-batches, a schedule of the family, and more memory than there is."""
    model = graph([{"work": 1, "kept_bytes": 100}] * 4, [0] * 3)
    given, written = tmp_path / "graph.json", tmp_path / "none.json"
    given.write_text(json.dumps(model))
    asked = ("--devices", "2", "--micro-batches", "4", "--loops", "1", "--memory", "205B")
    assert run("plan", given, "--planner", "pfeife", *asked, "-o", written).returncode == 1
    own = json.loads(written.read_text())
    assert accepted(own, model)
    roomy = {**own, "system": {**own["system"], "memory_bytes": 10**9}}
    assert not accepted(roomy, model)
    one = json.loads(written.read_text())
    one["least_memory_plan"]["schedule"].update(micro_batches=1, order=[["0F0", "0B0"], ["1F0", "1B0"]])
    one["least_memory_plan"]["peak_bytes"] = [201, 201]
    one["least_memory_bytes"] = 201
    assert not accepted(one, model)
    strange = json.loads(written.read_text())
    turns = [[f"{d}{kind}{m}" for m in range(4) for kind in "FB"] for d in range(2)]
    strange["least_memory_plan"]["schedule"]["order"] = turns
    strange["least_memory_plan"]["peak_bytes"] = [204, 204]
    strange["least_memory_bytes"] = 204
    assert not accepted(strange, model)


@pytest.mark.parametrize("seed", range(25))
def test_the_least_memory_is_the_least(seed: int) -> None:
    """Where all splits can be gone through, a byte less is enough for none; and it is enough."""
    rng = Random(seed)
    ops = [
        {"work": rng.randint(1, 9), "kept_bytes": rng.randint(0, 40), "param_bytes": rng.randint(0, 9)}
        for _ in range(7)
    ]
    model = graph(ops, [rng.randint(0, 3) for _ in range(6)])
    sizes: Document = {"devices": rng.choice([1, 2, 3]), "micro_batches": rng.choice([1, 2, 3])}
    least = 1
    with pytest.raises(mtpp.Infeasible, match="would do") as caught:
        planned(model, **sizes, memory=least)
    least = int(str(caught.value).split("memory ")[-1].split("B would")[0])
    plan = planned(model, **sizes, memory=least)
    assert max(one.peak_bytes for one in plan.devices) <= least
    with pytest.raises(mtpp.Infeasible, match=f"memory {least}B would do"):
        planned(model, **sizes, memory=least - 1)


def test_latencies_of_all_pairs_are_limited() -> None:
    """Straight transport pays one for each pair of stages."""
    model = {**graph([{"work": 1}] * 24, [1] * 23), "time_unit": "ps"}
    asked: Document = {"devices": 1, "micro_batches": 1, "loops": [12], "transport": "direct"}
    with pytest.raises(mtpp.InputError, match="2\\^61 ticks"):
        planned(model, **asked, latency="50000s")
    assert planned(model, **asked, latency="1s").iteration_ticks > 10**12


def test_baselines_whose_passes_wait_for_each_other_are_none() -> None:
    """Interleaved passes of 5 devices with 6 micro-batches come to a standstill: nothing to compare with."""
    model = graph([{"work": 1 + v % 3} for v in range(16)], [1] * 15)
    plan = planned(model, devices=5, micro_batches=6, loops=[1, 2, 3])
    names = [one["name"] for one in plan.document()["baselines"]]
    assert "interleaved-2" in names
    assert "interleaved-3" not in names
    assert accepted(plan.document(), model)
    short = plan.document()
    short["baselines"] = [one for one in short["baselines"] if one["name"] != "interleaved-2"]
    assert not accepted(short, model)


def test_a_stated_dependency_between_neighbours_takes_its_time() -> None:
    """Straight transport keeps to the order of neighbours at no cost, but not where a pass waits for another one."""
    model = graph([{"work": 3}, {"work": 5}], [])
    rows = [[read_pass(name) for name in row] for row in (("0F0", "0B0"), ("1F0", "1B0"))]
    asked: Document = {"devices": 2, "micro_batches": 1, "transport": "direct"}
    for pairs, ticks in (([], 15), ([(read_pass("0F0"), read_pass("1F0"))], 18)):
        plan = planned(model, **asked, schedule=PassSchedule.build(rows, pairs))
        assert plan.iteration_ticks == ticks
        assert accepted(plan.document(), model)
