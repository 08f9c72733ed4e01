"""Whether the kernels are compiled, and compiling them all."""

from __future__ import annotations

from pathlib import Path

from mtpp.graph import CostGraph, Op, Tensor
from mtpp.instance import Instance
from mtpp.system import load_system


def compiled() -> bool:
    """Return whether the outermost kernels have machine code on disk.

    Only a forecast, to warn of a wait: code for another processor or an older source is compiled anew all the same.
    """
    from mtpp.solvers.kernels.random_orders import best_random_order
    from mtpp.solvers.kernels.slicing import best_segmentation, fewest_stages

    return all(_on_disk(kernel) for kernel in (best_random_order, best_segmentation, fewest_stages))


def _on_disk(kernel: object) -> bool:
    folder = getattr(getattr(kernel, "stats", None), "cache_path", "")
    name = getattr(kernel, "__name__", "")
    return bool(folder) and any(Path(folder).glob(f"*.{name}-*.nbi"))


def compile_all() -> int:
    """Compile every kernel by solving a tiny problem with every solver; return the number of solvers run."""
    from mtpp.solvers.fewest import find_fewest_stages
    from mtpp.solvers.registry import PARTITIONERS
    from mtpp.solvers.search import SearchLimits

    graph = CostGraph.build(
        name="warmup",
        time_unit="ps",
        ops=[Op(name, 3) for name in "abcd"],
        tensors=[Tensor("t", "a", ("b", "c"), transfer=1), Tensor("u", "c", ("d",), transfer=1)],
    )
    instance = Instance.build(graph, load_system(), 2)
    for entry in PARTITIONERS.values():
        entry.load()(instance, SearchLimits(evaluations=4))
    find_fewest_stages(instance, 12, SearchLimits(evaluations=2))
    return len(PARTITIONERS) + 1
