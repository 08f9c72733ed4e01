"""Arrays of a problem and a schedule from which the iteration of any split follows."""

from __future__ import annotations

from typing import NamedTuple

from mtpp.array_types import Int32Array, Int64Array


class SplitArrays(NamedTuple):
    """Times along a line, passes in precedence order, and tensors where they go straight to their readers.

    Attributes
    ----------
    forward, backward, handover, speed_of
        As in :class:`mtpp.training.pfeife.costs.SplitTimes`.
    table, after, after_start
        As in :class:`mtpp.solvers.planners.pfeife.schedule_arrays.ScheduleArrays`.
    share
        Passes of each kind of each stage, int64, shape (S, 4).
    direct
        Whether tensors go straight to the stages that read them; the rest is empty where they do not.
    place
        Place of each pass in the precedence order by stage, kind and micro-batch, −1 for none, int32, shape (S, 4, B).
    micro_batch
        Of each pass in that order, int32.
    producer, reader_start, readers
        Of each tensor: position of its producer, and ascending positions of its readers, CSR, int32.
    ticks, size_bytes
        Of each tensor, int64.
    latency
        Of each message.
    """

    forward: Int64Array
    backward: Int64Array
    handover: Int64Array
    speed_of: Int32Array
    table: Int32Array
    after: Int32Array
    after_start: Int32Array
    share: Int64Array
    direct: bool
    place: Int32Array
    micro_batch: Int32Array
    producer: Int32Array
    reader_start: Int32Array
    readers: Int32Array
    ticks: Int64Array
    size_bytes: Int64Array
    latency: int


class SplitRoom(NamedTuple):
    """Arrays that an evaluation writes over; *ready* holds zeros before and after.

    Attributes
    ----------
    duration, crossing
        Ticks of each kind of pass of each stage, int64, shape (4 · S,), and of the hand-over before each stage.
    load, free
        Ticks that each device still has to do, and when it is free, int64, shape (D,).
    channel
        When each channel is free, int64, shape (D²,).
    ready
        When the messages of each pass have come, int64.
    between
        Ticks of messages from each stage to each other one, −1 for none, int64, shape (S, S); empty unless direct.
    """

    duration: Int64Array
    crossing: Int64Array
    load: Int64Array
    free: Int64Array
    channel: Int64Array
    ready: Int64Array
    between: Int64Array
