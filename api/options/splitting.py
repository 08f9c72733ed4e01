"""Splits of models into stages."""

from __future__ import annotations

from typing import Any

from mtpp.api.options.kinds import Choice, Flag, Quantity, Sizes, Whole
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import Contents
from mtpp.api.options.running import IMPORTS
from mtpp.errors import InputError
from mtpp.names import TORCH
from mtpp.ranges import MOST_SEED

FROM_TORCH = option(
    None, Choice((TORCH,), "format"),
    "torch: MODEL is package.module:function, which is imported and called, and returns a PyTorch module and its args.",
    "FORMAT", more="By default the content decides.",
)  # fmt: skip


class Planned(Options):
    """Things that a plan leaves open."""

    from_format: str | None = FROM_TORCH
    dims: dict[str, int | str] | None = option(
        None, Sizes("Propose the sizes that ‹plan› has not."), "Set a size that ‹plan› has not; '*=1': all others."
    )
    max_input_size: int = option("2GiB", Quantity(), "Refuse larger inputs.", "SIZE")


class Splitting(Options):
    """Terms of a split."""

    check: bool = option(False, Flag(), "Run whole and split on several inputs and compare.")
    inputs: str | dict[str, Any] | None = option(
        None, Contents("the file of inputs"), "For ‹check›: contents of inputs by name [default: random].", "FILE.npz"
    )
    force: bool = option(False, Flag(), "Replace the stages that an earlier run wrote there.")
    seed: int = option(0, Whole(0, MOST_SEED), "Of random inputs and weights.")
    imports: tuple[str, ...] = IMPORTS

    def __post_init__(self) -> None:
        if self.inputs is not None and not self.check:
            raise InputError("are for a check", parameter="inputs", remedy="give ‹check› too, or leave them out")
