"""Colours of a Gantt chart: a hue for each kind of bars, a shade of it for each loop, and their legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpp.training.timeline import Timeline

HUES = {
    "forward": "#56B4E9",
    "backward": "#009E73",
    "backward_input": "#009E73",
    "backward_weight": "#F0E442",
    "synchronisation": "#CC79A7",
    "transfer": "#E69F00",
}
"""Of kinds of bars; the colour-blind tell them apart (Okabe and Ito, 2008)."""

_NAMES = {"backward_input": "gradients of inputs", "backward_weight": "gradients of weights"}
"""Of kinds in a legend, where they are not their own."""

CRITICAL = "#D00000"

_PALEST = 0.7
"""Part of white in the shade of a device's last loop."""

_MOST_NAMED = 4
"""Loops that a legend names one by one; of more, the first and the last."""

Shade = tuple[str, int]
"""Kind of a bar, and the loop that it is of."""


def colour(shade: Shade, loops: int) -> str:
    """Return the colour of bars: the kind's own for the first loop, paler ones for those behind."""
    kind, loop = shade
    if loops == 1 or loop == 0:
        return HUES[kind]
    part = _PALEST * loop / (loops - 1)
    parts = (int(HUES[kind][i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(value + (255 - value) * part):02X}" for value in parts)


def shades(timeline: Timeline) -> Sequence[Shade]:
    """Return what there is to be coloured, in the order of the legend."""
    found = {(bar.kind, bar.loop) for row in timeline.rows for bar in row.bars}
    found |= {("transfer", 0) for row in timeline.channels for bar in row.bars if bar.end > bar.start}
    kinds = list(HUES)
    return sorted(found, key=lambda one: (kinds.index(one[0]), one[1]))


def legend(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Yield the colours of a legend and what they stand for."""
    loops = timeline.loops
    for kind, loop in shades(timeline):
        if loops > _MOST_NAMED and 0 < loop < loops - 1:
            continue
        name = _NAMES.get(kind, kind)
        named = loops > 1 and kind not in ("synchronisation", "transfer")
        yield colour((kind, loop), loops), f"{name}, loop {loop + 1}" if named else name
    if timeline.critical:
        yield CRITICAL, "critical path"
