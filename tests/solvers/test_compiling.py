"""Kernels that are compiled ahead of time: those that real runs need."""

from __future__ import annotations

from typing import Any

import pytest
from downset_proofs import narrow_case
from graph_strategies import LINK, random_graph

from mtpp.inference.instance import Instance
from mtpp.inference.system import override
from mtpp.solvers.compiling import compiled, load_kernels, tiny_instances
from mtpp.solvers.downsets.kernels.downset_store import rebuild_table
from mtpp.solvers.downsets.kernels.downsets import search_downsets
from mtpp.solvers.flows.kernels.max_flow import max_flow
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.local_search.kernels.annealing import anneal
from mtpp.solvers.local_search.kernels.moves import fill_state
from mtpp.solvers.local_search.kernels.polishing import polish
from mtpp.solvers.orders.kernels.decoders import cut_fitness
from mtpp.solvers.recheck.compiled import Unwatched, search_compiled
from mtpp.solvers.recheck.compiling import load_recheck, recheck_compiled
from mtpp.solvers.recheck.kernels.downsets import search_again
from mtpp.solvers.reduction.kernels.pair_merges import find_pairs
from mtpp.solvers.registry import partitioner
from mtpp.solvers.series_parallel.kernels.core_front import core_front, core_stages
from mtpp.solvers.series_parallel.kernels.pareto_fronts import side_by_side
from mtpp.solvers.series_parallel.kernels.series_front import series_front

KERNELS: list[Any] = [anneal, cut_fitness, fill_state, polish, search_downsets, find_pairs, max_flow, rebuild_table]
WHOLE = ["auto", "downset"]


def _machine_codes() -> list[int]:
    return [len(kernel.signatures) for kernel in KERNELS]


@pytest.mark.parametrize("peak", ["reserve", "order"])
@pytest.mark.parametrize("fast_memory", [None, 300, 10**9])
def test_nothing_is_left_to_compile(fast_memory: int | None, peak: str) -> None:
    """Whether a graph fits into the fast memory or not, its search finds all kernels ready."""
    system = override(LINK, fast_memory_bytes=fast_memory, peak=peak)
    load_kernels(WHOLE, system)
    before = _machine_codes()
    instance = Instance.build(random_graph(4, 30, time_unit="us"), system, 3)
    for name in (*WHOLE, "anneal", "brkga"):
        partitioner(name).load()(instance, SearchLimits(40))
    assert _machine_codes() == before
    assert compiled(instance, WHOLE)


def test_a_problem_for_each_kind_of_kernel() -> None:
    """Without memories one is enough; with them a graph may fit, or not, and a limit on stages may be too small."""
    assert [one.memory_matters for one in tiny_instances(LINK)] == [False]
    for fields in ({"fast_memory_bytes": 10**6}, {"stage_memory_bytes": 1}):
        for peak in ("reserve", "order"):
            instances = tiny_instances(override(LINK, peak=peak, **fields))
            assert [one.memory_matters for one in instances] == [False, True]
            assert [one.peaks_in_order for one in instances] == [False, peak == "order"]


@pytest.mark.slow
def test_nothing_is_left_to_compile_for_pieces_and_cores() -> None:
    """Series, pieces side by side and cores of a graph find their kernels ready."""
    system = override(LINK, fast_memory_bytes=300)
    load_kernels(["series-parallel"], system)
    kernels: list[Any] = [series_front, side_by_side, core_stages, core_front]
    assert [len(kernel.signatures) for kernel in kernels] == [1, 1, 1, 1]
    for memory in (None, 300):
        instance = Instance.build(random_graph(4, 30, time_unit="us"), override(LINK, fast_memory_bytes=memory), 3)
        partitioner("series-parallel").load()(instance, SearchLimits(40))
        assert compiled(instance, ["series-parallel"])
    assert [len(kernel.signatures) for kernel in kernels] == [1, 1, 1, 1]


@pytest.mark.slow
def test_nothing_is_left_to_compile_for_searches_run_again() -> None:
    """A proof by all rules finds the kernels of its cuts and of its search ready."""
    load_recheck()
    kernels: list[Any] = [max_flow, search_again]
    before = [len(kernel.signatures) for kernel in kernels]
    assert min(before) > 0
    for seed in range(5):
        case = narrow_case(seed)
        search_compiled(case.claim(case.optimum, ["crossings", "fit", "maximal"]), 100, 100, Unwatched())
    assert [len(kernel.signatures) for kernel in kernels] == before
    assert recheck_compiled()
