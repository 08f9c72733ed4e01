"""Programs that plans are written for."""

from __future__ import annotations

from mtpp.api.options.kinds import Repeated, Text, Whole
from mtpp.api.options.option import Options, option
from mtpp.names import FORMS_EMITTED
from mtpp.ranges import MOST_STAGES
from mtpp.wording import one_of


class Emitting(Options):
    """Programs that a plan is written for."""

    form: tuple[str, ...] = option(
        (), Repeated(Text(FORMS_EMITTED)),
        f"Print the plan for another program: {one_of(FORMS_EMITTED)} (repeatable).", "NAME",
    )  # fmt: skip
    virtual_stages: int = option(
        1, Whole(1, MOST_STAGES), "Stages of each rank of a pipeline of megatron or torchtitan.", "N"
    )


NOT_EMITTED = Emitting()
"""No program at all."""
