"""Drawing of the crossings bound: windows for the work of the first stages, narrowed until one is empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from docs.drawing.canvas import CLASH, GRID, INK, PALE, TAKEN, Canvas
from docs.drawing.example import LADDER

_TICK = 11.0
_ROW = 34.0
_LEFT = 190.0
_SPAN = 50.0
"""Room that a window's numbers take."""


class Windows(NamedTuple):
    """Least and most work of the first i stages, by i."""

    least: list[int]
    most: list[int]


def first_stages(count: int) -> str:
    """Return what the first stages are called."""
    return "stage 1" if count == 1 else f"stages 1–{count}"


def windows(total: int, limit: int, k: int, numbers: Mapping[tuple[str, int], int]) -> Windows:
    """Return the windows that follow from what is made for, read from and carried across stages at least."""

    def known(kind: str, stage: int) -> int:
        return numbers.get((kind, stage), 0)

    least, most = [], []
    for i in range(k + 1):
        paid = sum(known("made", j) + known("read", j) for j in range(1, i + 1))
        most.append(min(total, i * limit - paid))
        made = sum(known("made", j) for j in range(i + 1, k + 1))
        read = sum(known("read", j) for j in range(i + 1, k + 1))
        received = max(read, max(known("across", i), known("made", i)) + made)
        least.append(max(0, total - (k - i) * limit + made + received))
    return Windows(least, most)


def history(proof: Mapping[str, Any], total: int) -> list[tuple[str, Windows]]:
    """Return each step in words, and the windows after it; the first entry is before any."""
    numbers: dict[tuple[str, int], int] = {}
    limit, k = proof["cutoff"] - 1, proof["stages"]
    found = [("work alone", windows(total, limit, k, numbers))]
    for kind, stage, amount, _, _ in proof["steps"]:
        numbers[kind, stage] = max(amount, numbers.get((kind, stage), 0))
        words = {
            "made": f"stage {stage} sends ≥ {amount}",
            "read": f"stage {stage} receives ≥ {amount}",
            "across": f"{first_stages(stage)} pass{'es' if stage == 1 else ''} on ≥ {amount}",
        }
        found.append((words[kind], windows(total, limit, k, numbers)))
    return found


def picture() -> str:
    """Draw the crossings bound of the ladder."""
    canvas = Canvas()
    proof = LADDER.bound("crossings")["lower_proof"]
    total, k = sum(LADDER.work.values()), proof["stages"]
    steps = history(proof, total)
    bottom = len(steps) * _ROW
    for tick in range(0, total + 1, 5):
        canvas.line([(_LEFT + tick * _TICK, -6), (_LEFT + tick * _TICK, bottom)], colour=GRID, width=1)
        canvas.text((_LEFT + tick * _TICK, bottom + 12), str(tick), size=11, colour=PALE)
    canvas.text((_LEFT + total * _TICK / 2, bottom + 30), "work in the first stages, in ticks", size=12, colour=PALE)
    for row, (words, (least, most)) in enumerate(steps):
        top = row * _ROW
        canvas.text((_LEFT - 14, top + 12), words, anchor="end")
        for i in range(1, k):
            empty = least[i] > most[i]
            low, high = sorted((least[i], most[i]))
            colour = CLASH if empty else TAKEN
            width = max((high - low) * _TICK, 2.0)
            fill = "#f6d5d5" if empty else "#cfe3f3"
            canvas.rectangle(_LEFT + low * _TICK, top, width, 24, fill=fill, edge=colour)
            span = f"at least {least[i]}, at most {most[i]}" if empty else f"{least[i]} … {most[i]}"
            if width < _SPAN:
                place, anchor = (_LEFT + low * _TICK + width + 6, top + 12), "start"
            else:
                place, anchor = (_LEFT + (low + high) / 2 * _TICK, top + 12), "middle"
            canvas.text(place, span, size=12, colour=colour if empty else INK, anchor=anchor)
    for i in range(1, k):
        _, (least, most) = steps[0]
        canvas.text((_LEFT + (least[i] + most[i]) / 2 * _TICK, -18), first_stages(i), bold=True)
    return canvas.svg(f"Windows of work of the first stages of the ladder, below {proof['cutoff']} ticks a stage.")
