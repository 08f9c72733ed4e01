"""Passes of a simulated pipeline as trace events, for ``chrome://tracing`` and Perfetto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtpp.formats.io.json_text import dump_lines
from mtpp.training.timeline import Bar, Timeline
from mtpp.units import PICOSECONDS


def write_trace(timeline: Timeline) -> str:
    """Return the text of a file for ``chrome://tracing`` and Perfetto: an event a line, in microseconds.

    Rows and channels are threads. Events are complete ones (``"ph": "X"``), of the categories forward, backward (or its
    halves backward_input and backward_weight), transfer and synchronisation; the Trace Event Format's own names for
    threads come first. Where times have no unit, one of theirs stands as a microsecond.
    """
    document = {
        "traceEvents": list(_events(timeline)),
        "displayTimeUnit": "ns",
        "otherData": {"name": timeline.name},
    }
    return dump_lines(document, ("traceEvents",)) + "\n"


def _events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    yield {"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": timeline.name}}
    names = [row.label for row in timeline.rows]
    names += [f"channel {row.label}" for row in timeline.channels]
    for thread, name in enumerate(names):
        yield {"name": "thread_name", "ph": "M", "pid": 0, "tid": thread, "args": {"name": name}}
        yield {"name": "thread_sort_index", "ph": "M", "pid": 0, "tid": thread, "args": {"sort_index": thread}}
    micro = PICOSECONDS["us"] if timeline.timed else timeline.ticks_per_unit
    for thread, row in enumerate([*timeline.rows, *timeline.channels]):
        for bar in row.bars:
            yield _event(bar, thread, micro)


def _event(bar: Bar, thread: int, micro: int) -> dict[str, Any]:
    return {
        "name": bar.name,
        "cat": bar.kind,
        "ph": "X",
        "pid": 0,
        "tid": thread,
        "ts": bar.start / micro,
        "dur": (bar.end - bar.start) / micro,
    }
