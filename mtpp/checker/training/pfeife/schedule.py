"""Passes of a stated schedule, the looped family, schedules with a name, and one iteration replayed pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mtpp.checker.training.pfeife.costs import Line
from mtpp.checker.training.pfeife.document import pass_of

Pass = tuple[int, str, int]
"""Stage, kind (F, B, or its halves I and W) and micro-batch."""


@dataclass(frozen=True)
class Rows:
    """Passes of each device in order, with dependencies besides those that follow from stages."""

    rows: list[list[Pass]]
    dependencies: list[tuple[Pass, Pass]]

    @property
    def devices(self) -> int:
        """D."""
        return len(self.rows)

    @property
    def stages(self) -> int:
        """S."""
        return 1 + max(stage for row in self.rows for stage, _, _ in row)


def stated_rows(schedule: dict[str, Any]) -> Rows:
    """Return the passes of a document."""
    rows = [[pass_of(name) for name in row] for row in schedule["order"]]
    return Rows(rows, [(pass_of(a), pass_of(b)) for a, b in schedule["dependencies"]])


def fault_of(rows: Rows, devices: int, micro_batches: int) -> str | None:
    """Return what keeps rows from being a schedule of some devices and micro-batches, None if nothing does."""
    if rows.devices != devices or not all(rows.rows):
        return f"there are rows for {rows.devices} devices, or empty ones, and {devices} devices"
    seen: set[Pass] = set()
    for d, row in enumerate(rows.rows):
        for one in row:
            if one in seen:
                return f"pass {text(one)} is there twice"
            seen.add(one)
            if one[0] % devices != d:
                return f"pass {text(one)} is on device {d}"
            if one[2] >= micro_batches:
                return f"there is no micro-batch {one[2]}"
    stages = rows.stages
    if stages * micro_batches > len(seen):
        return "some passes are missing"
    for s in range(stages):
        for m in range(micro_batches):
            halves = ((s, "I", m) in seen) + ((s, "W", m) in seen)
            if (s, "F", m) not in seen or (halves, (s, "B", m) in seen) not in ((0, True), (2, False)):
                return f"stage {s} does not run micro-batch {m} forward and backward once"
    for pair in rows.dependencies:
        for one in pair:
            if one not in seen:
                return f"there is no pass {text(one)}"
    return None


def text(one: Pass) -> str:
    """Return a pass as documents write it."""
    return f"{one[0]}{one[1]}{one[2]}"


def least_warm_up(device: int, devices: int, micro_batches: int, loops: int, loop_batch: int) -> int:
    """Return the forward passes of a device before its first backward pass, without any prefetch."""
    return min((loops - 1) * min(loop_batch, micro_batches) + devices - device, loops * micro_batches)


def in_turn(device: int, devices: int, micro_batches: int, loops: int, loop_batch: int, kind: str) -> list[Pass]:
    """Return the passes of one kind of a device of a looped schedule, in their order."""
    passes = []
    for begin in range(0, micro_batches, loop_batch):
        for turn in range(loops):
            loop = turn if kind == "F" else loops - 1 - turn
            for m in range(begin, min(begin + loop_batch, micro_batches)):
                passes.append((device + loop * devices, kind, m))
    return passes


def looped_rows(devices: int, micro_batches: int, loops: int, loop_batch: int, prefetch: Sequence[int]) -> Rows:
    """Return a looped schedule (Jhoo et al. 2025, section 3.4)."""
    rows = []
    for d in range(devices):
        forward = in_turn(d, devices, micro_batches, loops, loop_batch, "F")
        backward = in_turn(d, devices, micro_batches, loops, loop_batch, "B")
        first = min(least_warm_up(d, devices, micro_batches, loops, loop_batch) + prefetch[d], len(forward))
        row = forward[:first]
        for i, one in enumerate(backward):
            row.append(one)
            if first + i < len(forward):
                row.append(forward[first + i])
        rows.append(row)
    return Rows(rows, [])


def receiver(one: Pass, stages: int, passes: set[Pass]) -> Pass | None:
    """Return the pass of a neighbouring stage that waits for the message that a pass sends, None if it sends none."""
    stage, kind, m = one
    if kind == "F":
        return (stage + 1, "F", m) if stage + 1 < stages else None
    if kind == "W" or stage == 0:
        return None
    return (stage - 1, "B", m) if (stage - 1, "B", m) in passes else (stage - 1, "I", m)


@dataclass(frozen=True)
class StageTimes:
    """Ticks of each stage of a split: forward, backward, and the hand-over behind it."""

    forward: list[int]
    backward: list[int]
    handover: list[int]

    def of(self, one: Pass) -> int:
        """Return the ticks of a pass; the half I of a backward pass is the larger one."""
        stage, kind, _ = one
        if kind == "F":
            return self.forward[stage]
        back = self.backward[stage]
        return back if kind == "B" else back // 2 if kind == "W" else back - back // 2


def stage_times(line: Line, split: Sequence[int]) -> StageTimes:
    """Return the times of a split."""
    handover = line.handover()
    forward, backward = [], []
    for s in range(len(split) - 1):
        device = s % line.devices
        forward.append(sum(line.forward[device][split[s] : split[s + 1]]))
        backward.append(sum(line.backward[device][split[s] : split[s + 1]]))
    return StageTimes(forward, backward, [handover[p] for p in split[1:-1]])


def straight_transfers(line: Line, split: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the ticks of messages from stage to stage where tensors go straight to their readers."""
    stage_of = [s for s in range(len(split) - 1) for _ in range(split[s], split[s + 1])]
    between: dict[tuple[int, int], int] = {}
    for tensor in line.tensors:
        source = stage_of[tensor.producer]
        for target in {stage_of[v] for v in tensor.readers} - {source}:
            between[source, target] = between.get((source, target), line.latency) + tensor.ticks
    return between


