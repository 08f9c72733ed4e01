"""Ways in which a file becomes a graph, and the machine that the graph is for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from mtpp.api.options.kinds import Choice, Flag, Pairs, Quantity, Sizes, Text
from mtpp.api.options.language_models import Serving
from mtpp.api.options.machine import OnMachine, System
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.errors import InputError
from mtpp.names import FORMATS_READ, TIME_UNITS
from mtpp.wording import one_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine


class Measured(Serving, System):
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
    keep_state: Mapping[str, str] | Iterable[str] | None = option(
        None, Pairs(), "An input that comes out again: state that stages keep; may be repeated.", "IN=OUT",
        more='By name, such as ``{"past": "present"}``. Most are found by their names.',
    )  # fmt: skip


class Formats(Options):
    """Format of a file, and things that some formats leave open."""

    from_format: str | None = option(
        None, Text(FORMATS_READ),
        f"Read as {one_of(FORMATS_READ)}. torch: MODEL is package.module:function, which is imported and called; it "
        "returns a PyTorch module and its args. transformers: a language model op by op, from its configuration.",
        "FORMAT", more="By default the content decides.",
    )  # fmt: skip
    time_unit: str | None = option(
        None, Choice(TIME_UNITS, "unit of time"), f"Of times in a file that names none: {one_of(TIME_UNITS)}.", "UNIT"
    )
    backward: bool = option(False, Flag(), "Count the backward pass, where a file tells it from the forward pass.")
    loading_time: bool = option(False, Flag(), "Count the loading of data in a PipeDream profile.")


class ModelReading(Formats, Measured):
    """Everything that decides which graph a file becomes."""

    max_input_size: int | str = option("2GiB", Quantity(), "Refuse larger inputs.", "SIZE")

    @property
    def placed(self) -> Machine | None:
        """Machine of devices in order; None where all are equal."""
        return None

    @property
    def given_machine(self) -> object:
        """The machine as it was given: its file, where it has one."""
        return None


class Reading(OnMachine, ModelReading):
    """The same with the devices that it is for: keywords of :func:`mtpp.read`, for other functions."""

    def __post_init__(self) -> None:
        _ = self.placed if self.machine is not None else self.device  # refused at the door

    @cached_property
    def placed(self) -> Machine | None:
        """Machine of devices in order; None where all are equal."""
        machine = self.placed_for(self)
        if machine is not None and self.costs is not None and any(device.costs for device in machine.classes):
            raise InputError("are figures of the machine", parameter="costs", remedy="leave them out")
        return machine

    @property
    def given_machine(self) -> object:
        """The machine as it was given: its file, where it has one."""
        return self.machine

    @cached_property
    def device(self) -> Device:
        """The device of each stage; of devices that differ, their envelope."""
        return super().device if self.placed is None else self.placed.device
