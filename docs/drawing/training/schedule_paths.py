"""Drawings of the bounds on plans by ``pfeife``: paths through a schedule, loads, and memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from docs.drawing.bars import WAIT, WORK, Bar, draw_bars
from docs.drawing.canvas import CLASH, FLOW, GRID, INK, PALE, TAKEN, Canvas, Point
from docs.drawing.training.example import CHAIN, DEVICES, MS, chain, split_plan

_UNIT = 17.0
_ROW, _BAR = 64.0, 34.0
_HANDOVER_MS = 0.5
_COLOURS = (CLASH, FLOW)
_BACKWARD = 2

Times = dict[str, tuple[float, float]]


def stage_of(name: str) -> int:
    """Return the stage of a pass such as ``1B0``."""
    return int(name.split("F")[0].split("B")[0])


def duration(name: str, split: Sequence[int]) -> float:
    """Return the milliseconds of a pass."""
    stage = stage_of(name)
    forward = sum(list(chain().values())[split[stage] : split[stage + 1]])
    return float(forward * (_BACKWARD if "B" in name else 1))


def replayed(rows: Sequence[Sequence[str]], split: Sequence[int]) -> Times:
    """Return when each pass begins and ends: as soon as its device and what it waits for allow."""
    waits: dict[str, str] = {}
    stages = len(split) - 1
    for row in rows:
        for name in row:
            stage, kind, number = stage_of(name), "B" if "B" in name else "F", name[-1]
            if kind == "F" and stage > 0:
                waits[name] = f"{stage - 1}F{number}"
            if kind == "B" and stage < stages - 1:
                waits[name] = f"{stage + 1}B{number}"
    found: Times = {}
    done = [0] * len(rows)
    while any(count < len(row) for count, row in zip(done, rows, strict=True)):
        for device, row in enumerate(rows):
            if done[device] < len(row):
                name = row[done[device]]
                sender = waits.get(name)
                if sender is None or sender in found:
                    free = found[row[done[device] - 1]][1] if done[device] else 0.0
                    begin = max(free, found[sender][1] + _HANDOVER_MS if sender else 0.0)
                    found[name] = (begin, begin + duration(name, split))
                    done[device] += 1
    return found


def path_passes(path: dict[str, Any], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the passes of a path of a proof, run by run."""
    found = []
    for first, last in path["runs"]:
        (row,) = (row for row in rows if first in row)
        found.append(list(row[row.index(first) : row.index(last) + 1]))
    return found


def path_length(path: dict[str, Any], rows: Sequence[Sequence[str]], split: Sequence[int]) -> float:
    """Return the milliseconds of a path under a split: its passes, and the hand-overs between its runs."""
    runs = path_passes(path, rows)
    return sum(duration(name, split) for run in runs for name in run) + _HANDOVER_MS * (len(runs) - 1)


def splits() -> list[list[int]]:
    """Return all ways to cut the chain into two stages."""
    count = len(chain())
    return [[0, at, count] for at in range(1, count)]