def replay(rows: Rows, times: StageTimes, between: dict[tuple[int, int], int] | None = None) -> int | None:
    """Return the ticks of an iteration, None if passes wait for each other.

    Parameters
    ----------
    between
        Messages that go straight from stage to stage; None: all from neighbour to neighbour.
    """
    stages, devices = len(times.forward), rows.devices
    passes = {one for row in rows.rows for one in row}
    sends: dict[Pass, list[tuple[Pass, int]]] = {}
    waits: dict[Pass, int] = dict.fromkeys(passes, 0)
    for one in passes:
        messages = _messages(one, stages, passes, times, between)
        sends[one] = messages
        for to, _ in messages:
            waits[to] += 1
    chain_waits = _chain_waits(passes, stages) if between is not None else {}
    ends_before: dict[Pass, list[Pass]] = {}
    for before, after in rows.dependencies:
        ends_before.setdefault(before, []).append(after)
        waits[after] += 1
    for after in chain_waits.values():
        waits[after] += 1
    for stage, kind, m in passes:
        if kind in "BI":
            ends_before.setdefault((stage, "F", m), []).append((stage, kind, m))
            waits[stage, kind, m] += 1
        if kind == "W":
            ends_before.setdefault((stage, "I", m), []).append((stage, "W", m))
            waits[stage, "W", m] += 1
    ready = dict.fromkeys(passes, 0)
    free = [0] * devices
    channel: dict[tuple[int, int], int] = {}
    head = [0] * devices
    todo = list(range(devices))
    done = 0
    while todo:
        d = todo.pop()
        row = rows.rows[d]
        while head[d] < len(row) and waits[row[head[d]]] == 0:
            one = row[head[d]]
            head[d] += 1
            done += 1
            end = max(free[d], ready[one]) + times.of(one)
            free[d] = end
            for to, ticks in sends[one]:
                way = (d, to[0] % devices)
                channel[way] = max(channel.get(way, 0), end) + ticks
                ready[to] = max(ready[to], channel[way])
                waits[to] -= 1
                todo.append(to[0] % devices)
            for to in ends_before.get(one, ()):
                ready[to] = max(ready[to], end)
                waits[to] -= 1
                todo.append(to[0] % devices)
            if one in chain_waits:
                waits[chain_waits[one]] -= 1
                todo.append(chain_waits[one][0] % devices)
    return max(free) if done == len(passes) else None


def _messages(
    one: Pass, stages: int, passes: set[Pass], times: StageTimes, between: dict[tuple[int, int], int] | None
) -> list[tuple[Pass, int]]:
    """Return the passes that wait for messages of a pass, with the ticks of these, in the order of sending."""
    stage, kind, m = one
    if between is None:
        to = receiver(one, stages, passes)
        return [] if to is None else [(to, times.handover[min(stage, to[0])])]
    if kind == "W":
        return []
    if kind == "F":
        return [((s, "F", m), between[stage, s]) for s in range(stages) if (stage, s) in between]
    found = []
    for s in range(stages):
        if (s, stage) in between:
            found.append(((s, "B", m) if (s, "B", m) in passes else (s, "I", m), between[s, stage]))
    return found


def _chain_waits(passes: set[Pass], stages: int) -> dict[Pass, Pass]:
    """Return the pass of a neighbour that would wait for each: an order that plans have to keep to, at no cost."""
    return {one: to for one in passes if (to := receiver(one, stages, passes)) is not None}


def kept_at_most(row: Sequence[Pass], kept: Sequence[int]) -> int:
    """Return the most bytes kept of forward passes whose backward pass has not ended; *kept* is by stage."""
    held = most = 0
    for stage, kind, _ in row:
        if kind == "F":
            held += kept[stage]
        elif kind != "I":
            held -= kept[stage]
        most = max(most, held)
    return most


