"""Loop as one op: its body once per trip, where the number of trips is known or given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import GraphProto, TensorProto

from mtpp.errors import InputError
from mtpp.formats.modelled.control_notes import GIVEN_TRIPS, MAY_STOP, ONE_TRIP, UNKNOWN_TRIPS
from mtpp.formats.modelled.open_sizes import UnknownSize
from mtpp.formats.modelled.parameter import Parameter
from mtpp.formats.onnx.control_flow.control_record import (
    BodyRecord,
    BodyWalk,
    ControlRecord,
    body_of,
    open_type,
    trip_note,
)
from mtpp.formats.onnx.control_flow.ranged_trips import RangedTrips, left_ranges
from mtpp.formats.onnx.control_flow.states import after, settled, with_axis
from mtpp.formats.onnx.control_flow.trips import count_trips
from mtpp.formats.onnx.estimates.certainty import common_type, open_axes
from mtpp.formats.onnx.estimates.numbers import INFINITE, Numbers
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.shapes import OutputType
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, ValueType
from mtpp.wording import counted

WITHOUT_LIMIT = 2**31 - 1
"""Exporters write the largest int64, or the largest int32, as the trip count of a ``while``: that is none."""

MOST_NODES = 4000
"""Nodes that are walked over to unroll one Loop."""


@dataclass(frozen=True)
class Trips:
    """Number of trips of a loop.

    Attributes
    ----------
    count
        Trips that are counted: the number, or the most that there can be; 1 where nobody knows.
    known
        Whether the model and the sizes say the number, or the caller does.
    bounded
        Whether there cannot be more.
    certain
        Whether the number is known, and no data and no caller changes it.
    """

    count: int
    note: str
    known: bool = True
    bounded: bool = True
    certain: bool = False


@dataclass(frozen=True)
class _Begin:
    """Facts before the first trip.

    Attributes
    ----------
    limit
        Most trips; None for no limit, or one that only data tells.
    told
        Whether limit and first condition are known, and not told by data alone.
    stopped, why_stopped
        Whether there is no trip at all, and why.
    certain
        Whether both are certain.
    """

    limit: int | None
    told: bool
    stopped: bool
    certain: bool
    why_stopped: str

    @classmethod
    def of(cls, inputs: Sequence[Known | None]) -> _Begin:
        most, condition = (inputs[i] if i < len(inputs) else None for i in (0, 1))
        limit, first = _largest(most), _scalar(condition)
        told = (most is None or _scalar(most) is not None) and (condition is None or first is not None)
        stopped = (first is not None and not first) or (limit is not None and limit <= 0)
        certain = all(known is None or known.certain_value is not None for known in (most, condition))
        why = "the condition is false from the start" if first is not None and not first else "the limit is 0"
        return cls(limit if limit is not None and limit < WITHOUT_LIMIT else None, told, stopped, told and certain, why)


def _largest(known: Known | None) -> int | None:
    """Return the largest whole number that a tensor of one element can hold; None where there is none."""
    value = _scalar(known)
    if known is None or known.certain_value is not None or (numbers := known.ranged) is None:
        return value
    high = math.floor(numbers.high) if math.isfinite(numbers.high) else None
    return high if value is None else value if high is None else max(value, high)


def _scalar(known: Known | None) -> int | None:
    if known is None or known.value is None or known.value.size != 1:
        return None
    return int(known.value.reshape(-1)[0])


def loop(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the body once per trip, as large as its states are then; once if nobody knows the number of trips."""
    body_graph = body_of(node, "body")
    carried = [known for known in inputs[2:] if known is not None]
    if len(carried) != len(inputs) - 2 or len(body_graph.input) != len(carried) + 2:
        raise MalformedNode("the body's inputs do not match those of Loop")
    return _Loop(node, inputs, carried, body_graph, level, walk).record()


