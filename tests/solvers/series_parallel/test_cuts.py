"""Cuts into series-parallel pieces: the best there are, by trying every partition of that shape."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import oracles
import pytest
from composed_graphs import branches, composed_graph
from cut_shapes import has_the_shape
from graph_strategies import chain, random_graph

from mtpp.errors import Infeasible, InputError
from mtpp.formats.graphs.native import read_native
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.partitioners import series_parallel
from mtpp.solvers.series_parallel import core_items
from mtpp.solvers.series_parallel.components import Components
from mtpp.solvers.series_parallel.cuts import Cutter
from mtpp.solvers.series_parallel.decomposition import decompose
from mtpp.solvers.series_parallel.kernels.pareto_fronts import MOST_SHARED

SYSTEM = load_device()


def best_of_the_shape(graph: CostGraph, system: Device, k: int) -> int:
    """Return the least bottleneck of all partitions into at most k series-parallel pieces."""
    tree = decompose(graph)
    return min(
        (
            oracles.bottleneck(graph, system, stages, k)
            for stages in oracles.monotone_assignments(graph, k)
            if has_the_shape(graph, tree, stages)
        ),
        default=oracles.NEVER,
    )


def best_cut(instance: Instance, *, most_points: int = 20_000) -> tuple[int, Cutter]:
    """Improve on any cut at all until there is none, and return the last one's bottleneck; checks each on the way."""
    upper = instance.most_ticks + 1
    components = Components(instance, decompose(instance))
    terms = components.groups.terms(upper, most_points)
    cutter = Cutter(components, terms)
    best = oracles.NEVER
    limit = instance.device.memory_bytes
    while (found := cutter.cut(terms._replace(cutoff=upper), lambda: None)) is not None:
        costs = stage_costs(instance, found)
        assert costs.bottleneck < upper
        assert limit is None or (costs.param_bytes + costs.peak_bytes).max() <= limit
        best = upper = costs.bottleneck
    return best, cutter


@pytest.mark.parametrize("seed", range(40))
def test_best_of_all_series_parallel_graphs_of_the_shape(seed: int) -> None:
    """In small series-parallel graphs, with tensors of several readers, no partition into such pieces is better."""
    draw = random.Random(seed)
    graph = composed_graph(
        draw.randint(2, 7), seed, shared=draw.choice((0.0, 0.5, 1.0)), largest_cost=draw.choice((3, 40))
    )
    k = draw.randint(1, 5)
    best, cutter = best_cut(Instance.build(graph, Machine.uniform(k, SYSTEM)))
    assert best == best_of_the_shape(graph, SYSTEM, k)
    assert cutter.coverage() == ""


@pytest.mark.parametrize("seed", range(50))
def test_best_of_all_graphs_of_the_shape(seed: int) -> None:
    """So it is on any small graph: several inputs and outputs, ops apart, cores, whose downsets are all tried."""
    draw = random.Random(seed)
    graph = random_graph(seed, draw.randint(2, 7), consumers_per_tensor=draw.choice((0.6, 1.2, 2.0)), largest_cost=30)
    k = draw.randint(1, 5)
    best, cutter = best_cut(Instance.build(graph, Machine.uniform(k, SYSTEM)))
    assert best == best_of_the_shape(graph, SYSTEM, k)
    assert cutter.coverage() == ""


@pytest.mark.parametrize("seed", range(50))
def test_memories_with_a_reserve(seed: int) -> None:
    """A fast memory is paid for and the stage memory kept to; where no such partition keeps to it, there is none."""
    draw = random.Random(seed)
    fast = draw.choice((None, draw.randint(0, 150)))
    reserve = draw.randint(0, 50 if fast is None else min(50, fast))
    limit = draw.choice((None, reserve + draw.randint(20, 200)))
    system = Device(
        "drawn", 10**12, 10**11, Link(draw.choice((10**11, 10**12, 5 * 10**12))), fast, reserve, "reserve", limit
    )
    graph = random_graph(seed, draw.randint(2, 6), time_unit="ps", largest_cost=40)
    if seed % 2:
        graph = replace(composed_graph(draw.randint(2, 6), seed), time_unit="ps")
    k = draw.randint(1, 4)
    best, _ = best_cut(Instance.build(graph, Machine.uniform(k, system)))
    assert best == best_of_the_shape(graph, system, k)


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_where_every_partition_has_the_shape(seed: int) -> None:
    """Chains, and chains of blocks of one op beside a shortcut: the optimum of all partitions, by brute force."""
    draw = random.Random(seed)
    work, transfer = ([draw.randint(0, 30) for _ in range(8)] for _ in range(2))
    k = draw.randint(1, 4)
    if seed % 2:
        graph = chain(work, transfer[1:])
    else:
        ops = [Op(f"op{v}", work[v]) for v in range(7)]
        readers = [("op1", "op2"), ("op2",), ("op3", "op4"), ("op4",), ("op5", "op6"), ("op6",)]
        tensors = [Tensor(f"t{v}", f"op{v}", found, transfer=transfer[v]) for v, found in enumerate(readers)]
        graph = CostGraph.build(name="blocks", time_unit="1", ops=ops, tensors=tensors)
    best, _ = best_cut(Instance.build(graph, Machine.uniform(k, SYSTEM)))
    assert best == oracles.brute_force_optimum(graph, SYSTEM, k)


