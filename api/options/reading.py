"""Ways in which a file becomes a graph, and the machine that the graph is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.api.options.kinds import Choice, Flag, InputPath, Quantity, Sizes, Text
from mtpp.api.options.machine import System
from mtpp.api.options.option import Options, option
from mtpp.names import FORMATS_READ, TIME_UNITS
from mtpp.wording import one_of

if TYPE_CHECKING:
    import os

    from mtpp.formats.modelled.size_terms import SizeTerms


class Measured(System):
    """Costs and sizes that a file leaves open, or that take the place of its own."""

    costs: str | os.PathLike[str] | None = option(
        None, InputPath("the file of costs"),
        "Measured times of the ops: of `mtpp profile`, or ONNX Runtime's profile.", "FILE",
    )  # fmt: skip
    dims: SizeTerms | str | None = option(
        None, Sizes("Propose the sizes that are left open, and say which."),
        "Set a size that the model leaves open (ONNX, PyTorch); '*=1': all others.",
        more='By name; ``"auto"`` (or ``{"*": "auto"}``) takes sizes that are proposed.',
    )  # fmt: skip


class Formats(Options):
    """Format of a file, and things that some formats leave open."""

    from_format: str | None = option(
        None, Text(FORMATS_READ),
        f"Read as {one_of(FORMATS_READ)}. torch: MODEL is package.module:function, which is imported and called; it "
        "returns a PyTorch module and its args.", "FORMAT", more="By default the content decides.",
    )  # fmt: skip
    time_unit: str | None = option(
        None, Choice(TIME_UNITS, "unit of time"), f"Of times in a file that names none: {one_of(TIME_UNITS)}.", "UNIT"
    )
    backward: bool = option(False, Flag(), "Count the backward pass, where a file tells it from the forward pass.")
    loading_time: bool = option(False, Flag(), "Count the loading of data in a PipeDream profile.")


class Reading(Formats, Measured):
    """Everything that decides which graph a file becomes: keywords of :func:`mtpp.read`, for other functions."""

    max_input_size: int | str = option("2GiB", Quantity(), "Refuse larger inputs.", "SIZE")
