"""Texts on stage graphs of which no plan fits into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.host.stop_reason import LIMITS_REACHED, StopReason
from mtpp.views.training.training_texts import whole_mebibytes
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.training.graph_plan import NoGraphPlan


_MIB = 2**20


def no_plan_reason(none: NoGraphPlan) -> str:
    """Return on one line why there is no plan."""
    if none.stopped in LIMITS_REACHED and not none.proven and not none.fits:
        memory = none.stopped == StopReason.MEMORY_LIMIT
        return "the memory did not suffice to find a plan" if memory else "no plan was found in the time"
    devices = counted(none.problem.devices, "device")
    if none.hopeless:
        return (
            f"there is no plan for {devices}, whatever memory they have: no stages that their layers "
            "have costs of make up the model"
        )
    if not none.proven and not none.fits:
        return f"no plan for {devices} was found, with any memory"
    text = f"no plan fits into the memory of {devices}"
    return text if none.proven else f"{text}, as far as was found"


def no_graph_plan_text(none: NoGraphPlan) -> str:
    """Return the same with the memory that would do; parameters are named as in messages."""
    least = none.least_memory_bytes
    text = no_plan_reason(none)
    return text if least is None else f"{text}; ‹memory› {whole_mebibytes(least)} would do{_short_of(none)}"


def _short_of(none: NoGraphPlan) -> str:
    """Return the most whole MiB that are proven not to be enough, where less than what would do may be."""
    most = none.memory.value - 1
    return "" if none.exact or most < _MIB else f", {most // _MIB}MiB would not"
