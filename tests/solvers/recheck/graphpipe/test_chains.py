"""Chains of stages searched again: against chains by definition, brute force, and all symmetric twins."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import repeat
from typing import Any

import pytest
from graph_plan_documents import bound_claim, diamond
from graph_plan_oracles import best_iteration, leanest_pipeline, random_graph_case

from mtpp.checker.training.graphpipe.bounds import GraphClaim, Measure, least_work
from mtpp.checker.training.graphpipe.costs import LayerChoice, graph_model
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.solvers.recheck.graphpipe import chains
from mtpp.solvers.recheck.graphpipe.chains import recheck_chains
from mtpp.solvers.recheck.graphpipe.path_costs import layer_paths
from mtpp.solvers.recheck.pipelines import Unwatched

WATCHER = Unwatched()
FAR = 10**12


def chain_exists(claim: GraphClaim) -> bool:
    """Tell by definition whether there is a chain below the claim's value: downset by downset, set by set."""
    setting = claim.setting
    sets = [setting.ways()] if setting.per_stage else [setting.ways(size) for size in setting.sizes]
    return any(_chain_exists(claim, ways) for ways in sets if ways)


def _chain_exists(claim: GraphClaim, ways: list[tuple[int, int]]) -> bool:
    model, setting, memory = claim.model, claim.setting, claim.measure == "memory"
    limit = claim.value - 1 if memory else setting.memory_bytes
    kept = [v for v in range(len(model.ids)) if v not in claim.left_out]
    edges = [(u, v, size) for u, v, size in model.edges if u in kept and v in kept]
    costs = {
        (v, way): [(one, one.passes(way[0] // way[1])) for one in model.choices[v] if one.passes(way[0] // way[1])]
        for v in kept
        for way in ways
    }

    def least(v: int, kind: str, most: int = setting.devices, *, all_batches: bool = False) -> int:
        """Return the least that a layer takes in stages of so many devices at most."""
        return min(
            (
                getattr(passes, kind) * (setting.batches(way[0]) if all_batches else 1)
                for way in ways
                if way[1] <= most
                for _, passes in costs[v, way]
            ),
            default=FAR,
        )

    if any(not any(costs[v, way] for way in ways) for v in kept):
        return False
    order: list[int] = []
    while len(order) < len(kept):
        order.append(next(v for v in kept if v not in order and all(u in order for u, w, _ in edges if w == v)))

    @cache
    def arrival(v: int, kind: str, most: int) -> int:
        return max([arrival(u, kind, most) for u, w, _ in edges if w == v], default=0) + least(v, kind, most)

    @cache
    def behind(v: int, most: int) -> int:
        follows = max([behind(w, most) for u, w, _ in edges if u == v], default=0)
        return max(least(v, "both", most) + follows, least(v, "both", most, all_batches=True))

    def moved(size: int, b: int, d: int) -> int:
        count = -(-size * b // setting.times_of)
        return setting.latency_ticks + -(-count * 10**12 // (setting.bandwidth * d))

    def fits(inside: frozenset[int], stage: frozenset[int], way: tuple[int, int]) -> bool:
        b, d = way
        if not all(costs[v, way] for v in stage):
            return False
        count = setting.mini_batch // b
        read = any(u in stage and v not in stage for u, v, _ in edges)
        in_flight = max(min(setting.intervals), min(2, count) if read else 0)
        held = sum(
            min(one.fixed_bytes for w in ways for one, _ in costs[v, w])
            + in_flight * min(passes.kept_bytes for _, passes in costs[v, way])
            for v in stage
        )
        if held > limit:
            return False
        if memory:
            return True
        pair = sum(min(passes.both for _, passes in costs[v, way]) for v in stage)
        both = sum(least(v, "both") for v in inside) if setting.sequential else 0
        forward = sum(least(v, "forward") for v in inside) if setting.sequential else 0
        channel = out = 0
        for u, v, size in edges:
            anyone = min(moved(size, other, d) for other, _ in ways)
            own = moved(size, b, d)
            if u not in stage and v in stage:
                before = arrival(u, "both", setting.devices - d)
                both = max(both, before + anyone + own)
                forward = max(forward, arrival(u, "forward", setting.devices - d) + anyone)
                through = min(setting.batches(other) * moved(size, other, d) for other, _ in ways)
                channel = max(channel, before + through + own, before + anyone + count * own)
            if u in stage and v not in stage:
                out = max(out, own + behind(v, setting.devices - d) + anyone)
        if max(channel, both + out) + pair >= claim.value:
            return False
        load = count * pair
        parameters = sum(min(one.parameter_bytes for one in model.choices[v]) for v in stage)
        gradients = -(-2 * (d - 1) * parameters * 10**12 // (d * setting.bandwidth))
        return both + load < claim.value and forward + load + gradients < claim.value

    fewest = {frozenset[int](): 0}
    for size in range(len(kept)):
        for inside in [one for one in fewest if len(one) == size]:
            for stage in _stages(inside, kept, edges):
                for way in ways:
                    used = fewest[inside] + way[1]
                    larger = inside | stage
                    if used <= min(setting.devices, fewest.get(larger, FAR)) and fits(inside, stage, way):
                        fewest[larger] = used
    return frozenset(kept) in fewest


def _stages(inside: frozenset[int], kept: list[int], edges: list[tuple[int, int, int]]) -> list[frozenset[int]]:
    outside = [v for v in kept if v not in inside]
    found = []
    for bits in range(1, 1 << len(outside)):
        stage = frozenset(v for i, v in enumerate(outside) if bits >> i & 1)
        if all(u in inside | stage for u, v, _ in edges if v in stage):
            found.append(stage)
    return found


def largest_bound(claim: GraphClaim, high: int) -> int:
    """Return the largest value up to *high* for which the search finds no chain."""
    low = 0
    while low < high:
        middle = -(-(low + high) // 2)
        holds, _ = recheck_chains(replace(claim, value=middle), WATCHER)
        assert holds is not None
        low, high = (middle, high) if holds else (low, middle - 1)
    return low


def check_random(seed: int) -> None:
    """Compare the largest bound with what the definition says, and with what brute force finds."""
    model, asked = random_graph_case(seed)
    left_out = frozenset({seed % len(model["layers"])}) if seed % 4 == 0 else frozenset()
    best, leanest = best_iteration(model, asked), leanest_pipeline(model, asked)
    due: list[tuple[Measure, int | None]] = [("iteration", best), ("memory", leanest[0] if leanest else None)]
    for measure, optimum in due:
        claim = bound_claim(model, asked, "chains", 0, measure, left_out)
        high = 5000 if optimum is None else optimum
        value = largest_bound(claim, high)
        assert not chain_exists(replace(claim, value=value))
        if value < high:
            assert chain_exists(replace(claim, value=value + 1))
        if optimum is not None:
            assert recheck_chains(replace(claim, value=optimum + 1), WATCHER)[0] is False


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(200, 240), range(3000, 3200)])
def test_random_models(seeds: range) -> None:
    """Of time and of memory, in one line or not, with layers left out or not."""
    for seed in seeds:
        check_random(seed)


def branchy(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw branches, most of them equal, between a first and a last layer that may be missing."""
    draw = random.Random(seed)
    model, asked, _ = diamond()
    kinds = dict(zip("abcd", model["layers"], strict=True))
    layers: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []

    def add(kind: str) -> str:
        layers.append({**kinds[kind], "name": f"{kind}{len(layers)}"})
        return str(layers[-1]["name"])

    first = add("a") if draw.random() < 0.5 else None
    ends = []
    for branch in draw.choice((["b", "b", "b"], ["bc", "bc"], ["b", "b", "cb"], ["bb", "bb"])):
        last = first
        for kind in branch:
            name = add(kind)
            if last is not None:
                edges.append({"source": last, "target": name, "bytes": 6})
            last = name
        ends.append(last)
    if draw.random() < 0.7:
        name = add("d")
        edges += [{"source": end, "target": name, "bytes": 8} for end in ends]
    order = list(range(len(layers)))
    draw.shuffle(order)
    found = {**model, "layers": [layers[i] for i in order], "edges": edges}
    rules = {"sequential": draw.random() < 0.3, "per_stage": draw.random() < 0.3, "devices": draw.randint(2, 5)}
    return found, {**asked, **rules, "memory_bytes": draw.choice((60, 100, 10**6))}


@pytest.mark.parametrize("seed", range(12))
def test_equal_branches(seed: int) -> None:
    """Equal paths are taken for one another, and bounds stay what the definition says."""
    model, asked = branchy(seed)
    claim = bound_claim(model, asked, "chains", 0)
    assert any(layer_paths(claim.model, claim.left_out).follows)
    for measure, high in (("iteration", 3_000_000), ("memory", 400)):
        asked_of = replace(claim, measure=measure)
        value = largest_bound(asked_of, high)
        assert not chain_exists(replace(asked_of, value=value))
        assert value == high or chain_exists(replace(asked_of, value=value + 1))


def test_branches_that_differ_in_one_number() -> None:
    """One byte more on an edge, or one tick, and paths are no longer equal."""
    model, asked = branchy(next(seed for seed in range(99) if len(branchy(seed)[0]["edges"]) > 4))
    claim = bound_claim(model, asked, "chains", 0)
    equal = sum(layer_paths(claim.model, frozenset()).follows)
    model["edges"][0]["bytes"] += 1
    other = bound_claim(model, asked, "chains", 0)
    assert sum(layer_paths(other.model, frozenset()).follows) <= equal
    for v, choices in enumerate(claim.model.choices):
        one = choices[0]
        dearer = LayerChoice(**{**one.__dict__, "parameter_bytes": one.parameter_bytes + 1})
        changed = replace(claim.model, choices=[[dearer] if w == v else c for w, c in enumerate(claim.model.choices)])
        assert sum(layer_paths(changed, frozenset()).follows) <= equal


def test_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many layers, many steps, many downsets and numbers beyond 64 bits are left unchecked."""
    model, asked, _ = diamond()
    claim = bound_claim(model, asked, "chains", 250_000)
    assert recheck_chains(claim, WATCHER)[0] is True
    assert recheck_chains(replace(claim, value=2**61), WATCHER)[0] is None
    with monkeypatch.context() as patch:
        patch.setattr(chains, "MOST_LAYERS", 3)
        assert recheck_chains(claim, WATCHER)[0] is None
    with monkeypatch.context() as patch:
        patch.setattr(chains, "MOST_STEPS", 1)
        patch.setattr(chains, "_slices", lambda: repeat(1))
        assert recheck_chains(_generated("mmt", 512, 1.15), WATCHER)[0] is None
    with monkeypatch.context() as patch:
        patch.setattr(chains, "_FIRST_ROOM", 1)
        assert recheck_chains(claim, WATCHER)[0] is True  # room grows
        patch.setattr(chains, "MOST_COUNTS", 1)
        assert recheck_chains(claim, WATCHER)[0] is None


def test_interruption() -> None:
    """A watcher that has enough ends the search."""

    class Impatient(Unwatched):
        def searched(self, done: int, downsets: int) -> None:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        recheck_chains(_generated("mmt", 512, 1.15), Impatient())


def _generated(family: str, batch: int, factor: float) -> GraphClaim:
    model = multi_branch_model(family)
    sizes = tuple(sorted({s for s in model.layers[0].configurations[1][0].micro_batches if batch % s == 0}))
    assert model.micro_batch_size is not None
    setting = Setting(
        32, 2**34, 125 * 10**8, 0, False, batch, model.micro_batch_size, sizes, False, (1,), False, True, True
    )
    costs = graph_model(model, setting)
    work = least_work(costs, setting)
    assert work is not None
    return GraphClaim(costs, setting, "iteration", int(work * factor), "chains")


def test_generated_models() -> None:
    """What the work of all devices does not show of models with many branches, chains do."""
    for family, batch, low, high in (("mmt", 512, 1.15, 1.25), ("candle-uno", 32768, 2.5, 2.8)):
        assert recheck_chains(_generated(family, batch, low), WATCHER)[0] is True
        assert recheck_chains(_generated(family, batch, high), WATCHER)[0] is False


@pytest.mark.slow
def test_a_wide_model() -> None:
    """The same for DLRM, which has ten million downsets that equal branches make twenty thousand of."""
    assert recheck_chains(_generated("dlrm", 512, 13), WATCHER)[0] is True
