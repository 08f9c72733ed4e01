"""Profiles that ONNX Runtime writes: what each node took in each run, as trace events in JSON.

The format is that of Chrome's trace viewer ("Trace Event Format"): an array of complete events (``"ph": "X"``) with
``ts`` and ``dur`` in whole microseconds. Of category ``Node`` are the kernels, ``NAME_kernel_time``, with the kind, the
index and the provider of the node and the types of its outputs in ``args`` (ONNX Runtime,
``core/framework/sequential_executor.cc``); of category ``Session`` is ``model_run``, one for each run. A node without a
name is called ``Kind_index``. Nodes in the body of control flow have events of their own, inside that of the node
around them: those are left out here, so that no time counts twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.document_shape import any_array, anything, text
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import attributed, exact_number, shaped, shown
from mtpp.formats.io.json_text import parse_json
from mtpp.units import Exact

NAME = "onnxruntime"
_KERNEL = "_kernel_time"
_RUN = "model_run"
_HEAD = 4096
_BOM = b"\xef\xbb\xbf"
_LONGEST_US = 10**12
_MOST_DIGITS = 9

OutputType = tuple[str, tuple[int, ...]]
"""Element type as ONNX Runtime calls it, and shape."""


@dataclass(frozen=True)
class TracedNode:
    """A node of the graph that was run.

    Attributes
    ----------
    name, kind, index, provider
        As the trace has them; the index is None if it has none.
    outputs
        Types of its outputs in the last run that tells them.
    durations_us
        Microseconds in each run in which it was seen.
    """

    name: str
    kind: str
    index: int | None
    provider: str
    outputs: tuple[OutputType, ...]
    durations_us: tuple[Exact, ...]


@dataclass(frozen=True)
class Trace:
    """What a profile says.

    Attributes
    ----------
    nodes
        In the order in which they ran first; the bodies of control flow are left out.
    inner
        Nodes of such bodies: types of the outputs of their last execution, by name.
    walls_us
        Of each whole run, in microseconds; empty where the profile has no such events.
    """

    nodes: tuple[TracedNode, ...]
    inner: Mapping[str, tuple[OutputType, ...]]
    walls_us: tuple[Exact, ...]


def looks_like_trace(data: bytes) -> bool:
    """Say cheaply whether *data* begins like a profile; a truncated one does too."""
    head = data[:_HEAD].removeprefix(_BOM).lstrip()
    return head[:1] == b"[" and b'"ph"' in head and b'"dur"' in head


def read_trace(data: bytes, source: str, *, skip_runs: int | None = None) -> Trace:
    """Read a profile.

    Parameters
    ----------
    skip_runs
        Runs at the beginning that are left out; by default the first one if there are several: it is cold.

    Raises
    ------
    InputError
        If it is cut off, no profile, or holds a duration that is none.

    Notes
    -----
    O(e log e) time for e events.
    """
    try:
        document = parse_json(data, source)
    except InputError as error:
        if not looks_like_trace(data):
            raise
        if data.rstrip().endswith(b"]"):
            raise InputError(f"the profile is damaged: {error.problem}", source=source, where=error.where) from None
        raise InputError(
            "the profile is cut off: the list of events is not closed",
            source=source,
            remedy="let the session end before the file is copied (InferenceSession.end_profiling)",
        ) from None
    with attributed(source):
        return _trace(shaped(any_array, document), skip_runs)


@dataclass(slots=True)
class _Event:
    start: Exact
    dur: Exact
    thread: Any
    name: str
    args: Mapping[str, Any]
    inside: bool = False

    @property
    def end(self) -> Exact:
        return self.start + self.dur


def _trace(rows: list[Any], skip_runs: int | None) -> Trace:
    kernels: list[_Event] = []
    runs: list[_Event] = []
    for i, row in enumerate(rows):
        event = shaped(anything, row, i)
        category, name = event.get("cat"), event.get("name")
        if category == "Session" and name == _RUN:
            runs.append(_event(event, i, _RUN))
        elif category == "Node" and isinstance(name, str) and name.endswith(_KERNEL):
            kernels.append(_event(event, i, name.removesuffix(_KERNEL)))
    if not kernels:
        raise InputError(
            "no kernel of ONNX Runtime is in it",
            remedy="run the model with SessionOptions.enable_profiling, at least once",
        )
    kernels.sort(key=lambda event: (event.start, -event.dur))
    runs.sort(key=lambda event: event.start)
    _mark_inner(kernels)
    numbers = _run_numbers(kernels, runs)
    count = max((number for number in numbers if number is not None), default=0) + 1
    skip = (1 if count > 1 else 0) if skip_runs is None else skip_runs
    return Trace(
        tuple(_nodes(kernels, numbers, skip)),
        {event.name: _output_types(event.args) for event in kernels if event.inside},
        tuple(run.dur for run in runs[skip:]),
    )


def _event(event: Mapping[str, Any], index: int, name: str) -> _Event:
    for key in ("ts", "dur"):
        if key not in event:
            raise InputError(f"missing key {key!r}", where=f"/{index}", remedy="it must be there, in microseconds")
        value = shaped(exact_number, event[key], index, key)
        if not 0 <= value < _LONGEST_US:
            what = "negative" if value < 0 else "longer than eleven days"
            raise InputError(f"{shown(value)} µs is {what}", where=f"/{index}/{key}", remedy="profile again")
    args = shaped(anything, event.get("args", {}), index, "args")
    return _Event(event["ts"], event["dur"], _thread(event.get("tid")), name, args)


def _thread(value: Any) -> Any:
    return value if isinstance(value, int | str) else None


def _mark_inner(kernels: Sequence[_Event]) -> None:
    """Mark what ran inside the event of another node on its thread; *kernels* are sorted by start, longest first."""
    until: dict[Any, Exact] = {}
    for event in kernels:
        if event.start < until.get(event.thread, 0):
            event.inside = True
        else:
            until[event.thread] = event.end


def _run_numbers(kernels: Sequence[_Event], runs: Sequence[_Event]) -> list[int | None]:
    """Return the run that each event belongs to: the one around it, without such events how often it was seen."""
    if not runs:
        seen: dict[Any, int] = {}
        numbers: list[int | None] = []
        for event in kernels:
            key = _identity(event)
            numbers.append(seen.get(key, 0))
            seen[key] = seen.get(key, 0) + 1
        return numbers
    by_thread: dict[Any, list[int]] = {}
    for i, run in enumerate(runs):
        by_thread.setdefault(run.thread, []).append(i)
    starts = {thread: [runs[i].start for i in own] for thread, own in by_thread.items()}
    everything = list(range(len(runs)))
    every_start = [run.start for run in runs]
    numbers = []
    for event in kernels:  # those of a parallel executor run on threads of their own
        own, begin = by_thread.get(event.thread, everything), starts.get(event.thread, every_start)
        last = bisect_right(begin, event.start) - 1
        numbers.append(own[last] if last >= 0 and event.start <= runs[own[last]].end else None)
    return numbers


def _identity(event: _Event) -> tuple[str, str]:
    return event.name, str(event.args.get("node_index", ""))


def _nodes(kernels: Sequence[_Event], numbers: Sequence[int | None], skip: int) -> list[TracedNode]:
    grouped: dict[tuple[str, str], dict[int, Exact]] = {}
    latest: dict[tuple[str, str], _Event] = {}
    for event, number in zip(kernels, numbers, strict=True):
        if event.inside or number is None or number < skip:
            continue
        key = _identity(event)
        per_run = grouped.setdefault(key, {})
        per_run[number] = per_run.get(number, 0) + event.dur
        latest[key] = event
    return [
        TracedNode(
            name=event.name,
            kind=_text(event.args, "op_name"),
            index=_index(event.args),
            provider=_text(event.args, "provider"),
            outputs=_output_types(event.args),
            durations_us=tuple(grouped[key].values()),
        )
        for key, event in latest.items()
    ]


def _text(args: Mapping[str, Any], key: str) -> str:
    return str(shaped(text, args.get(key, ""), "args", key))


def _index(args: Mapping[str, Any]) -> int | None:
    text = str(args.get("node_index", ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _output_types(args: Mapping[str, Any]) -> tuple[OutputType, ...]:
    """Return what an event says of its outputs; nothing where it is not of the form ``[{"float": [1, 8]}, …]``."""
    rows = args.get("output_type_shape", [])
    if not isinstance(rows, list):
        return ()
    found: list[OutputType] = []
    for row in rows:
        if not isinstance(row, dict) or len(row) != 1:
            return ()
        ((dtype, shape),) = row.items()
        if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
            return ()
        found.append((dtype, tuple(shape)))
    return tuple(found)