def test_reaches_the_known_optima(shared_data: Path, shared_reference: Path) -> None:
    """In these models the best partitions are made of such pieces: all 30 proven optima are met."""
    optima = json.loads((shared_reference / "optima.json").read_text())
    for name, by_k in optima.items():
        graph = read_native((shared_data / "instances" / f"{name}.json").read_bytes(), name)
        for k, optimum in by_k.items():
            found = series_parallel.partition(
                Instance.build(graph, Machine.uniform(int(k), SYSTEM)), SearchLimits(UNLIMITED)
            )
            assert (found.bottleneck, found.stopped, found.coverage) == (optimum, "finished", "")


@pytest.mark.parametrize("seed", range(30))
def test_never_worse_than_slice(seed: int) -> None:
    """On larger graphs with cores the result is a partition no worse than the best cut of the file's order."""
    graph = random_graph(seed, 60, consumers_per_tensor=(0.8, 1.2)[seed % 2])
    if seed % 3 == 0:
        graph = composed_graph(80, seed, largest_cost=10**6)
    instance = Instance.build(graph, Machine.uniform(2 + seed % 7, SYSTEM))
    found = series_parallel.partition(instance, SearchLimits(UNLIMITED))
    sliced = slice_order(instance, instance.order)
    assert sliced is not None
    assert found.bottleneck <= sliced.bottleneck
    assert found.bottleneck == oracles.bottleneck(graph, SYSTEM, found.partition.assignment.tolist(), instance.k)


def test_a_core_with_many_downsets_is_cut_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit on downsets only the file's order counts, in groups of ops if it is long; the result says so."""
    graph = random_graph(7, 40, consumers_per_tensor=1.2)
    instance = Instance.build(graph, Machine.uniform(4, SYSTEM))
    for groups in (1000, 12):
        monkeypatch.setattr(core_items, "MOST_DOWNSETS", 50)
        monkeypatch.setattr(core_items, "MOST_GROUPS", groups)
        best, cutter = best_cut(instance)
        (node,) = (core for core in cutter.components.tree.cores() if len(cutter.components.tree.inside(core)) > 9)
        count = len(cutter.components.tree.inside(node))
        which = f"1 of {len(cutter.cores)} cores" if len(cutter.cores) > 1 else "the core"
        assert cutter.coverage() == f"{which} cut along the file's order only ({count} ops)"
        assert len(cutter.cores[cutter.components.component_of[node]].groups) == min(count, groups)
        assert best < instance.most_ticks
    found = series_parallel.partition(instance, SearchLimits(UNLIMITED))
    assert found.coverage == cutter.coverage()


def test_thinned_fronts_still_give_partitions() -> None:
    """With room for few points cuts may be missed, never wrong, and the result says so."""
    instance = Instance.build(composed_graph(60, 5, largest_cost=10**6), Machine.uniform(5, SYSTEM))
    best, whole = best_cut(instance)
    assert whole.coverage() == ""
    rough, cutter = best_cut(instance, most_points=3)
    assert cutter.coverage() == "fronts thinned"
    assert best <= rough < instance.most_ticks


@pytest.mark.parametrize("seed", range(10))
def test_more_shared_tensors_than_flags(seed: int) -> None:
    """Of an op with very many tensors of several readers, some are paid for twice: never too little, and it is said."""
    draw = random.Random(seed)
    ops = [Op(name, draw.randint(1, 9)) for name in ("in", "a", "b", "c", "out")]
    tensors = [Tensor(f"t{i}", "in", ("a", "b", "c")[: 2 + i % 2], transfer=i % 3 + 1) for i in range(MOST_SHARED + 3)]
    tensors += [Tensor(f"out of {name}", name, ("out",), transfer=1) for name in "abc"]
    graph = CostGraph.build(name="many", time_unit="1", ops=ops, tensors=tensors)
    instance = Instance.build(graph, Machine.uniform(3, SYSTEM))
    best, cutter = best_cut(instance)
    assert cutter.coverage() == f"tensors beyond {MOST_SHARED} of one op paid for by each reader"
    assert best_of_the_shape(graph, SYSTEM, 3) <= best <= instance.most_ticks


