"""Compilation of the kernels that run searches again, before the first one needs them."""

from __future__ import annotations

from fractions import Fraction

from mtpp.solvers.jit import on_disk


def recheck_compiled() -> bool:
    """Return whether the kernel that runs downset searches again has machine code on disk."""
    from mtpp.solvers.recheck.kernels.downsets import search_again

    return on_disk(search_again)


def load_recheck() -> None:
    """Have the kernels ready that run downset searches again."""
    from mtpp.solvers.recheck.claim import DownsetClaim, Edge, StageMemory
    from mtpp.solvers.recheck.compiled import Unwatched, search_compiled

    edges = (Edge(1, 0, (1,)), Edge(1, 1, (2,)))
    memory = StageMemory(None, None, 1, 0, (), ())
    claim = DownsetClaim((9, 9, 9), (0, 0, 0), edges, memory, 3, 11, crossings=True, maximal=True)
    search_compiled(claim, 10, 10, Unwatched())


def load_training_recheck() -> None:
    """Have the kernels ready that search all training plans again."""
    from mtpp.checker.training.model import LayerOption, TickModel
    from mtpp.solvers.recheck.pipelines import Unwatched
    from mtpp.solvers.recheck.training import search_plans

    lean, fast = LayerOption("lean", 3, 1, 1, 1, {}, {}, True), LayerOption("fast", 2, 1, 3, 1, {}, {}, False)
    model = TickModel("ps", ["a", "b"], [{1: [lean, fast]}, {1: [lean, fast]}], [(0, 1, 1)], [1], [1, 1])
    schemes = {"data_parallel": True, "tensor_parallel": True, "recompute": True}
    system = {"devices": 2, "max_micro_batches": 2, "exact_micro_batches": False, "convention": "paper", **schemes}
    search_plans(model, system, None, 7, Unwatched())
    levels = [{"devices": devices, "bandwidth_bytes_per_s": 10**12} for devices in (2, 1)]
    search_plans(model, {**system, "topology": levels}, None, 7, Unwatched())
    _load_chains()


def _load_chains() -> None:
    from mtpp.checker.training.graphpipe.bounds import GraphClaim
    from mtpp.checker.training.graphpipe.costs import GraphModel, LayerChoice, Passes
    from mtpp.checker.training.graphpipe.setting import Setting
    from mtpp.solvers.recheck.graphpipe.chains import recheck_chains
    from mtpp.solvers.recheck.pipelines import Unwatched

    one = LayerChoice("plain", 1, 1, {1: Passes(1, 2, 1)}, Fraction(3), Fraction(1))
    model = GraphModel("ps", ["a", "b"], [[one], [one]], [frozenset(), frozenset()], [(0, 1, 1)], 1)
    setting = Setting(2, 9, 10**12, 0, False, 2, 1, (1,), False, (1,), False, True, True)
    recheck_chains(GraphClaim(model, setting, "iteration", 9, "chains"), Unwatched())
