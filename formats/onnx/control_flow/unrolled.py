"""Trips of a Loop walked over one by one: states that grow, and conditions that depend on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import TensorProto

from mtpp.formats.onnx.control_flow.control_record import BodyWalk
from mtpp.formats.onnx.estimates.certainty import common_type, open_axes
from mtpp.formats.onnx.scope import Known, Parameter
from mtpp.formats.onnx.shapes import OutputType
from mtpp.formats.onnx.tensor_type import TensorType, ValueType
from mtpp.formats.onnx.walking.record import BodyRecord

MOST_NODES = 4000
"""Nodes that are walked over to unroll one Loop."""


@dataclass
class Unrolled:
    """Trips that were walked over.

    Attributes
    ----------
    states
        Before the first trip, and after each.
    bodies
        Of each trip.
    stopped
        Whether the condition was seen to end the loop; None where it is not known.
    complete
        Whether these are all: the limit was reached, and the condition held throughout.
    certain
        Whether no data decided any of the conditions.
    """

    states: list[list[Known]]
    bodies: list[BodyRecord] = field(default_factory=list)
    stopped: bool | None = False
    complete: bool = False
    certain: bool = True

    @property
    def trips(self) -> int:
        """Number of trips."""
        return len(self.bodies)

    @property
    def common(self) -> list[Known]:
        """States before the first trip, as open as they differ from those on later ones."""
        found = []
        for column in zip(*self.states, strict=True):
            sure: OutputType | None = column[0].sure
            for known in column[1:]:
                sure = common_type(sure, known.sure)
            axes = open_axes(column[0].type, sure, ranked=False)
            found.append(replace(column[0].forgotten, open_axes=axes, assumed_axes=axes))
        return found

    def total(self, name: str, trips: int) -> int:
        """Return the sum of a field of the bodies over *trips*; beyond those walked over it goes on as it went."""
        sums = [int(getattr(body, name)) for body in self.bodies[:trips]]
        more = trips - len(sums)
        if more > 0 and sums:
            step = sums[-1] - sums[-2] if len(sums) > 1 else 0
            return max(0, sum(sums) + more * sums[-1] + step * more * (more + 1) // 2)
        return sum(sums)

    def after(self, trips: int) -> list[ValueType]:
        """Return the types of the states after *trips*; beyond those walked over sizes go on as they went."""
        if trips < len(self.states):
            return [known.type for known in self.states[trips]]
        more = trips - self.trips
        before, last = self.states[-2:] if self.trips else (self.states[0], self.states[0])
        return [_onwards(a.type, b.type, more) for a, b in zip(before, last, strict=True)]

    def largest(self, trips: int) -> list[ValueType]:
        """Return the types of the states with the largest sizes that they have up to and after *trips*."""
        kinds = [*([known.type for known in states] for states in self.states), self.after(trips)]
        return [_largest(one) for one in zip(*kinds, strict=True)]


def unroll(
    walk: BodyWalk, body: onnx.GraphProto, carried: Sequence[Known], level: int, *, most: int | None, count: int | None
) -> Unrolled:
    """Walk over the trips of a Loop.

    Parameters
    ----------
    most
        Trips that it makes at most; None for no limit.
    count
        Trips that it makes, where that is known; then conditions are not looked at.

    Notes
    -----
    No further than :data:`MOST_NODES` nodes.
    """
    states = [replace(known, level=level + 1, parameter=None) for known in carried]
    found = Unrolled([states])
    always = Known(TensorType(TensorProto.BOOL, ()), level + 1, Parameter("true", 0), np.array(True))
    bound = count if count is not None else most
    begun = walk.walked()
    while bound is None or found.trips < bound:
        if found.trips and walk.walked() - begun > MOST_NODES:
            break
        trip = Known(TensorType(TensorProto.INT64, ()), level + 1, value=np.array(found.trips, np.int64))
        record = walk(body, [trip, always, *found.states[-1]], "body")
        after = record.outputs[1 : 1 + len(states)]
        found.bodies.append(record)
        found.states.append([replace(known, level=level + 1, parameter=None) for known in after])
        if count is not None:
            continue
        goes_on = record.outputs[0]
        if goes_on.value is None or goes_on.value.size != 1:
            found.stopped = None
            break
        elif found.stopped is False:
            found.certain = found.certain and goes_on.certain_value is not None
            if not bool(goes_on.value.reshape(-1)[0]):
                found.stopped = True
                return found
    found.complete = found.stopped is False and bound is not None and found.trips >= bound
    return found


def _onwards(before: ValueType, last: ValueType, trips: int) -> ValueType:
    if isinstance(before, TensorType) and isinstance(last, TensorType) and before.rank == last.rank:
        sizes = zip(before.shape, last.shape, strict=True)
        return TensorType(last.dtype, tuple(max(0, b + trips * (b - a)) for a, b in sizes))
    return last


def _largest(kinds: Sequence[ValueType]) -> ValueType:
    last = kinds[-1]
    alike = [kind for kind in kinds if isinstance(kind, TensorType) and isinstance(last, TensorType)]
    if isinstance(last, TensorType) and all(kind.rank == last.rank for kind in alike):
        return TensorType(last.dtype, tuple(map(max, zip(*(kind.shape for kind in alike), strict=True))))
    return last