class _Loop:
    def __init__(
        self,
        node: NodeView,
        inputs: Sequence[Known | None],
        carried: Sequence[Known],
        body: GraphProto,
        level: int,
        walk: BodyWalk,
    ) -> None:
        self._node, self._carried, self._graph, self._level, self._walk = node, carried, body, level, walk
        self._begin = _Begin.of(inputs)
        self._unrolled: Unrolled | None = None

    def record(self) -> ControlRecord:
        """Return what the loop takes and makes."""
        body, states = self._settled()
        trips = self._trips(body)
        returned = body.outputs[1 : 1 + len(self._carried)]
        record = ControlRecord()
        changing = any(known.type != result.type for known, result in zip(self._carried, returned, strict=True))
        unrolled = self._unrolled
        if unrolled is None and changing and trips.bounded and trips.count:
            unrolled = self._unroll(None, trips.count)
        if unrolled is not None and trips.count:
            _add_unrolled(record, unrolled, body, states, trips)
            if trips.known and unrolled.trips == trips.count:
                record.results = [[known] for known in unrolled.states[-1]]
        else:
            record.add(body, trips.count)
            record.types = [
                after(known.type, result.type, trips.count)
                for known, result in zip(self._carried, returned, strict=True)
            ]
            record.sure = [known.sure for known in (self._carried if trips.certain and not trips.count else states)]
            if trips.certain and trips.count == 1:
                record.sure = [result.sure for result in returned]
            if trips.bounded:
                record.results = left_ranges(self._ranged(body), returned, trips.count, exactly=trips.certain)
        record.notes.insert(0, trip_note(trips.count, trips.note))
        for result in body.outputs[1 + len(self._carried) :]:
            if not isinstance(result.type, TensorType):
                raise MalformedNode("a scan output of Loop must be a tensor")
            count = trips.count if trips.bounded else None
            record.types.append(PartialType(result.type.dtype, (count, *result.type.shape)))
            record.sure.append(with_axis(result, 0, count if trips.certain else None))
        record.assumed = not trips.bounded or (self._walk.given_trips is not None and not trips.certain)
        if not trips.bounded:
            record.open_size = 1
            record.not_modelled[f"{UNKNOWN_TRIPS}{self._walk.label!r}"] += 1
        return record

    def _ranged(self, body: BodyRecord) -> RangedTrips:
        return RangedTrips(self._graph, self._carried, body.find, self._node.opset)

    def _settled(self) -> tuple[BodyRecord, list[Known]]:
        """Walk over the body as it is on any trip; by its first one where sizes in it depend on which one it is."""
        # An iteration only runs while the condition holds: inside the body it is true.
        always = Known(TensorType(TensorProto.BOOL, ()), self._level + 1, Parameter("true", 0, ()), np.array(True))
        last = INFINITE if self._begin.limit is None else max(0.0, self._begin.limit - 1.0)
        numbers = Numbers.spread(0.0, last, whole=True, shape=())
        trip = Known(TensorType(TensorProto.INT64, ()), self._level + 1, numbers=numbers)
        try:
            return settled(self._carried, 1, lambda states: self._walk(self._graph, [trip, always, *states], "body"))
        except UnknownSize as error:
            if error.misfit or not self._begin.told or self._begin.stopped:
                raise
            unrolled = self._unroll(self._begin.limit)
            if unrolled is None or not (unrolled.stopped or unrolled.complete):
                raise
            self._unrolled = unrolled
            first = unrolled.bodies[0]
            for later in unrolled.bodies[1:]:  # it may take another way, and read something else
                first.captured |= later.captured
                first.parameters |= later.parameters
                first.not_modelled |= later.not_modelled
            return first, unrolled.common

    def _unroll(self, most: int | None, count: int | None = None) -> Unrolled | None:
        """Walk over the trips one by one; None if sizes that were given or proposed do not fit one of them."""
        try:
            return unroll(self._walk, self._graph, self._carried, self._level, most=most, count=count)
        except InputError:
            return None

    def _trips(self, body: BodyRecord) -> Trips:
        """Return how often the body runs."""
        begin, given = self._begin, self._walk.given_trips
        found = self._counted(body)
        if found is not None and given is not None and found[0] != given:
            raise self._walk.contradiction(found[0])
        if found is not None:
            count, certain = found
            if begin.stopped:
                return Trips(0, f"no trip: {begin.why_stopped}", certain=certain)
            return Trips(count, counted(count, "trip"), certain=certain)
        if given is not None:
            return Trips(given, f"{counted(given, 'trip')}, {GIVEN_TRIPS}")
        most = self._ranged(body).most(begin.limit)
        if most is not None:
            return Trips(most, f"at most {counted(most, 'trip')}: {MAY_STOP}", known=False)
        text = f"the trip count is not known: {ONE_TRIP}, set it with --trips {self._walk.label}=64"
        return Trips(1, text, known=False, bounded=False)

    def _counted(self, body: BodyRecord) -> tuple[int, bool] | None:
        """Return the number of trips, and whether it is certain; None where it cannot be told."""
        begin = self._begin
        if begin.stopped:
            return 0, begin.certain
        if not begin.told:
            return None
        if self._unrolled is not None:
            return self._unrolled.trips, begin.certain and self._unrolled.certain
        for sure in (True, False):
            count = self._count(body, sure=sure)
            if count is not None:
                return count, begin.certain and sure
        goes_on = body.outputs[0].certain_value
        if begin.limit is not None and goes_on is not None and bool(goes_on.reshape(-1).all()):
            return begin.limit, begin.certain
        if body.outputs[0].parameter is None:
            unrolled = self._unroll(begin.limit)
            if unrolled is not None and (unrolled.stopped or unrolled.complete):
                self._unrolled = unrolled
                return unrolled.trips, begin.certain and unrolled.certain
        return None

    def _count(self, body: BodyRecord, *, sure: bool) -> int | None:
        """Return the number of trips by what the condition depends on; *sure*: by nothing that is an estimate."""

        def contents(known: Known | None) -> np.ndarray | None:
            return None if known is None else known.certain_value if sure else known.value

        return count_trips(
            self._graph,
            self._begin.limit,
            [contents(known) for known in self._carried],
            lambda name: contents(body.find(name)),
            self._node.opset,
        )


def _add_unrolled(
    record: ControlRecord, unrolled: Unrolled, body: BodyRecord, states: Sequence[Known], trips: Trips
) -> None:
    """Take costs and states from trips walked over one by one."""
    record.include(body)
    record.work_ps, record.flops, record.macs = (
        unrolled.total(name, trips.count) for name in ("work_ps", "flops", "macs")
    )
    kinds = unrolled.after(trips.count) if trips.known else unrolled.largest(trips.count)
    record.types = [open_type(kind) for kind in kinds]
    if trips.certain and unrolled.trips == trips.count:
        record.sure = [known.sure for known in unrolled.states[-1]]
    else:
        record.sure = [common_type(known.sure, open_type(kind)) for known, kind in zip(states, kinds, strict=True)]


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
        return [_largest_states(one) for one in zip(*kinds, strict=True)]


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
    always = Known(TensorType(TensorProto.BOOL, ()), level + 1, Parameter("true", 0, ()), np.array(True))
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


def _largest_states(kinds: Sequence[ValueType]) -> ValueType:
    last = kinds[-1]
    alike = [kind for kind in kinds if isinstance(kind, TensorType) and isinstance(last, TensorType)]
    if isinstance(last, TensorType) and all(kind.rank == last.rank for kind in alike):
        return TensorType(last.dtype, tuple(map(max, zip(*(kind.shape for kind in alike), strict=True))))
    return last