def received_bytes(line: Line, split: Sequence[int], *, direct: bool) -> list[int]:
    """Return the bytes that each stage receives of a micro-batch: tensors from before, gradients from behind."""
    stages = len(split) - 1
    if direct:
        received = [0] * stages
        stage_of = [s for s in range(stages) for _ in range(split[s], split[s + 1])]
        for tensor in line.tensors:
            source = stage_of[tensor.producer]
            for target in {stage_of[v] for v in tensor.readers} - {source}:
                received[source] += tensor.size or 0
                received[target] += tensor.size or 0
        return received
    crossing = line.crossing([tensor.size or 0 for tensor in line.tensors])
    return [crossing[begin] + crossing[end] for begin, end in pairwise(split)]


def resting_bytes(
    line: Line, split: Sequence[int], micro_batches: int, *, direct: bool, all_buffers: bool
) -> tuple[list[int], list[int]]:
    """Return the bytes of each device whatever is in flight, and of a micro-batch in flight in each stage."""
    received = received_bytes(line, split, direct=direct)
    always = [0] * line.devices
    flying = []
    for s, (begin, end) in enumerate(pairwise(split)):
        always[s % line.devices] += sum(line.fixed[begin:end]) + (micro_batches * received[s] if all_buffers else 0)
        flying.append(sum(line.kept[begin:end]) + (0 if all_buffers else received[s]))
    return always, flying


def device_bytes(
    line: Line, rows: Rows, split: Sequence[int], micro_batches: int, *, direct: bool, all_buffers: bool
) -> list[int]:
    """Return the bytes that each device needs."""
    always, flying = resting_bytes(line, split, micro_batches, direct=direct, all_buffers=all_buffers)
    return [size + kept_at_most(row, flying) for size, row in zip(always, rows.rows, strict=True)]


NAMES = ("gpipe", "1f1b", "interleaved", "bfs", "zero-bubble")
"""Names that stand for passes; any other one is that of a file, or one that a caller chose."""

_OF_ONE_LOOP = ("gpipe", "1f1b")


def named_rows(name: str, devices: int, micro_batches: int, loops: int) -> Rows | str:
    """Return the passes that one of :data:`NAMES` stands for, or why there is no such schedule of these sizes.

    Notes
    -----
    D devices, B micro-batches, L stages on a device. ``gpipe`` and ``bfs`` run all forward passes first, ``1f1b`` as
    few as it can (of one loop, the first and the last of these names; ``bfs`` has any number). ``interleaved`` takes
    micro-batches in rounds, as many as have at least D of them, and device d runs D - 1 - d forward passes more than it
    has to (Narayanan et al. 2021). ``zero-bubble`` has the same rounds and none of these; a backward pass is two halves
    I and W, and device d runs W that many backward passes behind I (ZB-H1 of Qi et al. 2024), what is left of them at
    its end.
    """
    if name in _OF_ONE_LOOP and loops != 1:
        return f"the schedule {name} has one stage on each device, not {loops}"
    if name in ("gpipe", "bfs"):
        return looped_rows(devices, micro_batches, loops, micro_batches, [loops * micro_batches] * devices)
    if name == "1f1b":
        return looped_rows(devices, micro_batches, 1, micro_batches, [0] * devices)
    rounds = max(1, micro_batches // devices)
    if micro_batches % rounds:
        return f"the schedule {name} has rounds of equally many micro-batches, which {micro_batches} do not make"
    more = [devices - 1 - d if name == "interleaved" else 0 for d in range(devices)]
    rows = looped_rows(devices, micro_batches, loops, micro_batches // rounds, more)
    if name == "interleaved":
        return rows
    return Rows([_in_halves(row, behind) for behind, row in enumerate(rows.rows)], [])


def _in_halves(row: list[Pass], behind: int) -> list[Pass]:
    """Return the passes of a device, each half W *behind* halves I later than the half I that it belongs to."""
    halves: list[Pass] = []
    due: list[Pass] = []
    for stage, kind, m in row:
        if kind == "F":
            halves.append((stage, kind, m))
            continue
        halves.append((stage, "I", m))
        due.append((stage, "W", m))
        if len(due) > behind:
            halves.append(due.pop(0))
    return halves + due


def fault_of_name(name: str, rows: Rows, micro_batches: int) -> str | None:
    """Return how passes differ from those that a name stands for; None if they do not, or it stands for none."""
    if name not in NAMES:
        return None
    due = named_rows(name, rows.devices, micro_batches, rows.stages // rows.devices)
    if isinstance(due, str):
        return due
    if rows.dependencies:
        return f"the schedule {name} has no dependencies besides those of its passes"
    wrong = next((d for d, (row, own) in enumerate(zip(rows.rows, due.rows, strict=True)) if row != own), None)
    return None if wrong is None else f"the passes of device {wrong} are not those of {name}"
