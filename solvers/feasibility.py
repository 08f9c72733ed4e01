"""Limits on a stage's memory that no partition can meet, proven before any search."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from mtpp.errors import Infeasible
from mtpp.inference.instance import Instance
from mtpp.inference.working_memory import least_peaks
from mtpp.units import format_bytes
from mtpp.wording import first_of

_SOURCE = "‹stage_memory›"
_MACHINE = "‹machine›"
_MEMBERS_NAMED = 3


def refuse_infeasible(instance: Instance) -> None:
    """Raise if it is plain that no partition into k stages keeps to the stage memory.

    Raises
    ------
    Infeasible
        Proven; names the op that fits nowhere, or the total that does not fit.

    Notes
    -----
    Sufficient, not necessary: passing proves nothing. O(pins·log pins).
    """
    limit = instance.device.memory_bytes
    if limit is None:
        return
    refuse_oversized_op(instance)
    if not instance.uniform:
        _refuse_full_machine(instance)
    if least_stages(instance) > instance.k:
        stages = min(instance.k, instance.op_count)
        params, peaks = instance.cost.all_bytes, _least_activations(instance)[stages - 1]
        stages_text = f"{stages} stages" if stages > 1 else "one stage"
        raise Infeasible(
            f"proven infeasible: the {_kept(instance)} ({params:,} bytes) and the activations of {stages_text} "
            f"(at least {peaks:,} bytes) exceed {stages} × {limit:,} bytes ({format_bytes(limit)})",
            source=_source(instance),
        )


def _refuse_full_machine(instance: Instance) -> None:
    """Raise if devices that differ cannot hold everything together, those with the largest limits first."""
    rooms = [
        (device.memory_bytes or 0) - (device.activation_reserve_bytes if device.peak == "reserve" else 0)
        for device in instance.machine.devices
    ]
    room, held = sum(sorted(rooms, reverse=True)[: instance.most_used]), instance.cost.all_bytes
    if held > room:
        raise Infeasible(
            f"proven infeasible: the {_kept(instance)} ({held:,} bytes) exceed the {room:,} that "
            f"{instance.most_used} of the devices may hold at most",
            source=_MACHINE,
        )


def refuse_oversized_op(instance: Instance) -> None:
    """Raise if an op fits into no stage, whatever the number of stages.

    A stage S that holds op v needs at least v's parameters and the least peak of any stage with v
    (:func:`~mtpp.inference.working_memory.least_peaks`).
    """
    limit = instance.device.memory_bytes
    if limit is None:
        return
    peaks = least_peaks(instance)
    read = instance.cost.read_bytes
    op = int((read + peaks).argmax())
    params, peak = int(read[op]), int(peaks[op])
    if params + peak > limit:
        raise Infeasible(
            f"proven infeasible: {_named(instance, op)} {params + peak:,} bytes ({params:,} for {_kept(instance)}, "
            f"{peak:,} for activations), more than the {limit:,} ({format_bytes(limit)}) that "
            f"{_holder(instance)} may hold",
            source=_source(instance),
        )


def least_stages(instance: Instance) -> int:
    """Return a number of stages below which no partition keeps to the stage memory; n + 1 if no number is enough.

    Notes
    -----
    Let a(v) be the least peak of any stage with op v, u the op for which it is largest, and j the number of stages
    that are not empty. The stage of u has a peak of at least a(u). Any op of another stage speaks for that stage;
    these are j − 1 distinct ops, so the peaks add up to at least a(u) + the j − 1 smallest other values of a. Hence
    the parameters and that much have to fit into j · limit. As no a(v) is above the limit (else no number of stages
    is enough), what fits into j stages fits into j + 1, and the least j for which it does is a lower bound.
    """
    limit = instance.device.memory_bytes
    if limit is None:
        return 1
    params = instance.cost.all_bytes
    for j, activations in enumerate(_least_activations(instance), start=1):
        if params + activations <= j * limit:
            return j
    return instance.op_count + 1


def none_found(instance: Instance, tried: str) -> Infeasible:
    """Return the error for a search that found no partition within the stage memory; *tried* says where it looked."""
    if not instance.uniform:
        return Infeasible(
            f"none found: no cut of {tried} keeps each stage to the memory of its device",
            source=_MACHINE,
            remedy="allow more memory or devices, or more time",
        )
    limit = instance.device.memory_bytes or 0
    return Infeasible(
        f"none found: no cut of {tried} into {instance.k} stages keeps each to {limit:,} bytes ({format_bytes(limit)})",
        source=_source(instance),
        remedy=f"allow more memory or {_more(instance)}, or try more orders with ‹work_limit›",
    )


def proven_infeasible(instance: Instance) -> Infeasible:
    """Return the error for an exhaustive search that has shown that no partition keeps to the stage memory."""
    if not instance.uniform:
        return Infeasible(
            f"proven infeasible: no plan on {instance.most_used} of the devices keeps each stage to the memory of its "
            "device",
            source=_MACHINE,
            remedy="allow more memory or devices",
        )
    limit = instance.device.memory_bytes or 0
    return Infeasible(
        f"proven infeasible: no partition into {instance.k} stages keeps each to {limit:,} bytes "
        f"({format_bytes(limit)})",
        source=_source(instance),
        remedy=f"allow more memory or {_more(instance)}",
    )


def _source(instance: Instance) -> str:
    """Return the option that the limit comes from."""
    given = instance.machine.name or instance.machine.groups[0].name
    return _MACHINE if given or not instance.uniform else _SOURCE


def _more(instance: Instance) -> str:
    return "stages" if _source(instance) == _SOURCE else "devices"


def _holder(instance: Instance) -> str:
    """Return the stage, or the device with the largest limit, that an op has to fit into."""
    if instance.uniform:
        return "a stage"
    limit = instance.device.memory_bytes
    first = next(j for j, device in enumerate(instance.machine.devices) if device.memory_bytes == limit)
    return f"a stage on device {instance.machine.names[first]!r}, which has most,"


def _kept(instance: Instance) -> str:
    return "parameters and states" if instance.cost.states_count else "parameters"


def _least_activations(instance: Instance) -> list[int]:
    """Return for j = 1 … n the least that the peaks of j non-empty stages add up to."""
    *others, largest = np.sort(least_peaks(instance)).tolist()  # plain integers: n times a size may leave int64
    return list(accumulate(others, initial=largest))


def _named(instance: Instance, op: int) -> str:
    members = instance.members_of(op)
    if len(members) == 1:
        return f"op {members[0]!r} needs"
    listed = first_of(list(map(repr, members)), _MEMBERS_NAMED)
    return f"ops {listed}, which must share a stage, need"
