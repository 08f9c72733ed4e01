"""Compilation of the kernels ahead of time, and a forecast of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import count

from mtpp.errors import Infeasible
from mtpp.inference.certificate import Tier
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.system import System
from mtpp.solvers.jit import on_disk
from mtpp.solvers.machine_code.shipped import ships_code

_WHOLE = ("auto", "downset")
_SEARCHES = ("anneal", "brkga")
_LOOKS = 200


def compiled(instance: Instance, algorithms: Iterable[str]) -> bool:
    """Return whether the outermost kernels that *instance* and some partitioners need have machine code on disk.

    Only a forecast, to warn of a wait: code for another processor or an older source is compiled anew all the same.
    A package that ships code has all of it, but not by itself what is part of larger kernels.
    """
    if ships_code():
        return True
    from mtpp.solvers.orders.kernels.slicing import best_segmentation, fewest_stages

    names = set(algorithms)
    whole = not names.isdisjoint(_WHOLE)
    kernels: list[object] = [best_segmentation, fewest_stages]
    if whole or "anneal" in names:
        from mtpp.solvers.local_search.kernels.annealing import anneal

        kernels.append(anneal)
    if whole or "brkga" in names:
        from mtpp.solvers.orders.kernels.decoders import cut_fitness

        kernels.append(cut_fitness)
    if whole:
        from mtpp.solvers.downsets.kernels.downsets import search_downsets
        from mtpp.solvers.reduction.kernels.pair_merges import find_pairs

        kernels += [find_pairs, search_downsets]
    from mtpp.solvers.local_search.kernels.moves import memory_after
    from mtpp.solvers.memory.kernels.working_memory import window_peaks

    if instance.memory_matters and (whole or "anneal" in names):
        kernels.append(memory_after)
    if instance.peaks_in_order:
        kernels.append(window_peaks)
    if "series-parallel" in names:
        from mtpp.solvers.series_parallel.kernels.pareto_fronts import side_by_side
        from mtpp.solvers.series_parallel.kernels.series_front import series_front

        kernels += [side_by_side, series_front]
    return all(on_disk(kernel) for kernel in kernels)


def load_bounds(names: Iterable[str], system: System) -> None:
    """Have the kernels of some lower bounds ready; what rests on a MIP solver has none."""
    from mtpp.solvers.bounds.limits import BoundLimits
    from mtpp.solvers.bounds.registry import bound_entry
    from mtpp.solvers.orders.slicing import slice_order

    entries = [entry for entry in map(bound_entry, names) if entry.tier is not Tier.SOLVER]
    for instance in tiny_instances(system):
        with suppress(Infeasible):
            cut = slice_order(instance, instance.order)
            if cut is None:
                continue
            for entry in entries:
                entry.load()(instance, BoundLimits(cut.bottleneck, cut.partition, interrupted=_after_looks()))


def _after_looks() -> Callable[[], bool]:
    """Return what tells that it is enough after so many questions: some bounds go on as long as there is time."""
    looks = count()
    return lambda: next(looks) > _LOOKS


def load_kernels(algorithms: Iterable[str], system: System, most_ops: int = 0) -> None:
    """Have the kernels of some partitioners ready, so that a clock on their next run shows the search alone.

    Parameters
    ----------
    most_ops
        Of a graph to come: large ones are contracted, which takes kernels of its own.
    """
    from mtpp.solvers.bounds.cheap import CHEAP
    from mtpp.solvers.limits import SearchLimits
    from mtpp.solvers.local_search.multilevel import LARGE
    from mtpp.solvers.reduction.coarsening import coarsen
    from mtpp.solvers.registry import PARTITIONERS

    names = set(algorithms)
    whole = not names.isdisjoint(_WHOLE)
    if whole:  # what is proven optimal at once needs none of their parts
        names.update(_SEARCHES)
    for instance in tiny_instances(system):
        for name in sorted(names):
            if instance.peaks_in_order and not PARTITIONERS[name].peaks_in_order:
                continue
            with suppress(Infeasible):  # the clock is for runs that follow: what one refuses is said there
                PARTITIONERS[name].load()(instance, SearchLimits(evaluations=40))
        if whole:
            _search_downsets(instance)
    if whole:
        load_bounds(CHEAP, system)
        if most_ops > LARGE:
            coarsen(instance, 2)


def _search_downsets(instance: Instance) -> None:
    """Run a search over downsets, which a tiny problem may be solved without."""
    from mtpp.solvers.downsets.downset import DownsetSearch
    from mtpp.solvers.downsets.enumeration import downset_problem

    problem = downset_problem(instance)
    DownsetSearch(problem, (problem.whole_ticks or instance.most_ticks) - 1, 2**16).run(1)


def tiny_instances(system: System) -> list[Instance]:
    """Return the smallest problems that make every kernel run that an instance on *system* may need.

    One for instances that fit into its memories as a whole, and one, where there are any, for those that do not.
    """
    graph = CostGraph.build(
        name="warmup",
        time_unit="ps",
        ops=[Op(name, 3, param_bytes=1) for name in "abcdefgh"],
        tensors=[
            Tensor("t", "a", ("b", "c"), 1, transfer=1),
            Tensor("u", "c", ("d",), 1, transfer=1),
            Tensor("v", "c", ("d",), 1, transfer=1),  # two edges side by side
            Tensor("w", "d", ("e",), 1, transfer=1),
            Tensor("x", "e", ("f", "g"), 1, transfer=1),  # and a bridge from e to h, neither series nor parallel
            Tensor("y", "f", ("g", "h"), 1, transfer=1),
            Tensor("z", "g", ("h",), 1, transfer=1),
        ],
    )
    roomy = replace(system, fast_memory_bytes=None, stage_memory_bytes=None)
    systems = [roomy]
    if system.limits_memory:
        systems.append(replace(roomy, fast_memory_bytes=0, activation_reserve_bytes=0, bandwidth_bytes_per_s=10**9))
    return [Instance.build(graph, one, 2) for one in systems]
