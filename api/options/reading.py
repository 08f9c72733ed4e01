"""Ways in which a file becomes a graph, and the machine that the graph is for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from mtpp.api.options.kinds import Choice, Flag, InputPath, Quantity, Rate, Sizes, Text
from mtpp.api.options.option import Options, option
from mtpp.errors import InputError
from mtpp.names import FORMATS_READ, PEAK_MODES, TIME_UNITS
from mtpp.wording import one_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.system import System


def preset_names() -> Iterable[str]:
    """Return the names of the systems that come with the package."""
    from mtpp.inference.system import preset_tables

    return preset_tables()


class Machine(Options):
    """Machine of equal stages: a system, with values in place of its own."""

    system: str | os.PathLike[str] | System | None = option(
        None, InputPath("the system", names=preset_names, other="System"), "Preset or TOML file [default: reference].",
        "NAME|FILE", more="Or a :class:`mtpp.inference.system.System`.",
    )  # fmt: skip
    bandwidth: int | str | None = option(None, Rate(), "Of the link between stages, such as 25GB/s.", "RATE")
    fast_memory: int | str | None = option(
        None, Quantity(0), "Of one stage, such as 24MiB; what exceeds it is streamed.", "SIZE"
    )
    activation_reserve: int | str | None = option(None, Quantity(0), "Part of the memory kept for activations.", "SIZE")
    peak: str | None = option(
        None, Choice(PEAK_MODES, "mode"),
        "Activations of a stage: the reserve, or as its ops run in the file's order [default: reserve].",
    )  # fmt: skip
    stage_memory: int | str | None = option(
        None, Quantity(0), "No stage may need more for parameters and activations.", "SIZE"
    )

    def __post_init__(self) -> None:
        _ = self.machine  # refused at the door

    @cached_property
    def machine(self) -> System:
        """The system with the values that are given in place of its own."""
        from mtpp.inference.system import DEFAULT_PRESET, System, load_system, override

        try:
            system = self.system if isinstance(self.system, System) else load_system(str(self.system or DEFAULT_PRESET))
        except InputError as error:
            place = ": ".join(part for part in (error.source, error.where) if part)
            raise InputError(error.problem, parameter="system", where=place or None, remedy=error.remedy) from None
        return override(system, **self._overrides)

    @cached_property
    def due(self) -> dict[str, Any]:
        """Values that a document's system has to have to be for this: all but the name where one is given."""
        values = self.machine.to_document()
        del values["name"]
        given = {key for key, value in self._overrides.items() if value is not None}
        return {key: value for key, value in values.items() if self.system is not None or key in given}

    @property
    def _overrides(self) -> dict[str, Any]:
        return {
            "bandwidth_bytes_per_s": self.bandwidth,
            "fast_memory_bytes": self.fast_memory,
            "activation_reserve_bytes": self.activation_reserve,
            "peak": self.peak,
            "stage_memory_bytes": self.stage_memory,
        }


class Measured(Machine):
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
