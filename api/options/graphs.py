"""Figures of graphs, and files that they are written to."""

from __future__ import annotations

from mtpp.api.options.kinds import Flag, Text, Whole
from mtpp.api.options.option import Options, option
from mtpp.errors import InputError
from mtpp.names import FORMATS_WRITTEN
from mtpp.ranges import MOST_DEPTH
from mtpp.wording import one_of


class Inspecting(Options):
    """Lists of a model's parts in place of those of its kinds of ops."""

    ops: bool = option(False, Flag(), "List every op with its work and sizes.")
    modules: int | None = option(
        None, Whole(1, MOST_DEPTH),
        "List modules in place of kinds of ops: 2 names of a path tell layers.0 from layers.1 (ONNX, PyTorch).",
        "DEPTH",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.ops and self.modules is not None:
            raise InputError("excludes ‹ops›", parameter="modules", remedy="give one of them")


class Converting(Options):
    """Form of a graph's file."""

    to: str | None = option(
        None, Text(FORMATS_WRITTEN), f"Write as {one_of(FORMATS_WRITTEN)} [default: by the file's suffix].", "FORMAT",
        more="With stages JSON is for Model Explorer.",
    )  # fmt: skip
    modules: int | None = option(
        None, Whole(1, MOST_DEPTH),
        "Draw modules in place of ops (DOT): 2 names of a path tell layers.0 from layers.1.", "DEPTH",
        more="For ONNX models and exported programs.",
    )  # fmt: skip
