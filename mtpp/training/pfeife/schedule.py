"""Pipeline schedule: the passes of each device in the order in which they run (Jhoo et al. 2025, definition 3.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from mtpp.errors import InputError
from mtpp.training.stage_graph import MOST_PASSES

LETTERS = "FBIW"
"""Of :class:`PassKind`."""

_PASS = re.compile(r"(0|[1-9][0-9]{0,6})([FBIW])(0|[1-9][0-9]{0,6})")

_SHOWN = 20


class PassKind(IntEnum):
    """Kind of a pass."""

    FORWARD = 0
    BACKWARD = 1
    INPUT = 2
    """Gradients of a stage's inputs: the half of a backward pass that the stage before it waits for."""
    WEIGHT = 3
    """Gradients of a stage's weights: the other half."""


class Pass(NamedTuple):
    """A pass of a stage with a micro-batch, both counted from 0 (Jhoo et al. 2025, section 3.2).

    Written as PyTorch writes them: ``2F0`` is the forward pass of stage 2 with micro-batch 0, ``2B0`` its backward
    pass, whose halves are the gradients of inputs, ``2I0``, and those of weights, ``2W0``.
    """

    stage: int
    kind: PassKind
    micro_batch: int

    @property
    def name(self) -> str:
        """``2F0`` and the like."""
        return f"{self.stage}{LETTERS[self.kind]}{self.micro_batch}"


def read_pass(text: str) -> Pass:
    """Read a pass that was written as ``2F0``."""
    match = _PASS.fullmatch(text)
    if match is None:
        remedy = "write 2F0 for the forward pass of stage 2 with micro-batch 0, 2B0 for its backward pass"
        raise InputError(f"{text[:_SHOWN]!r} is no pass", remedy=remedy)
    return Pass(int(match[1]), PassKind(LETTERS.index(match[2])), int(match[3]))


Dependency = tuple[Pass, Pass]
"""A pass that has to end before another one begins."""

PlaceOf = Callable[[int, int | None], str]
"""Text for the place of a device's row, or of a pass in it, in messages."""


def place_in_json(device: int, index: int | None) -> str:
    """Return the JSON pointer of a row, or of a pass in it, in a schedule file."""
    return f"/order/{device}" if index is None else f"/order/{device}/{index}"


