"""Texts on stage graphs of which no plan fits into memory."""

from __future__ import annotations

from mtpp.formats.results.graph_plan import no_plan_reason
from mtpp.training.graph_plan import NoGraphPlan
from mtpp.views.training.training_texts import whole_mebibytes

_MIB = 2**20


def no_graph_plan_text(none: NoGraphPlan) -> str:
    """Return the same with the memory that would do; parameters are named as in messages."""
    least = none.least_memory_bytes
    text = no_plan_reason(none)
    return text if least is None else f"{text}; ‹memory› {whole_mebibytes(least)} would do{_short_of(none)}"


def _short_of(none: NoGraphPlan) -> str:
    """Return the most whole MiB that are proven not to be enough, where less than what would do may be."""
    most = none.memory.value - 1
    return "" if none.exact or most < _MIB else f", {most // _MIB}MiB would not"
