"""Drawings of the bounds on plans by ``piper`` and ``graphpipe``: every line of two stages of four layers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mtpp
from docs.drawing.bars import MOVE, WAIT, WORK, Bar, draw_bars
from docs.drawing.canvas import Canvas
from docs.drawing.training.example import (
    DEVICES,
    MS,
    SAMPLES,
    edges,
    fits,
    graph_plan,
    layer_chains,
    layers,
    piper_plan,
)

_TRANSFER_MS = 1
_TOO_LARGE = "does not fit into memory"


def _name(stages: tuple[str, ...]) -> str:
    return " | ".join(stages)


def _crossing(stages: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(u, v) for u, v in edges() if len(stages) > 1 and u in stages[0] and v in stages[1]]


def work_picture() -> str:
    """Draw the work of all layers on all devices."""
    canvas = Canvas()
    total = sum(layers().values())
    parts = [(float(ms), f"{name} {ms}", WORK) for name, ms in layers().items()]
    share = total / DEVICES
    rows = [Bar("all layers", parts, strong=True), Bar("one device of two", [(share, "half of it", WAIT)])]
    draw_bars(canvas, rows, 13, share, f"work: {share:g} ms", total="{:g} ms")
    return canvas.svg(f"The work of four layers, {total} ms, on {DEVICES} devices.")


def stage_times(stages: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return of each stage what it computes for a micro-batch, and what it sends and receives, in milliseconds."""
    moved = 2 * _TRANSFER_MS * len(_crossing(stages))
    return [(sum(layers()[name] for name in stage), moved) for stage in stages]


def downset_picture() -> str:
    """Draw the stages of each pipeline of at most two stages."""
    canvas = Canvas()
    bound = float(Fraction(*piper_plan()["lower_bound"]["value"]) / MS)
    rows, gaps = [], []
    for stages in layer_chains():
        times = stage_times(stages)
        gaps.append(len(rows))
        if not _fits_at_all(stages):
            rows.append(Bar(_name(stages), [], words=_TOO_LARGE))
            continue
        for stage, (work, moved) in zip(stages, times, strict=True):
            slowest = work + moved == max(sum(time) for time in times)
            parts = [(float(work), stage, WORK), *([(float(moved), "transfers", MOVE)] if moved else [])]
            name = _name(stages) if stage == stages[0] else ""
            rows.append(Bar(name, parts, strong=slowest and sum((work, moved)) == bound))
    draw_bars(canvas, rows, 14, bound, f"no pipeline is below {bound:g} ms", total="{:g} ms", gaps=gaps[1:])
    return canvas.svg("The stages of every pipeline of four layers on two devices.")


def chain_times(stages: tuple[str, ...]) -> list[list[tuple[int, str, str]]]:
    """Return of each stage of a chain what its micro-batches take, and what has to come before or follow.

    With the layers of a stage at M micro-batches of t each: M · t after the longest path into it, forward and back; or
    t before the longest path out of it, whose layers take M micro-batches.
    """
    times = layers()

    def longest_into(name: str) -> int:
        return times[name] + max((longest_into(u) for u, v in edges() if v == name), default=0)

    def longest_out_of(name: str) -> int:
        behind = max((longest_out_of(v) for u, v in edges() if u == name), default=0)
        return max(SAMPLES * times[name], times[name] + behind)

    rows = []
    for number, stage in enumerate(stages):
        once = sum(times[name] for name in stage)
        own = (SAMPLES * once, f"{SAMPLES} × {once}", WORK)
        crossing = _crossing(stages)
        before = [(longest_into(u) + 2 * _TRANSFER_MS, f"{u}, back", WAIT) for u, _ in crossing] if number else []
        behind = [(longest_out_of(v) + 2 * _TRANSFER_MS, f"{v}, {SAMPLES} times", WAIT) for _, v in crossing]
        ways = [[max(before), own] if before else [own]]
        if number == 0 and behind:
            ways.append([(once, str(once), WORK), max(behind)])
        rows.append(max(ways, key=lambda way: sum(size for size, _, _ in way)))
    return rows


def _fits_at_all(stages: tuple[str, ...]) -> bool:
    """Tell whether stages fit with the fewest micro-batches in flight that they may have."""
    return all(fits(stage, len(stages) - number) for number, stage in enumerate(stages))


def chains_picture() -> str:
    """Draw what each chain of downsets takes at least."""
    canvas = Canvas()
    fitting = [chain_times(stages) for stages in layer_chains() if _fits_at_all(stages)]
    least = min(max(sum(size for size, _, _ in row) for row in times) for times in fitting)
    rows, gaps = [], []
    for stages in layer_chains():
        gaps.append(len(rows))
        if not _fits_at_all(stages):
            rows.append(Bar(_name(stages), [], words=_TOO_LARGE))
            continue
        times = chain_times(stages)
        longest = max(sum(size for size, _, _ in row) for row in times)
        for number, parts in enumerate(times):
            total = sum(size for size, _, _ in parts)
            shown = [(float(size), words, fill) for size, words, fill in parts]
            rows.append(Bar(_name(stages) if number == 0 else "", shown, strong=total == longest == least))
    draw_bars(canvas, rows, 5.5, least, f"no chain is below {least:g} ms", total="{:g} ms", gaps=gaps[1:])
    return canvas.svg("What each chain of downsets of the four layers takes at least.")


def stage_graph(stages: tuple[str, ...], in_flight: tuple[int, ...]) -> dict[str, Any]:
    """Return a pipeline of these stages as ``mtpp simulate`` reads it: a backward pass takes twice a forward pass."""
    works = [sum(layers()[name] for name in stage) for stage in stages]
    moved = _TRANSFER_MS * len(_crossing(stages))
    return {
        "format": "mtpp-stage-graph",
        "version": 1,
        "time_unit": "ms",
        "mini_batch": SAMPLES,
        "stages": [
            {"micro_batch": 1, "forward": work // 3, "backward": work - work // 3, "in_flight": count}
            for work, count in zip(works, in_flight, strict=True)
        ],
        "transfers": [{"source": 0, "target": 1, "forward": moved, "backward": moved}] if len(stages) > 1 else [],
    }


def best_iteration(stages: tuple[str, ...]) -> tuple[float, tuple[int, ...]] | None:
    """Return the shortest iteration of these stages in milliseconds, and the micro-batches that each has in flight.

    None if they do not fit into memory.
    """
    counts = range(1, SAMPLES + 1)
    ways = [(x, y) for x in counts for y in counts if y <= x] if len(stages) > 1 else [(x,) for x in counts]
    fitting = [way for way in ways if all(fits(stage, count) for stage, count in zip(stages, way, strict=True))]
    found = [(mtpp.simulate(stage_graph(stages, way)).iteration_ticks / MS, way) for way in fitting]
    return min(found, default=None)


def exhaustive_picture() -> str:
    """Draw the shortest iteration of every stage graph."""
    canvas = Canvas()
    bound = graph_plan()["lower_bound"]["value"] / MS
    rows = []
    for stages in layer_chains():
        best = best_iteration(stages)
        if best is None:
            rows.append(Bar(_name(stages), [], words=_TOO_LARGE))
            continue
        time, in_flight = best
        words = f"{' and '.join(map(str, in_flight))} in flight"
        rows.append(Bar(_name(stages), [(time, words, WORK)], strong=time == bound))
    draw_bars(canvas, rows, 4, bound, f"no plan is below {bound:g} ms", total="{:g} ms")
    return canvas.svg("The shortest iteration of every stage graph of the four layers.")
