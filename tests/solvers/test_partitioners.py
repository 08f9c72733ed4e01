"""Every partitioner on every kind of graph: valid, never below OPT, above no bound, and the same for any jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import onnx
import oracles
import pytest
from graph_strategies import problems, random_graph
from hypothesis import given, settings

from mtpp.errors import Infeasible
from mtpp.formats.graphs.native import read_native
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck, stage_costs
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.names import FILL, MEMORY
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.registry import PARTITIONERS, default_orders, partitioner

SYSTEM = load_device()

WITHOUT_LIMITS = sorted(set(PARTITIONERS) - {MEMORY, FILL})
"""Partitioners that need no limit on memory."""


@settings(max_examples=150)
@given(problems(max_ops=6, stage_memory=True))
def test_between_the_bound_and_every_partition(problem: tuple[CostGraph, Device, int]) -> None:
    """The simple bound ≤ OPT ≤ every partitioner's bottleneck, and the bottleneck is that of the partition.

    Where no partition keeps to the stage memory, none is found.
    """
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    optimum = oracles.brute_force_optimum(graph, system, k)
    bound = simple_bound(instance)
    assert bound.value <= optimum
    for name in WITHOUT_LIMITS if system.memory_bytes is None else PARTITIONERS:
        if instance.peaks_in_order and not PARTITIONERS[name].peaks_in_order:
            continue
        search = partitioner(name).load()
        limits = SearchLimits(20, lower_bound=bound.value)
        if optimum == oracles.NEVER:
            with pytest.raises(Infeasible, match=r"(none found|proven infeasible): "):
                search(instance, limits)
            continue
        try:
            found = search(instance, limits)
        except Infeasible:
            assert system.memory_bytes is not None  # there is a partition, but none of the orders tried has it
            continue
        assert optimum <= found.bottleneck < oracles.NEVER
        assert found.bottleneck == oracles.bottleneck(graph, system, found.partition.assignment.tolist(), k)


@pytest.mark.parametrize("peak", ["reserve", "order"])
@pytest.mark.parametrize("name", WITHOUT_LIMITS)
def test_memory_without_end_is_no_memory(name: str, peak: str) -> None:
    """With memories that nothing can fill the result is the one without, for both kinds of peak."""
    graph = random_graph(8, 40, time_unit="us")
    endless = SYSTEM.overriding(fast_memory_bytes=2**60, memory_bytes=2**60, peak=peak)
    results = [
        partitioner(name).load()(Instance.build(graph, Machine.uniform(5, system)), SearchLimits(200, seed=2))
        for system in (SYSTEM, endless)
    ]
    assert results[0].partition.assignment.tolist() == results[1].partition.assignment.tolist()
    assert results[0].bottleneck == results[1].bottleneck


def test_a_memory_that_few_orders_keep_to() -> None:
    """Orders that cannot be cut are passed over: the file's own cannot, some random ones can, with any threads."""
    graph = random_graph(3, 24, time_unit="us", shuffled=False)
    instance = Instance.build(graph, Machine.uniform(5, SYSTEM.overriding(peak="order", memory_bytes=300)))
    assert slice_order(instance, instance.order) is None
    with pytest.raises(Infeasible, match="none found: no cut of the file's order into 5 stages keeps each to 300 "):
        partitioner("slice").load()(instance, SearchLimits(1))
    for name in ("random", "auto"):
        results = [partitioner(name).load()(instance, SearchLimits(200, jobs=jobs)) for jobs in (1, 2)]
        assert results[0].partition.assignment.tolist() == results[1].partition.assignment.tolist()
        costs = stage_costs(instance, results[0].partition)
        assert (costs.param_bytes + costs.peak_bytes).max() <= 300
        assert costs.bottleneck == results[0].bottleneck
    tighter = Instance.build(graph, Machine.uniform(5, SYSTEM.overriding(peak="order", memory_bytes=250)))
    with pytest.raises(Infeasible, match="none found: no cut of 40 random orders into 5 stages"):
        partitioner("random").load()(tighter, SearchLimits(40))
    with pytest.raises(Infeasible, match=r"none found: no cut of [0-9,]+ orders into 5 stages"):
        partitioner("auto").load()(tighter, SearchLimits(40))


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize("name", WITHOUT_LIMITS)
def test_same_result_for_any_number_of_threads(name: str, k: int) -> None:
    """The partition depends on the seed and the budget alone."""
    instance = Instance.build(random_graph(3, 40), Machine.uniform(k, SYSTEM))
    results = [partitioner(name).load()(instance, SearchLimits(1500, seed=5, jobs=jobs)) for jobs in (1, 2, 3)]
    assert len({tuple(result.partition.assignment.tolist()) for result in results}) == 1
    assert len({(result.evaluations, result.stopped, result.found_by) for result in results}) == 1


def test_other_seeds_give_other_orders() -> None:
    """The seed reaches the random orders."""
    instance = Instance.build(random_graph(4, 60), Machine.uniform(6, SYSTEM))
    found = {
        tuple(partitioner("random").load()(instance, SearchLimits(30, seed=seed)).partition.assignment.tolist())
        for seed in range(4)
    }
    assert len(found) > 1


