"""Searches for plans of one model for several numbers of stages, one after the other, each with what others came to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mtpp.api.inputs.groups import groups_together
from mtpp.api.partitioning.neighbours import carried, comparable, settled, with_bound_of_more
from mtpp.api.partitioning.plan_range import INTERRUPTED, PlanRange
from mtpp.api.partitioning.single import Prepared, on_machine, prepare, search
from mtpp.errors import Infeasible, InputError, Interrupted, LimitReached
from mtpp.host.interruption import Interruption
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.search import Partitions
    from mtpp.host.deadline import Deadline
    from mtpp.inference.plan import Plan


def find_range(model: Model, asked: Partitions, deadline: Deadline, observer: Observer) -> PlanRange:
    """Search for a plan for each number of stages, the fewest first; Ctrl-C ends it with the plans there are.

    Each search gets an equal share of the time that is left. A partition into fewer stages is one into more, and a
    lower bound for more stages holds for fewer: what a neighbour came to is taken over where it is better.

    Raises
    ------
    InputError
        If a number of stages is more than the machine has devices, or as for one number.
    Infeasible
        If there is no plan for any number.
    Interrupted
        If Ctrl-C came before there was any plan.
    """
    from mtpp.api.inputs.model import for_stages
    from mtpp.api.partition_plan import PartitionPlan

    asked.refuse_beside_several()
    counts = sorted(asked.counts)
    _refuse_more_than_devices(model, counts[-1])
    together = groups_together(model, asked)
    plans: list[Plan] = []
    models: list[Model] = []
    elapsed: list[float] = []
    missing: dict[int, str] = {}
    last: Infeasible | LimitReached | None = None
    with Interruption() as interruption, observer.steps() as steps:
        for i, k in enumerate(counts):
            if interruption.requested:
                missing |= dict.fromkeys(counts[i:], INTERRUPTED)
                break
            steps.show(f"k = {k}", i, len(counts))
            begin = time.monotonic()
            try:
                prepared = prepare(for_stages(model, k), asked.single(k), together)
                before = plans[-1] if plans else None
                plan = _found(prepared, before, deadline.share(1 / (len(counts) - i)), observer, interruption)
            except (Infeasible, LimitReached) as error:
                missing[k], last = error.problem, error
                continue
            except Interrupted:
                missing |= dict.fromkeys(counts[i:], INTERRUPTED)
                break
            plans.append(plan)
            models.append(prepared.model)
            elapsed.append(time.monotonic() - begin)
    if not plans:
        if last is None or INTERRUPTED in missing.values():
            raise Interrupted("interrupted before there was any plan")
        raise last
    for i in reversed(range(len(plans) - 1)):
        plans[i] = with_bound_of_more(plans[i], plans[i + 1])
    made = [PartitionPlan.of(*one[:2], elapsed_s=one[2]) for one in zip(plans, models, elapsed, strict=True)]
    return PlanRange(made, missing)


def _found(
    prepared: Prepared, before: Plan | None, deadline: Deadline, observer: Observer, interruption: Interruption
) -> Plan:
    """Return the best plan known for one number of stages; *before* is the one for fewer."""
    if before is not None and settled(before, prepared):
        return carried(before, prepared.instance, before)
    plan = on_machine(search(prepared, deadline, observer, interruption), prepared.model)
    if before is None or not comparable(before, plan):
        return plan
    worse = plan.goal.value(plan.costs) > before.goal.value(before.costs)
    return carried(before, plan.instance, plan) if worse else plan


def _refuse_more_than_devices(model: Model, k: int) -> None:
    count = None if model.machine is None else model.machine.count
    if count is not None and k > count:
        problem = f"{k} stages are more than the machine has devices, {count}"
        raise InputError(problem, parameter="k", remedy=f"give up to {counted(count, 'stage')}")