def test_equal_branches_are_one_piece() -> None:
    """However many equal branches there are, the pieces are as many, and the best cut is that of the shape."""
    components = [len(_components(branches(count, 3)).distinct) for count in (2, 4, 16)]
    assert len(set(components)) == 1
    graph = branches(2, 3)
    for k in (2, 3, 4):
        assert best_cut(Instance.build(graph, Machine.uniform(k, SYSTEM)))[0] == best_of_the_shape(graph, SYSTEM, k)


def _components(graph: CostGraph) -> Components:
    return Components(Instance.build(graph, Machine.uniform(2, SYSTEM)), decompose(graph))


def test_equal_cores_are_one_piece() -> None:
    """Two bridges of the same costs in a row are one piece, a third of other costs is another; the cut is right."""
    ops = [Op(f"op{v}", 3 + (v > 6)) for v in range(10)]
    tensors = []
    for first in (0, 3, 6):
        a, b, c, d = (f"op{first + i}" for i in range(4))
        tensors += [
            Tensor(f"{first}a", a, (b, c), transfer=2),
            Tensor(f"{first}b", b, (c, d), transfer=1),
            Tensor(f"{first}c", c, (d,), transfer=5),
        ]
    graph = CostGraph.build(name="bridges", time_unit="1", ops=ops, tensors=tensors)
    instance = Instance.build(graph, Machine.uniform(4, SYSTEM))
    best, cutter = best_cut(instance)
    assert len(cutter.components.tree.cores()) == 3
    assert len(cutter.cores) == 2
    assert best == oracles.brute_force_optimum(graph, SYSTEM, 4)


def test_stops_when_told_to() -> None:
    """Interrupted, out of evaluations, or at the bound, it returns the best partition so far and says why."""
    instance = Instance.build(composed_graph(60, 5, largest_cost=10**6), Machine.uniform(5, SYSTEM))
    sliced = slice_order(instance, instance.order)
    best = series_parallel.partition(instance, SearchLimits(UNLIMITED))
    assert sliced is not None
    assert best.bottleneck < sliced.bottleneck
    assert (best.found_by, best.stopped) == ("series-parallel", "finished")
    asked = iter([False] * 40 + [True] * 10**6)
    for limits, stopped in (
        (SearchLimits(1), "budget"),
        (SearchLimits(UNLIMITED, interrupted=lambda: True), "interrupted"),
        (SearchLimits(UNLIMITED, interrupted=lambda: next(asked)), "interrupted"),
        (SearchLimits(UNLIMITED, lower_bound=sliced.bottleneck), "optimal"),
    ):
        found = series_parallel.partition(instance, limits)
        assert (found.bottleneck, found.found_by, found.stopped) == (sliced.bottleneck, "slice", stopped)
    found = series_parallel.partition(instance, SearchLimits(UNLIMITED, lower_bound=best.bottleneck))
    assert (found.bottleneck, found.stopped) == (best.bottleneck, "optimal")
    found = series_parallel.partition(instance, SearchLimits(4))
    assert (found.evaluations, found.stopped) == (4, "budget")
    assert best.bottleneck <= found.bottleneck <= sliced.bottleneck


def test_memories_that_cannot_be_met_or_told() -> None:
    """No partition within the stage memory reads so; peaks in the graph's order are refused."""
    graph = random_graph(3, 12, time_unit="us")
    heaviest = int(graph.param_bytes.max())
    tight = SYSTEM.overriding(memory_bytes=heaviest)
    with pytest.raises(
        Infeasible, match="none found: no cut of its series-parallel pieces into 2 stages keeps each to"
    ):
        series_parallel.partition(Instance.build(graph, Machine.uniform(2, tight)), SearchLimits(UNLIMITED))
    in_order = SYSTEM.overriding(memory_bytes=300, peak="order")
    with pytest.raises(InputError, match="peak reserve"):
        series_parallel.partition(Instance.build(graph, Machine.uniform(4, in_order)), SearchLimits(UNLIMITED))
