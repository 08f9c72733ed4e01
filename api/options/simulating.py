"""Terms of the simulation of a training plan."""

from __future__ import annotations

from mtpp.api.options.kinds import Choice, Whole
from mtpp.api.options.option import Options, option
from mtpp.names import TIME_UNITS
from mtpp.wording import one_of


class Simulating(Options):
    """Sizes and times that a training plan leaves open."""

    batch_size: int | None = option(
        None, Whole(),
        "Samples of an iteration; needed where a plan records none, and stated by plans of graphpipe and pfeife.", "B",
    )  # fmt: skip
    micro_batch_size: int | None = option(
        None, Whole(),
        "Samples that a device takes at once; d replicas make micro-batches of d · b. As ‹batch_size›.", "b",
    )  # fmt: skip
    time_unit: str | None = option(
        None, Choice(TIME_UNITS, "unit of time"), f"Of times in a model that names none: {one_of(TIME_UNITS)}.", "UNIT",
        more="By default that of the plan.",
    )  # fmt: skip
