"""Measurements of ops on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.api.options.kinds import Flag, MemoryLimit, Quantity, Sizes, Whole
from mtpp.api.options.machine import preset_names
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.api.options.running import IMPORTS, INPUTS
from mtpp.api.options.splitting import FROM_TORCH
from mtpp.ranges import MOST_SEED, MOST_THREADS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from mtpp.array_types import Array
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.machine.device import Device


class Profiling(Options):
    """Terms of a profile."""

    warmup: int = option(3, Whole(0), "Runs that do not count.")
    repeats: int = option(20, Whole(1, 10_000), "Runs that count.")
    threads: int = option(1, Whole(1, MOST_THREADS), "Of one kernel.", more="Kernels run one after the other.")
    optimise: bool = option(
        False, Flag(), "Let ONNX Runtime fuse and rearrange ops; a fused kernel's time is shared out."
    )
    beside: int = option(
        0, Whole(0, 1024), "Run an ONNX model N times more at the same time: stages have others beside them.", "N"
    )
    backward: bool = option(False, Flag(), "Of an exported program: measure the backward pass of each op too.")
    inputs: Mapping[str, Array] | str | os.PathLike[str] | None = INPUTS
    seed: int = option(0, Whole(0, MOST_SEED), "Of all that is made up.")
    imports: Iterable[str] = IMPORTS
    from_format: str | None = FROM_TORCH
    dims: SizeTerms | str | None = option(
        None, Sizes("Propose the sizes that are left open."),
        "Set a size that the model leaves open; '*=1': all others.",
        more="Sizes that a model was read for hold unless they are set here.",
    )  # fmt: skip
    system: Device | str | os.PathLike[str] | None = option(
        None, InputPath("the system", names=preset_names, other="Device"), "Whose modelled costs to compare with.",
        "NAME|FILE",
    )  # fmt: skip
    memory_limit: int | str | None = option(
        None, MemoryLimit(), "Of all processes together, at least 512MiB; an ONNX model is run in pieces if need be "
        "[default: what is free].", "SIZE", more="In Python: what the model's values may take.",
    )  # fmt: skip
    max_input_size: int | str = option("2GiB", Quantity(), "Refuse larger files.", "SIZE")
