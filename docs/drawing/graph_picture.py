"""A small graph: ops as circles, tensors as arrows with what they take, sets of ops as coloured areas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from docs.drawing.canvas import FLOW, INK, PALE, Canvas, Point, beside, shortened
from docs.drawing.example import DrawnTensor, Example
from mtpp.colours import paler, stage_colour

RADIUS = 21.0
STEP = 88.0
_SPLIT = 0.42
"""Part of the way to its readers at which a tensor with several of them branches."""


class GraphPicture:
    """A graph on a canvas, with its left upper corner at a point.

    Attributes
    ----------
    tensors, work
        What is drawn, with ticks by op; those of the example unless told otherwise.
    """

    def __init__(
        self,
        canvas: Canvas,
        example: Example,
        corner: Point = (0.0, 0.0),
        tensors: Sequence[DrawnTensor] | None = None,
        work: Mapping[str, int] | None = None,
    ) -> None:
        self._canvas = canvas
        self._example = example
        self.tensors = example.tensors if tensors is None else tensors
        self.work = example.work if work is None else work
        self._at = {op: (corner[0] + x * STEP, corner[1] + y * STEP) for op, (x, y) in example.places.items()}

    def area(self, ops: Collection[str], colour: str) -> None:
        """Colour what is around some ops."""
        self._canvas.blob([self._at[op] for op in ops], radius=RADIUS + 11, fill=colour)

    def stages(self, stage_of: Mapping[str, int]) -> None:
        """Colour the area of each stage."""
        for stage in sorted(set(stage_of.values())):
            self.area([op for op, other in stage_of.items() if other == stage], paler(stage_colour(stage), 0.6))

    def draw(
        self,
        *,
        fill: Mapping[str, str] | None = None,
        cut: Iterable[str] = (),
        faded: Collection[str] = (),
        costs: bool = True,
    ) -> None:
        """Draw tensors and ops.

        Parameters
        ----------
        fill
            Colours of ops; white by default.
        cut
            Names of tensors to be drawn boldly.
        faded
            Ops that are drawn in grey, with their tensors.
        costs
            Whether work and transfers are written.
        """
        bold = set(cut)
        for tensor in self.tensors:
            self._tensor(tensor, faded, bold=tensor.name in bold, costs=costs)
        for op, work in self.work.items():
            at, colour = self._at[op], PALE if op in faded else INK
            self._canvas.circle(at, RADIUS, fill=(fill or {}).get(op, "white"), edge=colour)
            self._canvas.text((at[0], at[1] - (6 if costs else 0)), op, size=14, bold=True, colour=colour)
            if costs:
                self._canvas.text((at[0], at[1] + 9), str(work), size=12, colour=colour)

    def _tensor(self, tensor: DrawnTensor, faded: Collection[str], *, bold: bool, costs: bool) -> None:
        width = 2.6 if bold else 1.2
        producer, middle = self._at[tensor.producer], self.middle(tensor)
        gone = tensor.producer in faded or all(op in faded for op in tensor.consumers)
        colour = PALE if gone else INK
        if len(tensor.consumers) == 1:
            ends = shortened(producer, self._at[tensor.consumers[0]], RADIUS, RADIUS + 1)
            self._canvas.line(ends, colour=colour, width=width, arrow=True)
        elif tensor.consumers:
            begin, _ = shortened(producer, middle, RADIUS, 0)
            self._canvas.line((begin, middle), colour=colour, width=width)
            for reader in tensor.consumers:
                _, end = shortened(middle, self._at[reader], 0, RADIUS + 1)
                pale = colour if reader not in faded else PALE
                self._canvas.line((middle, end), colour=pale, width=width, arrow=True)
            self._canvas.circle(middle, 3.5, fill=colour, edge=colour)
        if costs and tensor.consumers:
            self._label(producer, middle, str(tensor.transfer), colour, bold=bold)

    def middle(self, tensor: DrawnTensor) -> Point:
        """Return where a tensor's transfer is written, and where it branches."""
        x, y = self._at[tensor.producer]
        readers = [self._at[op] for op in tensor.consumers]
        part = 0.5 if len(readers) == 1 else _SPLIT
        mean = (sum(px for px, _ in readers) / len(readers), sum(py for _, py in readers) / len(readers))
        return x + (mean[0] - x) * part, y + (mean[1] - y) * part

    def _label(
        self, begin: Point, at: Point, words: str, colour: str, *, bold: bool = False, side: float = -12
    ) -> None:
        _, place = beside(begin, at, side)
        self._canvas.text(place, words, size=12, colour=colour, bold=bold)

    def flow(self, rows: Iterable[Sequence[int]], scale: float = 1) -> None:
        """Draw a flow through tensors, as rows ``[tensor, op, amount, …]`` of a proof.

        Parameters
        ----------
        scale
            What amounts are divided by.
        """
        ops = self._example.ops
        for tensor, *pairs in rows:
            drawn = self.tensors[tensor]
            amounts = list(zip(pairs[::2], pairs[1::2], strict=True))
            if len(amounts) == 2:
                (giver,) = (op for op, amount in amounts if amount > 0)
                (taker,) = (op for op, amount in amounts if amount < 0)
                size = max(amount for _, amount in amounts)
                self._flow_line(
                    self._way(drawn, ops[giver], ops[taker]), size / scale, forward=ops[giver] == drawn.producer
                )
                continue
            for op, amount in amounts:
                ends = [self._at[ops[op]], self.middle(drawn)]
                forward = (amount > 0) == (ops[op] == drawn.producer)
                self._flow_line(ends if amount > 0 else ends[::-1], abs(amount) / scale, forward=forward)

    def _way(self, tensor: DrawnTensor, giver: str, taker: str) -> list[Point]:
        ends = [self._at[giver], self._at[taker]]
        return ends if len(tensor.consumers) == 1 else [ends[0], self.middle(tensor), ends[1]]

    def _flow_line(self, points: Sequence[Point], amount: float, *, forward: bool) -> None:
        # A flow stands on the side of its arrow that has no transfer written beside it.
        side = 9 if forward else -9
        moved = [beside(*pair, side) for pair in pairwise(points)]
        line = [moved[0][0], *(end for _, end in moved)]
        line[0] = shortened(line[0], line[1], RADIUS + 2, 0)[0]
        line[-1] = shortened(line[-2], line[-1], 0, RADIUS + 2)[1]
        self._canvas.line(line, colour=FLOW, width=2.2, arrow=True)
        middle = ((line[0][0] + line[1][0]) / 2, (line[0][1] + line[1][1]) / 2)
        self._label(line[0], middle, f"{amount:g}", FLOW, bold=True, side=12 if forward else -12)

    def hint(self, op: str, other: str, words: str, colour: str) -> None:
        """Draw a dashed arrow from one op to another, with a word beside it."""
        begin, end = shortened(*beside(self._at[op], self._at[other], 12), RADIUS + 2, RADIUS + 2)
        self._canvas.line((begin, end), colour=colour, width=1.8, dashed=True, arrow=True)
        middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
        self._label(begin, middle, words, colour, bold=True, side=12)
