"""Schedules by name: GPipe, 1F1B, interleaved 1F1B, breadth-first and zero-bubble, for any number of devices."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.errors import InputError
from mtpp.names import BFS, GPIPE, INTERLEAVED, ONE_F_ONE_B, SCHEDULES, ZERO_BUBBLE
from mtpp.training.pfeife.looped import LoopedSchedule, check_sizes, least_warm_up
from mtpp.training.pfeife.schedule import Pass, PassKind, PassSchedule
from mtpp.wording import did_you_mean

_OF_ONE_LOOP = {GPIPE: BFS, ONE_F_ONE_B: INTERLEAVED}
"""Names of schedules of one loop, and their likes of several."""


def named_schedule(name: str, devices: int, micro_batches: int, loops: int) -> PassSchedule:
    """Return the schedule with one of :data:`SCHEDULES`.

    Parameters
    ----------
    devices, micro_batches, loops
        D, B and N_l; there are N_l · D stages.

    Raises
    ------
    InputError
        If there is no such name, a number is below 1 or makes too many passes, ``gpipe`` or ``1f1b`` is to have several
        loops, or micro-batches do not come in the equal rounds that ``interleaved`` and ``zero-bubble`` need; it names
        the parameter.

    Notes
    -----
    ``zero-bubble`` is ``ScheduleInterleavedZeroBubble`` of PyTorch, ZB-H1 of Qi et al. (2024) where there is one loop:
    looped 1F1B without prefetch, backward passes in halves, the half W of device d that many turns behind the half I.
    """
    looped = looped_of_name(name, devices, micro_batches, loops)
    if looped is not None:
        return PassSchedule(micro_batches, looped.schedule.rows, name=name)
    whole = LoopedSchedule(devices, micro_batches, loops, _round_batch(name, devices, micro_batches), (0,) * devices)
    rows = tuple(_halved(row, d) for d, row in enumerate(whole.schedule.rows))
    return PassSchedule(micro_batches, rows, name=name)


def looped_of_name(name: str, devices: int, micro_batches: int, loops: int) -> LoopedSchedule | None:
    """Return the numbers that make the named schedule one of the looped family, None for ``zero-bubble``.

    Notes
    -----
    Before its first backward pass, device d runs all N_l · B forward passes in ``gpipe`` and ``bfs``, the fewest that
    it needs in ``1f1b``, and D − 1 − d more in ``interleaved`` (Narayanan et al. 2021), as in PyTorch's
    ``ScheduleInterleaved1F1B``.
    """
    if name not in SCHEDULES:
        remedy = did_you_mean(name, SCHEDULES, f"use one of {', '.join(SCHEDULES)}")
        raise InputError(f"unknown schedule {name[:40]!r}", parameter="schedule", remedy=remedy)
    check_sizes(devices, micro_batches, loops, 3 if name == ZERO_BUBBLE else 2)
    if name in _OF_ONE_LOOP and loops != 1:
        remedy = f"use 1, or the schedule {_OF_ONE_LOOP[name]}"
        raise InputError(f"the schedule {name} has one loop, not {loops}", parameter="loops", remedy=remedy)
    batch = micro_batches
    if name in (INTERLEAVED, ZERO_BUBBLE):
        batch = _round_batch(name, devices, micro_batches)
    if name == ZERO_BUBBLE:
        return None
    prefetch: Sequence[int] = (0,) * devices
    if name in (GPIPE, BFS):
        prefetch = [loops * micro_batches - least for least in least_warm_up(devices, micro_batches, loops, batch)]
    elif name == INTERLEAVED:
        prefetch = range(devices - 1, -1, -1)
    return LoopedSchedule(devices, micro_batches, loops, batch, tuple(prefetch))


def _round_batch(name: str, devices: int, micro_batches: int) -> int:
    """Return B_l: micro-batches of a round, of which there are as many as have at least D of them, or one."""
    rounds = max(1, micro_batches // devices)
    if micro_batches % rounds:
        problem = f"the schedule {name} cannot run {micro_batches:,} micro-batches in {rounds:,} equal rounds"
        remedy = f"use a multiple of the {devices:,} devices"
        raise InputError(problem, parameter="micro_batches", remedy=remedy)
    return micro_batches // rounds


def _halved(row: Sequence[Pass], behind: int) -> tuple[Pass, ...]:
    """Return a row with backward passes in halves, each half W some turns behind its half I, the last ones at once."""
    backward = [one for one in row if one.kind == PassKind.BACKWARD]
    weights = [one._replace(kind=PassKind.WEIGHT) for one in backward]
    halved: list[Pass] = []
    turn = 0
    for one in row:
        if one.kind == PassKind.FORWARD:
            halved.append(one)
            continue
        halved.append(one._replace(kind=PassKind.INPUT))
        if turn >= behind:
            halved.append(weights[turn - behind])
        turn += 1
    return (*halved, *weights[max(0, turn - behind) :])
