"""Best plans of language models, which layouts are held against."""

from __future__ import annotations

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
    *,
    layers_only: bool = False,
    apart: bool = False,
) -> Plan | None:
    """Return the best plan on the devices, None where the model fits on none of them.

    Parameters
    ----------
    k
        Number of stages at most; None: of the machine.
    layers_only
        Whether the embedding stays with the first layer, the head with the last, and no stage is empty.
    apart
        Whether ops may be apart that one stage has to hold otherwise, such as head and MTP layers.
    """
    from mtpp.api.options.search import Partitioning
    from mtpp.api.partitioning.single import on_machine, prepare, search
    from mtpp.host.deadline import Deadline

    try:
        asked = Partitioning.of(k=k, time_limit_s=time_limit_s, layers_only=layers_only, ignore_engine=apart)
        return on_machine(search(prepare(model, asked), Deadline(time_limit_s), observer), model)
    except Infeasible:
        return None
