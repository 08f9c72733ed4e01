"""Tokens per second and sequences that fit, against the context, for the stages of a plan of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Any

from mtpp.colours import AMBER, BLUE
from mtpp.units import format_bytes
from mtpp.views.report.colours import ACCENT, INK, SURFACE
from mtpp.views.report.drawing import Drawing
from mtpp.views.report.page import Block, Cell, Chart, Prose, Section, TableBlock
from mtpp.views.table import Column, Table
from mtpp.wording import counted

CONTEXTS = "Tokens per second and context"
"""Title of the section."""

_PLAN, _BEST = BLUE, AMBER
"""Colours of lines, as distinct to readers who see few colours; lines differ in dashes too."""

_HEIGHT = 280
_HEADROOM = 1.22
"""Room above the highest point, for names of lines."""


@dataclass(frozen=True)
class ContextPoint:
    """Figures of the stages at one context.

    Attributes
    ----------
    slowest
        Stage of the bottleneck.
    fullest, held, limit
        Stage with the largest share of its limit, its bytes, and the limit; None: without one.
    fits
        Whether all stages hold their sequences.
    sequences
        Most sequences of this context that the stages hold; None: any number.
    best_tokens_per_s
        Of the best plan at this context; None where there is none or none was searched for.
    """

    context: int
    tokens_per_s: float
    slowest: int
    fullest: int
    held: int
    limit: int | None
    fits: bool
    sequences: int | None
    best_tokens_per_s: float | None = None


@dataclass(frozen=True)
class ContextCurve:
    """Figures of the stages of a plan over contexts, in increasing order.

    Attributes
    ----------
    phase
        ``decode`` or ``prefill``.
    planned
        Context that the plan is for.
    largest
        Largest context at which all sequences fit; None: any.
    searched
        Whether the best plan at each context was searched for.
    """

    phase: str
    planned: int
    sequences: int
    batch: int
    largest: int | None
    points: Sequence[ContextPoint]
    searched: bool = False


def context_section(curve: ContextCurve, charts: dict[str, Any]) -> Section:
    """Return the section, and add its charts to *charts*."""
    legend = [(_PLAN, "stages of this plan; dashed where sequences no longer fit")]
    if any(point.best_tokens_per_s is not None for point in curve.points):
        legend.append((_BEST, "best plan at each context (dotted)"))
    charts["tokens"] = _tokens_chart(curve).item()
    work = f"{curve.phase} with {counted(curve.sequences, 'sequence')} held, {curve.batch:,} in a step"
    caption = f"Tokens per second against tokens of context: {work}; computed for this page, as batch over bottleneck"
    blocks: list[Block] = [Chart("tokens", caption, _HEIGHT, legend)]
    if any(point.sequences for point in curve.points):
        charts["sequences"] = _sequences_chart(curve).item()
        caption = "Most sequences that the stages of this plan hold, against tokens of context; both axes double at "
        caption += "each step"
        blocks.append(Chart("sequences", caption, _HEIGHT, [(_PLAN, "stages of this plan")]))
    blocks.append(_table(curve))
    blocks.append(Prose(_said(curve), quiet=True))
    return Section("context-part", CONTEXTS, blocks)


def tokens_text(tokens: int) -> str:
    """Write a number of tokens, whole multiples of 1,024 as ``32k``.

    Examples
    --------
    >>> tokens_text(32768), tokens_text(104202), tokens_text(1048576)
    ('32k', '104,202', '1M')
    """
    for size, sign in ((2**20, "M"), (2**10, "k")):
        if tokens and tokens % size == 0:
            return f"{tokens // size}{sign}"
    return f"{tokens:,}"


def rate_text(tokens_per_s: float) -> str:
    """Write tokens per second with three digits at least."""
    return f"{tokens_per_s:,.0f}" if tokens_per_s >= 100 else f"{tokens_per_s:.3g}"


def _axis(curve: ContextCurve) -> tuple[int, int]:
    """Return the powers of two around all points."""
    contexts = [point.context for point in curve.points]
    first, last = floor(log2(contexts[0])), ceil(log2(contexts[-1]))
    return first, max(last, first + 1)


def _tokens_chart(curve: ContextCurve) -> Drawing:
    first, last = _axis(curve)
    rates = [point.tokens_per_s for point in curve.points]
    best = [point.best_tokens_per_s for point in curve.points if point.best_tokens_per_s is not None]
    top = max([*rates, *best]) * _HEADROOM or 1.0
    drawing = _chart("tokens", first, last, y=(0, top))
    at = [log2(point.context) - first for point in curve.points]
    if best:  # below the other line: it shows where another plan is better
        points = [(x, one.best_tokens_per_s) for x, one in zip(at, curve.points, strict=True) if one.best_tokens_per_s]
        xs, ys = (list(column) for column in zip(*points, strict=True))
        drawing.lines({"xs": [xs], "ys": [ys]}, name="best", colour=_BEST, width=3, dash="dotted")
    cut = max((i for i, point in enumerate(curve.points) if point.fits), default=0)
    drawing.lines({"xs": [at[cut:]], "ys": [rates[cut:]]}, name="beyond", colour=_PLAN, width=2, dash="dashed")
    drawing.lines({"xs": [at[: cut + 1]], "ys": [rates[: cut + 1]]}, name="stages", colour=_PLAN, width=3)
    _marks(drawing, curve, first, last, top)
    _dots(drawing, curve, at, rates, last - first, top, [f"{rate_text(one)} tokens/s" for one in rates])
    return drawing


def _sequences_chart(curve: ContextCurve) -> Drawing:
    first, last = _axis(curve)
    found = [(log2(point.context) - first, point) for point in curve.points if point.sequences]
    powers = [log2(point.sequences or 1) for _, point in found]
    most = max(ceil(max(powers)), 1)
    drawing = _chart("sequences", first, last, y=(0, most * _HEADROOM), rows=[f"{2**i:,}" for i in range(most + 1)])
    at = [x for x, _ in found]
    drawing.lines({"xs": [at], "ys": [powers]}, name="stages", colour=_PLAN, width=3)
    _marks(drawing, curve, first, last, most * _HEADROOM)
    told = [counted(point.sequences or 0, "sequence") for _, point in found]
    points = ContextCurve(curve.phase, curve.planned, curve.sequences, curve.batch, None, [one for _, one in found])
    _dots(drawing, points, at, powers, last - first, most * _HEADROOM, told)
    return drawing


def _chart(
    name: str, first: int, last: int, *, y: tuple[float, float], rows: Sequence[str] | None = None
) -> Drawing:  # fmt: skip
    columns = [tokens_text(2**power) for power in range(first, last + 1)]
    width = last - first
    return Drawing(
        name,
        height=_HEIGHT,
        x=(-0.02 * width, 1.02 * width),
        y=y,
        rows=rows,
        columns=columns,
        sparse=True,
    )


def _marks(drawing: Drawing, curve: ContextCurve, first: int, last: int, top: float) -> None:
    """Draw the planned context, and the largest one that fits, with names below each other."""
    marks = [("planned", f"planned: {tokens_text(curve.planned)}", curve.planned, INK, "dashed", 4)]
    if curve.largest is not None and curve.largest > 0:
        text = f"fits up to {curve.largest:,}"
        marks.append(("largest", text, curve.largest, ACCENT, "solid", 20))
    shown = [(log2(mark[2]) - first, *mark) for mark in marks if 2**first <= mark[2] <= 2**last]
    for x, name, _, _, colour, dash, _ in shown:
        drawing.lines({"xs": [[x, x]], "ys": [[0, top]]}, name=name, colour=colour, width=1.5, dash=dash)
    for x, name, text, _, colour, _, below in shown:  # names lie over all lines
        left = x > (last - first) / 2
        drawing.texts(
            {"x": [x], "y": [top], "text": [text]}, name=f"{name}-name", colour=colour,
            align="right" if left else "left", baseline="top", dx=-6 if left else 6, dy=below, bold=True, covering=True,
        )  # fmt: skip


def _dots(
    drawing: Drawing,
    curve: ContextCurve,
    at: Sequence[float],
    ys: Sequence[float],
    width: float,
    top: float,
    told: Sequence[str],
) -> None:
    """Draw the points, with hints."""
    aside, above = width / 110, top / 42
    drawing.boxes(
        {
            "left": [x - aside / 2 for x in at],
            "right": [x + aside / 2 for x in at],
            "top": [y + above / 2 for y in ys],
            "bottom": [y - above / 2 for y in ys],
            "name": [f"{point.context:,} tokens" for point in curve.points],
            "told": list(told),
            "held": [_fullest(point) for point in curve.points],
        },
        name="points",
        fill=_PLAN,
        edge=SURFACE,
        tips=(("context", "name"), ("", "told"), ("fullest", "held")),
    )


def _fullest(point: ContextPoint) -> str:
    text = f"stage {point.fullest}: {format_bytes(point.held)}"
    return text if point.limit is None else f"{text} of {format_bytes(point.limit)}"


def _table(curve: ContextCurve) -> TableBlock:
    best = curve.searched
    columns = [
        Column("context", "{:,}".format),
        Column("tokens/s", rate_text),
        *([Column("best plan", rate_text)] if best else []),
        Column("slowest stage"),
        Column("fullest stage", left=True),
        Column("fits", left=True),
        Column("most sequences"),
    ]
    rows = [
        [
            *(point.context, point.tokens_per_s),
            *([point.best_tokens_per_s] if best else []),
            *(point.slowest, _fullest(point)),
            Cell("yes" if point.fits else "no"),
            Cell("any", 2**62) if point.sequences is None else Cell(f"{point.sequences:,}", point.sequences),
        ]
        for point in curve.points
    ]
    marks = [{"chosen": str(point.context == curve.planned).lower()} for point in curve.points]
    caption = (
        f"Stages of this plan at other contexts, {counted(curve.sequences, 'sequence')} held; computed for this page"
    )
    return TableBlock("context-table", Table(caption, columns, rows), marks, sortable=True)


def _said(curve: ContextCurve) -> str:
    text = "The stages and devices are those of the plan; their costs and memory are computed anew at each context."
    if curve.largest is None:
        text += " No context fills a device."
    elif curve.largest > 0:
        text += f" They hold {counted(curve.sequences, 'sequence')} of up to {curve.largest:,} tokens."
    else:
        text += f" They do not hold {counted(curve.sequences, 'sequence')} of any context."
    if curve.searched:
        return f"{text} The best plan is searched for anew at each context; nothing of that is verified here."
    return f"{text} At another context another plan may be better."