@dataclass(frozen=True, eq=False)
class PassSchedule:
    """Passes in rows, one a device; stage s runs on device s mod D. Make one with :meth:`build`.

    Attributes
    ----------
    micro_batches
        B, of an iteration.
    rows
        Passes of each device in order.
    dependencies
        Besides those that follow from the stages: a pass waits for the same micro-batch of the stage before it (a
        backward pass: behind it).
    name
        Of the schedule; may be empty.
    """

    micro_batches: int
    rows: Sequence[Sequence[Pass]]
    dependencies: Sequence[Dependency] = ()
    name: str = ""

    @classmethod
    def build(
        cls,
        rows: Sequence[Sequence[Pass]],
        dependencies: Sequence[Dependency] = (),
        *,
        name: str = "",
        place_of: PlaceOf = place_in_json,
    ) -> PassSchedule:
        """Check that every stage runs every micro-batch forward and backward once, on its own device.

        Parameters
        ----------
        place_of
            Gives *where* of an error about a row or a pass.

        Raises
        ------
        InputError
            If a device has no pass, a pass is there twice or missing, a stage is not on device s mod D, or a dependency
            names a pass that is not there.

        Notes
        -----
        O(passes). Passes may still wait for each other: see :func:`mtpp.training.pfeife.precedence.precedence_order`.
        """
        if not rows:
            raise InputError("the schedule has no devices", where="/order", remedy="give at least one row of passes")
        _check_count(rows, place_of)
        place: dict[Pass, tuple[int, int]] = {}
        for d, row in enumerate(rows):
            for i, one in enumerate(row):
                if one in place:
                    problem = f"pass {one.name} is there twice, first at {place_of(*place[one])}"
                    raise InputError(problem, where=place_of(d, i))
                place[one] = d, i
                if one.stage % len(rows) != d:
                    problem = f"stage {one.stage} of {len(rows)} devices is on device {d}"
                    remedy = (
                        f"stage s runs on device s mod {len(rows)}: put {one.name} into row {one.stage % len(rows)}"
                    )
                    raise InputError(problem, where=place_of(d, i), remedy=remedy)
        _check_whole(place, len(rows), place_of)
        for j, pair in enumerate(dependencies):
            for k, one in enumerate(pair):
                if one not in place:
                    raise InputError(f"there is no pass {one.name}", where=f"/dependencies/{j}/{k}")
            if pair[0] == pair[1]:
                raise InputError(f"pass {pair[0].name} waits for itself", where=f"/dependencies/{j}")
        micro_batches = 1 + max(one.micro_batch for one in place)
        return cls(micro_batches, tuple(map(tuple, rows)), tuple(dependencies), name)

    @property
    def devices(self) -> int:
        """D."""
        return len(self.rows)

    @cached_property
    def stages(self) -> int:
        """S."""
        return 1 + max(one.stage for row in self.rows for one in row)

    @cached_property
    def passes(self) -> frozenset[Pass]:
        """All of them."""
        return frozenset(one for row in self.rows for one in row)

    @cached_property
    def halves(self) -> bool:
        """True if any backward pass comes in halves."""
        return any(one.kind == PassKind.WEIGHT for row in self.rows for one in row)

    @cached_property
    def in_flight(self) -> Sequence[int]:
        """Micro-batches of all its stages whose activations each device keeps at a time, at most."""
        return [_most_kept(row) for row in self.rows]


def _most_kept(row: Sequence[Pass]) -> int:
    kept = most = 0
    for one in row:
        if one.kind == PassKind.FORWARD:
            kept += 1
            most = max(most, kept)
        elif one.kind != PassKind.INPUT:
            kept -= 1
    return most


def _check_count(rows: Sequence[Sequence[Pass]], place_of: PlaceOf) -> None:
    """Check that no device is idle and that all passes together are not too many."""
    passes = 0
    for d, row in enumerate(rows):
        if not row:
            raise InputError(f"device {d} has no passes", where=place_of(d, None), remedy="leave idle devices out")
        passes += len(row)
        if passes > MOST_PASSES:
            raise InputError(f"the schedule has more than {MOST_PASSES:,} passes", where=place_of(d, None))


def _check_whole(place: dict[Pass, tuple[int, int]], devices: int, place_of: PlaceOf) -> None:
    """Check that each stage has a forward pass of each micro-batch, and a backward pass or both its halves.

    Notes
    -----
    O(passes), however large the numbers in them are: every step but the last one finds a pass that no other finds.
    """

    def missing(one: Pass) -> InputError:
        where, remedy = place_of(one.stage % devices, None), "every stage runs every micro-batch once"
        return InputError(f"pass {one.name} is missing", where=where, remedy=remedy)

    stages = 1 + max(one.stage for one in place)
    micro_batches = 1 + max(one.micro_batch for one in place)
    for s in range(stages):
        for m in range(micro_batches):
            if Pass(s, PassKind.FORWARD, m) not in place:
                raise missing(Pass(s, PassKind.FORWARD, m))
            whole, *halves = (Pass(s, kind, m) for kind in (PassKind.BACKWARD, PassKind.INPUT, PassKind.WEIGHT))
            there = [half for half in halves if half in place]
            if whole in place and there:
                problem = f"pass {there[0].name} is half of {whole.name}, which is there as well"
                remedy = "give the whole or both halves"
                raise InputError(problem, where=place_of(*place[there[0]]), remedy=remedy)
            if whole not in place and len(there) < len(halves):
                raise missing(next(half for half in halves if half not in place) if there else whole)
