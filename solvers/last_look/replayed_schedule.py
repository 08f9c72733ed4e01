"""Replay of a schedule's passes in plain Python, from its rows and the times of its stages."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from mtpp.training.pfeife.schedule import Pass, PassKind, PassSchedule

_FORWARD, _INPUT, _WEIGHT = map(int, (PassKind.FORWARD, PassKind.INPUT, PassKind.WEIGHT))

MOST_REPLAYED = 100_000
"""Passes that are replayed; longer schedules are left to kernels."""


def replayed_iteration(
    schedule: PassSchedule, passes: Sequence[tuple[int, int]], handovers: Sequence[tuple[int, int, int]]
) -> int | None:
    """Return the ticks until the last pass ends; None if passes wait for each other.

    Parameters
    ----------
    passes
        Forward and backward ticks of each stage.
    handovers
        Source, target and ticks of tensors between stages, in any order; gradients take as long on their way back.

    Notes
    -----
    A pass starts when its device is free, all messages to it have come, and the passes that it depends on have ended;
    messages between two devices take turns, in the order in which they are sent, those of one pass by the stages that
    they go to. Two to three microseconds a pass.
    """
    return _Replay(schedule, passes, handovers).run()


class _Replay:
    """State of a replay; passes of a stage and a micro-batch are told by stage · B + micro-batch."""

    def __init__(
        self, schedule: PassSchedule, passes: Sequence[tuple[int, int]], handovers: Sequence[tuple[int, int, int]]
    ) -> None:
        self._rows, self._batches = schedule.rows, schedule.micro_batches
        self._devices, stages = schedule.devices, len(passes)
        self._later: dict[Pass, list[Pass]] = {}
        self._awaited: dict[Pass, int] = {}
        for before, after in schedule.dependencies:
            self._later.setdefault(before, []).append(after)
            self._awaited[after] = self._awaited.get(after, 0) + 1
        self._ready: dict[Pass, int] = {}
        self._onward: list[list[tuple[int, int]]] = [[] for _ in range(stages)]
        self._back: list[list[tuple[int, int]]] = [[] for _ in range(stages)]
        for source, target, ticks in sorted(handovers):
            self._onward[source].append((target, ticks))
            self._back[target].append((source, ticks))
        self._ticks = [(f, g, g - g // 2, g // 2) for f, g in passes]
        size = stages * self._batches
        self._missing = [[len(self._back[s]) for s in range(stages) for _ in range(self._batches)]]
        self._missing.append([len(self._onward[s]) for s in range(stages) for _ in range(self._batches)])
        self._come = [[0] * size, [0] * size]
        self._ended = [bytearray(size) for _ in PassKind]
        self._free, self._at = [0] * self._devices, [0] * self._devices
        self._channel: dict[tuple[int, int], int] = {}

    def run(self) -> int | None:
        """Run every device as far as it can, again and again."""
        waiting = deque(range(self._devices))
        while waiting:
            d = waiting.popleft()
            woken = self._run_device(d)
            waiting.extend(other for other in sorted(woken) if other != d and other not in waiting)
        if any(at < len(row) for at, row in zip(self._at, self._rows, strict=True)):
            return None
        return max(self._free)

    def _run_device(self, d: int) -> set[int]:
        """Run a device until its next pass has to wait; return the devices that were sent something."""
        row, at, free = self._rows[d], self._at[d], self._free[d]
        woken: set[int] = set()
        while at < len(row):
            one = row[at]
            stage, kind, m = one
            key, way = stage * self._batches + m, 1 if kind else 0
            if kind == _WEIGHT:
                if not self._ended[_INPUT][key]:
                    break
            elif self._missing[way][key] or (way and not self._ended[_FORWARD][key]):
                break
            else:
                free = max(free, self._come[way][key])
            if self._awaited and self._awaited.get(one, 0):
                break
            free = max(free, self._ready.get(one, 0)) if self._ready else free
            free += self._ticks[stage][kind]
            self._ended[kind][key] = 1
            at += 1
            if kind != _WEIGHT:
                for target, ticks in (self._back if way else self._onward)[stage]:
                    woken.add(self._send(d, target, m, way, free + ticks, ticks))
            for after in self._later.get(one, ()) if self._later else ():
                self._awaited[after] -= 1
                self._ready[after] = max(self._ready.get(after, 0), free)
                woken.add(after.stage % self._devices)
        self._at[d], self._free[d] = at, free
        return woken

    def _send(self, source: int, stage: int, m: int, way: int, soonest: int, ticks: int) -> int:
        """Send a message to a stage, behind those before it; return the device that gets it."""
        target = stage % self._devices
        arrival = max(soonest, self._channel.get((source, target), 0) + ticks)
        self._channel[source, target] = arrival
        key = stage * self._batches + m
        self._missing[way][key] -= 1
        self._come[way][key] = max(self._come[way][key], arrival)
        return target
