"""The verifier of split points and schedules: true plans pass, forged ones do not; bounds are held to brute force."""

from __future__ import annotations

import copy
import json
import math
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from looped_oracles import every_split, family_rows, replayed, warm_ups
from planning import plan_with
from tampering import altered, leaves, unnoticed

from mtpp.api.options.machine import Devices
from mtpp.api.training.plan_results import SplitPlanResult
from mtpp.api.verify import verify as verify_result
from mtpp.checker.report import Report
from mtpp.checker.training.pfeife.costs import Line, graph_line
from mtpp.checker.training.pfeife.paths import Network, bound_of, family_network, prices_of, schedule_network
from mtpp.checker.training.pfeife.schedule import (
    Rows,
    least_warm_up,
    looped_rows,
    replay,
    stage_times,
    stated_rows,
    text,
)
from mtpp.checker.training.plan import verify_training_plan
from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json


def graph(ops: int, seed: int, *, sizes: bool = True) -> dict[str, Any]:
    """Return a document of a graph with skips, abstract costs and, with *sizes*, bytes; its ops stand in any order."""
    pick = random.Random(seed)
    tensors: list[dict[str, Any]] = []
    for v in range(ops - 1):
        readers = sorted({v + 1} | ({pick.randrange(v + 1, ops)} if pick.random() < 0.4 else set()))
        tensor = {"name": f"t{v}", "producer": f"v{v}", "consumers": [f"v{r}" for r in readers]}
        tensors.append(
            tensor | {"transfer": pick.choice([0, 1, 2, 4])} | ({"bytes": pick.choice([1, 5, 20])} if sizes else {})
        )
    rows = [
        {"name": f"v{v}", "work": pick.choice([1, 2, 3, 5, 9]), "param_bytes": pick.choice([0, 10, 40])}
        for v in range(ops)
    ]
    pick.shuffle(rows)
    return {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "1", "ops": rows, "tensors": tensors}


def planned(model: Any, **asked: Any) -> dict[str, Any]:
    """Return the document of a plan, as a reader of files returns it."""
    found = plan_with(model, planner="pfeife", **asked)
    assert isinstance(found, SplitPlanResult)
    return parse_json(found.to_json().encode(), "plan")  # type: ignore[no-any-return]


def verify(plan: Any, model: Any) -> Report:
    """Verify a plan of a graph document."""
    return verify_training_plan(plan, parse_json(json.dumps(model).encode(), "model"), None)


def failures(plan: Any, model: Any) -> list[str]:
    """Return the names of what is false, or not checked."""
    return [check.name for check in verify(plan, model).checks if check.passed is not True and not check.fact]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"loops": [1]},
        {"loops": [2], "prefetch": [1, 0]},
        {"loops": [1, 2], "loop_batch": "any"},
        {"schedule": "gpipe"},
        {"schedule": "zero-bubble"},
        {"schedule": "interleaved", "loops": [3]},
        {"transport": "direct"},
        {"transport": "direct", "memory": "2kB"},
        {"buffers": "torch-pipelining"},
        {"buffers": "torch-pipelining", "transport": "direct", "memory": "2kB"},
        {"order": "search"},
        {"search": "beam"},
        {"memory": "2kB"},
        {"memory": ["2kB", "1kB"]},
        {"speed": [1, 0.5]},
        {"backward_ratio": 1.5, "state": 2},
    ],
    ids=str,
)
def test_plans_are_verified(asked: dict[str, Any]) -> None:
    """Whatever is asked of the planner, every claim of its plan holds."""
    for seed in range(3):
        model = graph(9, seed)
        plan = planned(model, devices=2, micro_batches=4, **asked)
        report = verify(plan, model)
        assert report.verdict == "ok", [check for check in report.checks if check.passed is False]
        assert report.ratio == float(plan["ratio"])


def test_plans_of_layers_are_verified() -> None:
    """A layer model runs as the configurations that its plan names, of which memory may ask for leaner ones."""
    configurations = [
        {"id": "plain", "time": 6, "parameter_bytes": 1, "memory_bytes_per_micro_batch": 50, "memory_bytes": 10},
        {"id": "lean", "time": 8, "parameter_bytes": 1, "memory_bytes_per_micro_batch": 5, "memory_bytes": 10},
    ]
    layers = [{"name": f"l{i}", "configurations": {"1": configurations}} for i in range(6)]
    edges = [{"source": f"l{i}", "target": f"l{i + 1}", "bytes": 10} for i in range(5)]
    model = {
        "format": "mtpp-training-model", "version": 1, "name": "m", "time_unit": "us",
        "layers": layers, "edges": edges,
    }  # fmt: skip
    for memory, name in ((None, "plain"), ("200B", "lean")):
        found = plan_with(model, planner="pfeife", devices=2, micro_batches=4, loops=[1], memory=memory)
        assert verify_result(found, model).passed
        assert set(found.document()["stages"][0]["configurations"].values()) == {name}