def picture() -> str:
    """Draw the schedule of the plan, the paths of its proof, and what they come to under each split."""
    canvas = Canvas()
    plan = split_plan()
    rows = plan["schedule"]["order"]
    paths = plan["lower_bound"]["proof"]["paths"]
    total = plan["lower_bound"]["proof"]["total"]
    names = list(chain())
    split = [0, len(plan["stages"][0]["layers"]), len(names)]
    times = replayed(rows, split)
    for device, row in enumerate(rows):
        top = device * _ROW
        canvas.text((-10, top + _BAR / 2), f"device {device}", anchor="end")
        for name in row:
            begin, end = times[name]
            fill = WORK if "F" in name else "#c7e9c0"
            canvas.rectangle(begin * _UNIT, top, (end - begin) * _UNIT, _BAR, fill=fill, edge=TAKEN)
            canvas.text(((begin + end) / 2 * _UNIT, top + 11), name, size=11)
    for number, path in enumerate(paths):
        offset = _BAR - 6 - 7 * number
        points: list[Point] = []
        for run in path_passes(path, rows):
            y = stage_of(run[0]) * _ROW + offset
            points += [(times[run[0]][0] * _UNIT + 2, y), (times[run[-1]][1] * _UNIT - 2, y)]
        canvas.line(points, colour=_COLOURS[number], width=2.4)
    top = 2 * _ROW + 6
    columns = (60.0, 190.0, 320.0, 450.0, 570.0)
    heads = ["split", *(f"path {n + 1}" for n in range(len(paths))), "mixture", "iteration"]
    for x, head, colour in zip(columns, heads, (INK, *_COLOURS, INK, INK), strict=True):
        canvas.text((x, top), head, bold=True, colour=colour)
    for n, path in enumerate(paths):
        canvas.text((columns[1 + n], top + 18), f"{100 * path['weight'] / total:g} %", colour=_COLOURS[n])
    for line, one in enumerate(splits()):
        y = top + 42 + 20 * line
        lengths = [path_length(path, rows, one) for path in paths]
        mixed = sum(Fraction(path["weight"], total) * Fraction(x) for path, x in zip(paths, lengths, strict=True))
        end = max(end for _, end in replayed(rows, one).values())
        words = ["".join(names[: one[1]]) + " | " + "".join(names[one[1] :])]
        words += [f"{x:g} ms" for x in (*lengths, float(mixed), end)]
        least = mixed * MS == plan["lower_bound"]["value"]
        for x, word in zip(columns, words, strict=True):
            canvas.text((x, y), word, bold=least and x in (columns[0], columns[3]))
    canvas.line([(0, top + 30), (columns[-1] + 40, top + 30)], colour=GRID)
    return canvas.svg("A schedule of two devices, and two paths through it.")


def loads_picture() -> str:
    """Draw the work of all micro-batches on all devices, and one micro-batch on its way."""
    canvas = Canvas()
    plan = split_plan(3, "direct")
    bound = plan["lower_bound"]["value"] / MS
    micro_batches = plan["micro_batches"]
    once = sum(chain().values()) * (1 + _BACKWARD)
    rows = [
        Bar(f"{micro_batches} micro-batches", [(float(once), f"number {i}", WORK) for i in range(micro_batches)]),
        Bar("one device of two", [(micro_batches * once / DEVICES, "half of it", WAIT)], strong=True),
        Bar("one micro-batch", [(float(once), "a b c d, forward and back", WORK)]),
    ]
    draw_bars(canvas, rows, 8, bound, f"loads: {bound:g} ms", total="{:g} ms", gaps=[2])
    return canvas.svg(f"The work of {micro_batches} micro-batches on {DEVICES} devices.")


def kept_bytes() -> dict[str, int]:
    """Return by op the bytes that a micro-batch keeps of it: what it makes."""
    document = json.loads(CHAIN.read_text())
    made = {one["producer"]: one["bytes"] for one in document["tensors"]}
    return {one["name"]: made.get(one["name"], 0) for one in document["ops"]}


def shares_picture() -> str:
    """Draw what one micro-batch keeps of all ops, in equal parts."""
    canvas = Canvas()
    kept = {op: size / 1e6 for op, size in kept_bytes().items() if size}
    share = sum(kept.values()) / DEVICES
    rows = [
        Bar("one micro-batch keeps", [(size, f"{op} {size:g} MB", WORK) for op, size in kept.items()]),
        Bar("one device of two", [(share, "half of it", WAIT)], strong=True),
    ]
    draw_bars(canvas, rows, 120, share, f"shares: {share:g} MB", total="{:g} MB")
    canvas.text((0, 78), "what the first backward pass of a device finds in memory", anchor="start", colour=PALE)
    return canvas.svg("What a micro-batch keeps of each op of the chain.")
