"""Passes of a simulated pipeline as trace events, for ``chrome://tracing`` and Perfetto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mtpp.formats.io.json_text import dump_lines
from mtpp.training.pass_order import pass_name
from mtpp.training.simulation import Simulation
from mtpp.units import PICOSECONDS


def write_trace(simulation: Simulation) -> str:
    """Return the text of a file for ``chrome://tracing`` and Perfetto: an event a line, in microseconds.

    Stages and channels are threads. Events are complete ones (``"ph": "X"``), of the categories forward, backward,
    transfer and synchronisation; the Trace Event Format's own names for threads come first.
    """
    document = {
        "traceEvents": list(_events(simulation)),
        "displayTimeUnit": "ns",
        "otherData": {"name": simulation.graph.name},
    }
    return dump_lines(document, ("traceEvents",)) + "\n"


def _events(simulation: Simulation) -> Iterator[dict[str, Any]]:
    graph = simulation.graph
    yield {"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": graph.name}}
    names = [graph.label(s) for s in range(len(graph.stages))]
    names += [f"channel {one.source} → {one.target}" for one in simulation.channels]
    for thread, name in enumerate(names):
        yield {"name": "thread_name", "ph": "M", "pid": 0, "tid": thread, "args": {"name": name}}
        yield {"name": "thread_sort_index", "ph": "M", "pid": 0, "tid": thread, "args": {"sort_index": thread}}
    for s, stage in enumerate(graph.stages):
        for one in simulation.passes(s):
            yield _event(pass_name(one.number), "forward" if one.number > 0 else "backward", s, one.start, one.end)
        end = simulation.ends[s]
        if stage.synchronisation_ticks:
            yield _event("synchronisation", "synchronisation", s, end, end + stage.synchronisation_ticks)
    for c in range(len(simulation.channels)):
        for one in simulation.messages(c):
            yield _event(pass_name(one.number), "transfer", len(graph.stages) + c, one.start, one.end)


def _event(name: str, category: str, thread: int, start: int, end: int) -> dict[str, Any]:
    micro = PICOSECONDS["us"]
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "pid": 0,
        "tid": thread,
        "ts": start / micro,
        "dur": (end - start) / micro,
    }
