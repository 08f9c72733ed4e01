"""Runs of stages as processes: of pipelines that infer, and of those that train."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.api.options.kinds import Choice, Cores, Flag, Module, Repeated, Seconds, Whole
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import Contents
from mtpp.names import TORCH
from mtpp.ranges import MOST_SEED, MOST_THREADS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from mtpp.array_types import Array


IMPORTS = option(
    (), Repeated(Module()), "Import this Python module first: it registers operators with PyTorch (repeatable).",
    "MODULE", more="Processes of a run import it too. A module that a file names is not imported unless it is given.",
)  # fmt: skip

INPUTS = option(None, Contents("the file of inputs"), "Contents of the inputs by name [default: random].", "FILE.npz")


class Pipelining(Options):
    """A pipeline that infers."""

    batches: int | None = option(
        None, Whole(1, 10**7), "To be timed [default: 200, or as many as take 30 s, at least 5].",
    )  # fmt: skip
    warmup: int | None = option(
        None, Whole(0, 10**6), "Batches before those [default: 10, fewer where they take long]."
    )
    pin: Sequence[int] | str | None = option(
        None, Cores(), "Keep each worker to a core of its own, of these or of all [default: leave that to the system].",
        "[CORE,…]",
    )  # fmt: skip
    queue_depth: int = option(2, Whole(1, 1000), "Batches that may wait between two stages.")
    inputs: str | os.PathLike[str] | Mapping[str, Array] | None = INPUTS
    optimise: bool = option(False, Flag(), "Let ONNX Runtime fuse ops [default: as `mtpp profile` measures them].")
    from_format: str | None = option(
        None, Choice((TORCH,), "format"),
        "torch: ‹model› is package.module:function, which is imported and called, and returns a PyTorch module and its "
        "args.", "FORMAT", more="By default the content decides.",
    )  # fmt: skip


class Training(Options):
    """A pipeline that trains."""

    steps: int = option(5, Whole(1, 10**6), "Iterations.", more="The first of several is not counted in times.")
    compare: bool = option(
        True, Flag(), "Leave out the unsplit model: nothing is compared with it, and programs may draw random numbers.",
        more="With it, losses, gradients and buffers have to be equal.",
    )  # fmt: skip


class Workers(Options):
    """Processes of either pipeline."""

    threads: int = option(1, Whole(1, MOST_THREADS), "Of each worker.")
    seed: int = option(0, Whole(0, MOST_SEED), "Of made-up values.")
    imports: Iterable[str] = IMPORTS
    time_limit_s: float | None = option(None, Seconds(), "End the run then.", "S")
