"""Best plans of language models, which layouts are held against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.errors import Infeasible

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.inference.plan import Plan


def best_plan(
    model: Model,
    k: int | None,
    time_limit_s: float | None,
    observer: Observer,
    together: Sequence[Sequence[str]] = (),
) -> Plan | None:
    """Return the best plan on the devices, None where the model fits on none of them.

    Parameters
    ----------
    k
        Number of stages at most; None: of the machine.
    together
        Groups of ops that one stage has to hold.
    """
    from mtpp.api.options.search import Partitioning
    from mtpp.api.partition import on_machine, prepare, search
    from mtpp.host.deadline import Deadline

    try:
        asked = Partitioning.of(k=k, time_limit_s=time_limit_s, together=together)
        return on_machine(search(prepare(model, asked), Deadline(time_limit_s), observer), model)
    except Infeasible:
        return None
