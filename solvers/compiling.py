"""Whether the kernels are compiled, and compiling them all."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mtpp.errors import Infeasible
from mtpp.graph import CostGraph, Op, Tensor
from mtpp.instance import Instance
from mtpp.system import System, load_system, override


def compiled(instance: Instance) -> bool:
    """Return whether the outermost kernels that *instance* needs have machine code on disk.

    Only a forecast, to warn of a wait: code for another processor or an older source is compiled anew all the same.
    """
    from mtpp.solvers.kernels.annealing import anneal
    from mtpp.solvers.kernels.decoders import cut_fitness
    from mtpp.solvers.kernels.slicing import best_segmentation, fewest_stages
    from mtpp.solvers.kernels.working_memory import window_peaks

    kernels: list[object] = [anneal, cut_fitness, best_segmentation, fewest_stages]
    if instance.peaks_in_order:
        kernels.append(window_peaks)
    return all(_on_disk(kernel) for kernel in kernels)


def _on_disk(kernel: object) -> bool:
    folder = getattr(getattr(kernel, "stats", None), "cache_path", "")
    name = getattr(kernel, "__name__", "")
    return bool(folder) and any(Path(folder).glob(f"*.{name}-*.nbi"))


def compile_all() -> int:
    """Compile every kernel by solving a tiny problem with every solver; return the number of solvers run.

    Once without and once with peaks in order, which kernels are compiled for separately.
    """
    from mtpp.solvers.coarsening import coarsen
    from mtpp.solvers.fewest import find_fewest_stages
    from mtpp.solvers.registry import PARTITIONERS
    from mtpp.solvers.search import SearchLimits

    system = load_system()
    for known in (system, override(system, stage_memory_bytes=5, peak="order")):
        load_kernels(PARTITIONERS, known)
        find_fewest_stages(tiny_instance(known), 12, SearchLimits(evaluations=2))
    coarsen(tiny_instance(system), 2)
    return len(PARTITIONERS) + 1


def load_kernels(algorithms: Iterable[str], system: System) -> None:
    """Have the kernels of some partitioners ready, so that a clock on their next run shows the search alone."""
    from mtpp.solvers.registry import PARTITIONERS
    from mtpp.solvers.search import SearchLimits

    for name in algorithms:
        with suppress(Infeasible):  # a hard limit on memory may be too small even for this
            PARTITIONERS[name].load()(tiny_instance(system), SearchLimits(evaluations=40))


def tiny_instance(system: System) -> Instance:
    """Return the smallest problem that makes every kernel run."""
    graph = CostGraph.build(
        name="warmup",
        time_unit="ps",
        ops=[Op(name, 3, param_bytes=1) for name in "abcd"],
        tensors=[Tensor("t", "a", ("b", "c"), 1, transfer=1), Tensor("u", "c", ("d",), 1, transfer=1)],
    )
    return Instance.build(graph, system, 2)