@pytest.mark.parametrize("k", [2, 3, 7])
def test_slicing_a_bad_order_costs_k_times_the_optimum(k: int) -> None:
    """Lemma B.2 of Archer et al. (2024): heavy ops 1 … k, light ops k + 1 … 2k, and one edge (1, k + 1) of 10k.

    With ε = 1/100 and costs in hundredths, OPT is 100; the order 1, …, k, 2k, …, k + 1 can only be left uncut.
    """
    heavy = [Op(f"heavy{i}", 99) for i in range(k)]
    light = [Op(f"light{i}", 1) for i in reversed(range(k))]
    edge = Tensor("t", "heavy0", ("light0",), transfer=1000 * k)
    graph = CostGraph.build(name="B.2", time_unit="1", ops=[*heavy, *light], tensors=[edge])
    instance = Instance.build(graph, Machine.uniform(k, SYSTEM))
    assert graph.order.tolist() == list(range(2 * k))
    sliced = partitioner("slice").load()(instance, SearchLimits(1))
    assert sliced.bottleneck == k * 100
    assert simple_bound(instance).value == 100
    pairs = [stage for ops in (range(k), reversed(range(k))) for stage in ops]
    assert oracles.bottleneck(graph, SYSTEM, pairs, k) == 100


def test_peaks_in_order_get_fewer_evaluations() -> None:
    """They make an evaluation dearer, so a budget of equal time has fewer; never none."""
    graph = random_graph(5, 300, time_unit="us", shuffled=False)
    systems = [replace(SYSTEM, fast_memory_bytes=1, peak=peak) for peak in ("reserve", "order")]
    for entry in PARTITIONERS.values():
        plain, slow = (entry.budget(Instance.build(graph, Machine.uniform(8, system))) for system in systems)
        assert plain >= slow > 0
        assert plain == UNLIMITED or plain > 2 * slow


def test_slice_order_respects_the_cutoff() -> None:
    """Only partitions strictly below the cutoff count."""
    instance = Instance.build(random_graph(1, 30), Machine.uniform(4, SYSTEM))
    best = slice_order(instance, instance.order)
    assert best is not None
    assert slice_order(instance, instance.order, best.bottleneck) is None
    again = slice_order(instance, instance.order, best.bottleneck + 1)
    assert again is not None
    assert again.bottleneck == best.bottleneck == bottleneck(instance, again.partition)


def proven(instance: Instance) -> tuple[int, int]:
    """Return the bottleneck and the best lower bound of ``auto`` with its default budget."""
    entry, simple = partitioner("auto"), simple_bound(instance).value
    found = entry.load()(instance, SearchLimits(entry.budget(instance), lower_bound=simple, jobs=2))
    return found.bottleneck, max(simple, 0 if found.lower is None else found.lower.value)


def test_proves_the_known_optima(shared_data: Path, shared_reference: Path) -> None:
    """On the shared instances bottleneck and bound meet at the optimum that another exact method has found."""
    optima = json.loads((shared_reference / "optima.json").read_text())
    assert sum(map(len, optima.values())) == 30
    for name, by_k in optima.items():
        graph = read_native((shared_data / "instances" / f"{name}.json").read_bytes(), name)
        for k, optimum in by_k.items():
            assert proven(Instance.build(graph, Machine.uniform(int(k), SYSTEM))) == (optimum, optimum)


LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_proves_the_light_models_optimal(path: Path) -> None:
    """Every light model of the onnx package, for all usual numbers of stages."""
    graph = read_graph(read_source(str(path)), dims={}, system=SYSTEM)
    for k in (2, 4, 8, 16, 32):
        bottleneck_found, bound = proven(Instance.build(graph, Machine.uniform(k, SYSTEM)))
        assert bottleneck_found == bound


@pytest.mark.parametrize("name", ["bert-base", "resnet50", "vit-base", "efficientnet", "convnext", "tinyllama"])
def test_proves_exported_models_optimal(name: str, shared_data: Path) -> None:
    """Transformers and convolutional networks of up to 1,416 ops, read from ONNX."""
    graph = read_graph(read_source(str(shared_data / "onnx" / f"{name}.onnx")), dims={}, system=SYSTEM)
    for k in (2, 4, 8, 16, 32):
        bottleneck_found, bound = proven(Instance.build(graph, Machine.uniform(k, SYSTEM)))
        assert bottleneck_found == bound


def test_random_comes_close_on_bert(shared_data: Path, shared_reference: Path) -> None:
    """Random orders within the default budget come within 2 % of BERT-base's optimum at k = 8."""
    optimum = json.loads((shared_reference / "optima.json").read_text())["bert-base"]["8"]
    graph = read_native((shared_data / "instances" / "bert-base.json").read_bytes(), "bert-base")
    instance = Instance.build(graph, Machine.uniform(8, SYSTEM))
    limits = SearchLimits(default_orders(instance), jobs=2)
    found = partitioner("random").load()(instance, limits)
    assert optimum <= found.bottleneck <= 1.02 * optimum