def frozen_graph(ops: int, seed: int) -> dict[str, Any]:
    """Return a document of a graph that says of some ops which of their parameters are trained."""
    pick = random.Random(seed)
    model = graph(ops, seed)
    for op in model["ops"]:
        if pick.random() < 0.7:
            op["trainable_bytes"] = pick.choice([0, 0, op["param_bytes"], op["param_bytes"] // 2])
        if pick.random() < 0.2:
            op["backward_share"] = pick.choice([0, 0.5, 1, 0.25])
    return model


@pytest.mark.parametrize("seed", range(6))
def test_frozen_ops_have_part_of_a_backward_pass(seed: int) -> None:
    """Times and memory of stages follow, op by op, from the definition: planner and verifier agree with it."""
    model = frozen_graph(9, seed)
    plan = planned(model, devices=2, micro_batches=3, loops=[1], state=5)
    assert verify(plan, model).verdict == "ok"
    before = {
        op["name"]: [t["producer"] for t in model["tensors"] if op["name"] in t["consumers"]] for op in model["ops"]
    }
    runs: dict[str, bool] = {}
    backward: dict[str, float] = {}
    fixed: dict[str, int] = {}
    for op in sorted(model["ops"], key=lambda one: int(one["name"][1:])):
        name, size = op["name"], op["param_bytes"]
        trained = op.get("trainable_bytes", size)
        flows = any(runs[one] for one in before[name])
        share = (flows + (trained > 0)) / 2 if size else float(flows)
        share = op.get("backward_share", share)
        runs[name] = share > 0 or trained > 0
        backward[name] = math.ceil(2 * share * op["work"] * plan["ticks_per_unit"])
        fixed[name] = 5 * trained + size - trained
    kept = dict.fromkeys(before, 0)
    for one in model["tensors"]:
        kept[one["producer"]] += one["bytes"] * any(runs[name] for name in (one["producer"], *one["consumers"]))
    for stage in plan["stages"]:
        assert stage["backward_ticks"] == sum(backward[name] for name in stage["layers"])
    first = set(plan["stages"][0]["layers"])
    crossing = sum(
        t["bytes"] for t in model["tensors"] if t["producer"] in first and not first.issuperset(t["consumers"])
    )
    for device, stage in zip(plan["devices"], plan["stages"], strict=True):
        flying = crossing + sum(kept[name] for name in stage["layers"])
        assert device["peak_bytes"] == sum(fixed[name] for name in stage["layers"]) + device["in_flight"] * flying


def test_plans_say_whether_they_know_what_is_trained() -> None:
    """A plan from before graphs said it is of all parameters; a new one is as its graph states."""
    frozen, plain = frozen_graph(9, 1), graph(9, 1)
    old = planned(plain, devices=2, micro_batches=2, loops=[1])
    assert old["costs"].pop("trained") == "all"
    assert verify(old, plain).verdict == "ok"
    assert verify(old, frozen).verdict == "ok"
    new = planned(frozen, devices=2, micro_batches=2, loops=[1])
    assert new["costs"]["trained"] == "stated"
    assert failures(new, plain)
    for model, forged in ((frozen, new["costs"] | {"trained": "all"}), (plain, old["costs"] | {"trained": "stated"})):
        assert "stages" in failures((new if model is frozen else old) | {"costs": forged}, model)
    frozen["ops"][0] |= {"param_bytes": 4, "trainable_bytes": 8}
    with pytest.raises(InputError, match="more than all of it is trained"):
        verify(new, frozen)


@pytest.mark.parametrize("transport", ["neighbours", "direct"])
def test_buffers_of_earlier_plans(transport: str) -> None:
    """A plan that does not say which micro-batches have buffers is held to the rule that all have."""
    model = graph(9, 1)
    plan = planned(model, devices=2, micro_batches=4, buffers="torch-pipelining", transport=transport)
    del plan["costs"]["buffers"]
    assert verify(plan, model).verdict == "ok"
    other = planned(model, devices=2, micro_batches=4, transport=transport)
    assert verify(other, model).verdict == "ok"
    del other["costs"]["buffers"]
    assert "devices" in failures(other, model)


def test_stages_as_a_partition() -> None:
    """The stages of a plan are a partition that can be evaluated."""
    model = graph(9, 1)
    found = plan_with(model, planner="pfeife", devices=2, micro_batches=2, loops=[2])
    assert isinstance(found, SplitPlanResult)
    assert found.assignment["v0"] == 0
    assert set(found.assignment.values()) == {0, 1, 2, 3}


def test_graph_with_its_own_backward_passes() -> None:
    """Backward passes and kept bytes that a graph gives are used by planner and verifier alike."""
    model = graph(6, 1)
    model["ops"][0] |= {"backward": 30, "kept_bytes": 1000}
    plan = planned(model, devices=2, micro_batches=2, loops=[1])
    assert verify(plan, model).verdict == "ok"
    del model["ops"][0]["backward"]
    assert "stage times" in failures(plan, model)


def test_no_plan_is_verified() -> None:
    """That nothing fits is proven where the bound on memory is above what there is."""
    model = graph(6, 2)
    from mtpp.api.observer import listener
    from mtpp.api.options.pfeife import Pfeife
    from mtpp.api.training.split_task import SplitTerms, plan_split_task, read_split_task
    from mtpp.host.deadline import Deadline

    for memory, proven in (("10B", True), ("500B", False)):
        terms = SplitTerms(Pfeife(micro_batches=2), Devices(devices=2, memory=memory), None)
        task = read_split_task(model, terms, listener(None))
        planned_one = plan_split_task(task, Deadline(), None, listener(None))
        document = parse_json(json.dumps(planned_one.document()).encode(), "plan")
        if document["feasible"]:
            continue
        report = verify(document, model)
        assert report.verdict == "ok"
        assert document["proven"] == proven or document["memory_bound"]["value"] <= 500
        for wrong in (document["least_memory_bytes"] - 1, document["least_memory_bytes"] + 1):
            assert "least memory" in failures(altered(document, ("least_memory_bytes",), wrong), model)


FREE = {
    ("model", "name"), ("model", "sha256"), ("elapsed_s",), ("stopped",), ("rules", "search"),
    ("rules", "order"), ("least_memory_bytes",),
}  # fmt: skip
"""Values that nobody can check without the file, or that make no claim."""


def test_every_value_is_held_to() -> None:
    """Changing any one value of a plan is noticed, but those that claim nothing."""
    model = graph(7, 3)
    plan = planned(model, devices=2, micro_batches=3, loops=[1, 2])

    def still_true(path: tuple[Any, ...], other: Any) -> bool:
        if path in FREE or path[:2] in {("model", "system"), ("model", "dims")}:
            return True
        # A prefetch beyond all forward passes that there are changes nothing.
        return path[:2] == ("schedule", "prefetch") and plan["schedule"]["prefetch"][path[2]] < other

    missed, count = unnoticed(plan, lambda wrong: failures(wrong, model), still_true)
    # A bandwidth means nothing to a graph that gives its transfers, nor does latency where none is asked for.
    missed = [
        one for one in missed if "proof" not in one[0] and one[0][-1] not in ("bandwidth_bytes_per_s", "loop_batches")
    ]
    assert missed == []
    assert count > 150


def test_forgeries_never_crash() -> None:
    """Large, small and odd values in any place are malformed or false, and nothing else happens."""
    model = graph(6, 4)
    plan = planned(model, devices=2, micro_batches=2, loops=[1, 2])
    for path, value in leaves(plan):
        for other in (0, 1, -1, 2**61, 2**70, True, None, "", "9F9", [], {}, 1.5):
            if type(other) is type(value) and other == value:
                continue
            with suppress(InputError):
                assert verify(altered(plan, path, other), model).checks, path


@pytest.mark.parametrize("key", ["lower_bound", "family_bound"])
def test_raised_bounds_are_false(key: str) -> None:
    """A bound that is a tick above what its proof shows is false, whatever else is made to go with it."""
    model = graph(8, 5)
    plan = planned(model, devices=2, micro_batches=4)
    wrong = copy.deepcopy(plan)
    wrong[key]["value"] = plan["iteration_ticks"]
    wrong["ratio" if key == "lower_bound" else "family_ratio"] = 1.0
    wrong["optimal"] = key == "family_bound"
    if plan[key]["value"] < plan["iteration_ticks"]:
        assert failures(wrong, model)


def random_walk(pick: random.Random, network: Network, start: tuple[int, str, int]) -> list[list[str]]:
    """Return the runs of a random path from a pass on, as proofs write them."""
    runs, at = [], start
    while True:
        row, place = network.rows[network.row_of[at]], network.place[at]
        end = row[pick.randrange(place, len(row))]
        runs.append([text(at), text(end)])
        following = []
        if end in network.channel:
            senders = network.senders[network.channel[end]][network.turn[end] :]
            following += [one for one, sender in network.sender.items() if sender in senders]
        following += [one for one in network.row_of if network.comes_before(end, one)]
        if not following or pick.random() < 0.2:
            return runs
        at = pick.choice(following)


def check_mixtures(seed: int) -> int:
    """Compare mixtures of random paths with the best of all splits; return how many were compared."""
    pick = random.Random(seed)
    devices, total = pick.choice([1, 2, 3]), pick.choice([1, 2, 3])
    ops = pick.randint(devices, 6)
    model = graph(ops, seed)
    loops = pick.choice([one for one in (1, 2, 3) if one * devices <= ops])
    batch = total if loops == 1 else pick.randint(min(devices, total), total)
    system = {"devices": devices, "bandwidth_bytes_per_s": 1, "speed": "1", "latency_ticks": pick.choice([0, 2])}
    setting = {"system": system, "costs": {"backward_ratio": "2", "state": "4"}, "order": None}
    line = graph_line(setting, parse_json(json.dumps(model).encode(), "model"))
    assert isinstance(line, Line)
    least = [least_warm_up(d, devices, total, loops, batch) for d in range(devices)]
    best_of_family, count = None, 0
    schedules: list[tuple[Rows, int]] = []
    for warm_up in warm_ups(least, loops * total):
        prefetch = [w - low for w, low in zip(warm_up, least, strict=True)]
        rows = looped_rows(devices, total, loops, batch, prefetch)
        assert rows.rows == family_rows(devices, total, loops, batch, warm_up)
        best = None
        for split in every_split(ops, loops * devices):
            times = stage_times(line, split)
            taken = replay(rows, times)
            assert taken == replayed(rows.rows, times.forward, times.backward, times.handover)
            if taken is not None and (best is None or taken < best):
                best = taken
        if best is not None:
            schedules.append((rows, best))
            best_of_family = best if best_of_family is None else min(best, best_of_family)
    networks = [(schedule_network(rows), best) for rows, best in pick.sample(schedules, min(3, len(schedules)))]
    if best_of_family is not None:
        networks.append((family_network(devices, total, loops, batch), best_of_family))
    for network, best in networks:
        paths = []
        for _ in range(pick.randint(1, 4)):
            runs = random_walk(pick, network, pick.choice(sorted(network.row_of)))
            path: dict[str, Any] = {"weight": pick.randint(1, 5), "runs": runs}
            forward = sorted(one for one in network.row_of if one[1] == "F")
            first = pick.choice(forward)
            last = pick.choice(sorted(one for one in network.row_of if one[1] == "B"))
            if network.load(first, last):
                path = {"weight": pick.randint(1, 5), "runs": [[text(first), text(last)]], "load": 0}
                if pick.random() < 0.5:
                    path["runs"] += random_walk(pick, network, last)
            paths.append(path)
        proof = {"total": sum(path["weight"] for path in paths), "paths": paths}
        prices = prices_of(network, proof)
        if isinstance(prices, str):
            continue
        assert bound_of(line, network.stages, prices, proof["total"]) <= best
        count += 1
    return count


FOLDS = [pytest.param(range(begin, begin + 400), 700, marks=pytest.mark.slow) for begin in range(1000, 2600, 400)]


@pytest.mark.parametrize(("seeds", "least"), [(range(40), 60), *FOLDS])
def test_mixtures_of_paths_are_never_above_the_best_split(seeds: range, least: int) -> None:
    """What the verifier makes of random paths and loads holds for every split, and every schedule of a family."""
    assert sum(map(check_mixtures, seeds)) > least


def test_replays_of_the_reference(shared_reference: Path) -> None:
    """Iterations of the reference, and that orders which wait for each other never end."""
    from mtpp.checker.training.pfeife.schedule import StageTimes

    known = json.loads((shared_reference / "pfeife.json").read_text())
    for case in known["replays"]:
        rows = looped_rows(case["devices"], case["micro_batches"], case["loops"], case["loop_batch"], case["prefetch"])
        assert replay(rows, StageTimes(case["forward"], case["backward"], case["transfer"])) == case["iteration"]
    case = known["figure2"]
    order = {"order": case["order"], "dependencies": []}
    times = StageTimes(case["forward"], case["backward"], [case["transfer"]])
    assert replay(stated_rows(order), times) == case["iteration"]
