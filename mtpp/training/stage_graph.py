"""Stage graph of a training pipeline: stages with their times and orders of passes, and transfers between them.

A pass is a number: j for the forward pass of micro-batch j, counted from 1, and −j for its backward pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mtpp.array_types import Int32Array
from mtpp.errors import InputError
from mtpp.inference.topological import cycle_text, find_cycle, first_come_order
from mtpp.training.model import TIME_UNITS

MOST_PASSES = 4_000_000
"""Passes of all stages together that a simulation takes."""

_PASS = re.compile(r"([FB])([1-9][0-9]{0,9})")


def interleaved_order(micro_batches: int, in_flight: int, interval: int = 1) -> Int32Array:
    """Return the kFkB order of a stage: as many forward passes as may be in flight, then k backward, k forward in turn.

    Parameters
    ----------
    micro_batches
        M, at least 1.
    in_flight
        Forward passes before the first backward pass; more than M are M.
    interval
        k: 1 for 1F1B (Narayanan et al. 2019); k = *in_flight* = M is the order of GPipe.

    Returns
    -------
    int32, shape (2 · M,). Where fewer than k are in flight, a backward pass comes before its forward pass: such a stage
    waits for itself.

    Notes
    -----
    Jeon et al. (2025), section 6.
    """
    first = min(in_flight, micro_batches)
    number = np.arange(micro_batches)
    later = number[: micro_batches - first]
    turn = later // interval
    turns = -(-len(later) // interval)
    # In its turn, a forward pass comes after k backward passes, or after those that are left.
    place = first + 2 * interval * turn + np.minimum(interval, micro_batches - interval * turn) + later % interval
    order = np.empty(2 * micro_batches, dtype=np.int32)
    order[:first] = number[:first] + 1
    order[place] = first + later + 1
    in_turns = number[: min(turns * interval, micro_batches)]
    order[first + 2 * interval * (in_turns // interval) + in_turns % interval] = -1 - in_turns
    order[micro_batches + len(in_turns) :] = -1 - number[len(in_turns) :]
    return order


def pass_name(number: int) -> str:
    """Return a pass as ``F3`` or ``B3``."""
    return f"{'F' if number > 0 else 'B'}{abs(number)}"


def order_of_text(text: str, micro_batches: int) -> Int32Array:
    """Read an order that was written as ``F1 F2 B1 B2``: every pass of M micro-batches once.

    Raises
    ------
    InputError
        If a word is no pass, or a pass is there twice, is missing, or is of no micro-batch.
    """
    order: list[int] = []
    for word in text.split():
        match = _PASS.fullmatch(word)
        if match is None:
            raise InputError(f"{word[:20]!r} is no pass", remedy="write F1 for a forward pass, B1 for a backward pass")
        number = int(match[2])
        if number > micro_batches:
            problem = f"there is no micro-batch {number}: the mini-batch has {micro_batches:,} of this stage's"
            raise InputError(problem)
        order.append(number if match[1] == "F" else -number)
    seen: set[int] = set()
    for number in order:
        if number in seen:
            raise InputError(f"pass {pass_name(number)} is there twice")
        seen.add(number)
    for number in range(1, micro_batches + 1):
        for one in (number, -number):
            if one not in seen:
                raise InputError(f"pass {pass_name(one)} is missing")
    return np.array(order, dtype=np.int32)


MOST_MESSAGES = 10_000_000
"""Micro-batches that all transfers together move, there and back."""

LARGEST_SUM = 2**62
"""All passes, transfers and synchronisations together stay below as many ticks."""


@dataclass(frozen=True, eq=False)
class PipelineStage:
    """A stage as a simulation sees it. 1 tick = 1 ps.

    Attributes
    ----------
    micro_batch
        Samples of a micro-batch.
    forward_ticks, backward_ticks
        Of one micro-batch.
    synchronisation_ticks
        After the last pass, for gradients.
    order
        Its passes as in :mod:`mtpp.training.stage_graph`, int32, shape (2 · M,).
    """

    name: str
    micro_batch: int
    forward_ticks: int
    backward_ticks: int
    synchronisation_ticks: int
    order: Int32Array = field(repr=False)

    @property
    def micro_batches(self) -> int:
        """M, of a mini-batch."""
        return len(self.order) // 2


@dataclass(frozen=True)
class StageTransfer:
    """An edge of a stage graph: micro-batches go from *source* to *target*, gradients back; in ticks."""

    source: int
    target: int
    forward_ticks: int
    backward_ticks: int


@dataclass(frozen=True, eq=False)
class StageGraph:
    """Stages and transfers of one iteration, an acyclic graph.

    Attributes
    ----------
    mini_batch
        Samples of an iteration.
    time_unit
        One of :data:`mtpp.training.model.TIME_UNITS`, for people.

    Raises
    ------
    InputError
        If there is no stage, a micro-batch does not divide the mini-batch, an order does not have as many passes, a
        time is negative or all together are too long for 64 bits, or a transfer leads to no stage, to its own, where
        another one leads, or into a cycle; *where* is a place in a ``mtpp-stage-graph`` file.
    """

    name: str
    time_unit: str
    mini_batch: int
    stages: Sequence[PipelineStage]
    transfers: Sequence[StageTransfer]

    def __post_init__(self) -> None:
        stages, transfers = tuple(self.stages), tuple(self.transfers)
        vars(self).update(stages=stages, transfers=transfers)
        if self.time_unit not in TIME_UNITS:
            remedy = f"use one of {', '.join(TIME_UNITS)}"
            raise InputError(f"unknown unit of time {self.time_unit!r}", where="/time_unit", remedy=remedy)
        if not 1 <= self.mini_batch < LARGEST_SUM:
            raise InputError("a mini-batch has at least 1 sample, and fewer than 2^62", where="/mini_batch")
        if not stages:
            raise InputError("there are no stages", where="/stages", remedy="give at least one")
        for s, stage in enumerate(stages):
            _check_stage(stage, self.mini_batch, f"/stages/{s}")
        if sum(len(stage.order) for stage in stages) > MOST_PASSES:
            problem = f"all stages together have more than {MOST_PASSES:,} passes"
            raise InputError(problem, where="/stages", remedy="use larger micro-batches")
        _check_transfers(stages, transfers)
        if sum(stages[s].micro_batches for one in transfers for s in (one.source, one.target)) > MOST_MESSAGES:
            problem = f"all transfers together move more than {MOST_MESSAGES:,} micro-batches"
            raise InputError(problem, where="/transfers", remedy="use larger micro-batches")
        if self._longest >= LARGEST_SUM:
            problem = "all passes and transfers together reach 2^62 ps (53 days)"
            raise InputError(problem, where="/stages", remedy="check the times and their unit")

    @property
    def _longest(self) -> int:
        """Ticks of everything, one after the other."""
        moved = sum(
            self.stages[one.source].micro_batches * one.forward_ticks
            + self.stages[one.target].micro_batches * one.backward_ticks
            for one in self.transfers
        )
        return moved + sum(
            stage.micro_batches * (stage.forward_ticks + stage.backward_ticks) + stage.synchronisation_ticks
            for stage in self.stages
        )

    def label(self, stage: int) -> str:
        """Return a stage for people: its number, and its name if that says more."""
        name = self.stages[stage].name
        return name if name == f"stage {stage}" else f"stage {stage}: {name}"

    @cached_property
    def depth(self) -> int:
        """Stages on the longest path: the depth of the pipeline (Jeon et al. 2025, section 2)."""
        ends = [(one.source, one.target) for one in self.transfers]
        behind = [1] * len(self.stages)
        before: dict[int, list[int]] = {}
        for source, target in ends:
            before.setdefault(target, []).append(source)
        for stage in first_come_order(len(self.stages), ends):
            behind[stage] += max((behind[one] for one in before.get(stage, ())), default=0)
        return max(behind)


def _check_stage(stage: PipelineStage, mini_batch: int, where: str) -> None:
    if stage.micro_batch < 1 or mini_batch % stage.micro_batch:
        problem = f"micro-batches of {stage.micro_batch:,} samples do not divide the mini-batch of {mini_batch:,}"
        raise InputError(problem, where=f"{where}/micro_batch")
    for key, ticks in (
        ("forward", stage.forward_ticks),
        ("backward", stage.backward_ticks),
        ("synchronisation", stage.synchronisation_ticks),
    ):
        if not 0 <= ticks < LARGEST_SUM:
            problem = "a time must be at least 0 and below 2^62 ps (53 days)"
            raise InputError(problem, where=f"{where}/{key}", remedy="check the time and its unit")
    if stage.micro_batches != mini_batch // stage.micro_batch:
        problem = (
            f"{stage.micro_batches:,} micro-batches of {stage.micro_batch:,} samples are not {mini_batch:,} samples"
        )
        raise InputError(problem, where=f"{where}/order")
    count = stage.micro_batches
    whole = np.concatenate([np.arange(-count, 0), np.arange(1, count + 1)])
    if stage.order.dtype != np.int32 or not np.array_equal(np.sort(stage.order), whole):
        raise InputError("is no order of passes: ±1 to ±M, once each, int32", where=f"{where}/order")


def _check_transfers(stages: Sequence[PipelineStage], transfers: Sequence[StageTransfer]) -> None:
    first: dict[tuple[int, int], int] = {}
    for t, one in enumerate(transfers):
        where = f"/transfers/{t}"
        for key, stage in (("source", one.source), ("target", one.target)):
            if not 0 <= stage < len(stages):
                problem = f"there is no stage {stage}: they are numbered from 0 to {len(stages) - 1}"
                raise InputError(problem, where=f"{where}/{key}")
        if one.source == one.target:
            raise InputError(f"the transfer leads from stage {one.source} to itself", where=where)
        earlier = first.setdefault((one.source, one.target), t)
        if earlier != t:
            problem = f"duplicate transfer from stage {one.source} to stage {one.target}, first at /transfers/{earlier}"
            raise InputError(problem, where=where)
        for key, ticks in (("forward", one.forward_ticks), ("backward", one.backward_ticks)):
            if not 0 <= ticks < LARGEST_SUM:
                problem = "a time must be at least 0 and below 2^62 ps (53 days)"
                raise InputError(problem, where=f"{where}/{key}", remedy="check the time and its unit")
    ends = list(first)
    order = first_come_order(len(stages), ends)
    if len(order) < len(stages):
        cycle = find_cycle(len(stages), ends, order)
        names = cycle_text([stages[i].name for i in cycle])
        where = f"/transfers/{first[cycle[0], cycle[1]]}"
        raise InputError(f"the stages make a cycle: {names}", where=where, remedy="a pipeline is acyclic")
