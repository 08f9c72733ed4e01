"""Drawing of the node bound: the flow out of an op that shows what any stage around it costs."""

from __future__ import annotations

from docs.drawing.canvas import FLOW, Canvas
from docs.drawing.example import LADDER
from docs.drawing.graph_picture import GraphPicture


def picture() -> str:
    """Draw the node bound of the ladder."""
    canvas = Canvas()
    row = LADDER.bound("node")
    proof = row["lower_proof"]
    op = LADDER.ops[proof["op"]]
    graph = GraphPicture(canvas, LADDER)
    graph.draw(fill={op: "#fde0c8"})
    graph.flow(proof["flow"])
    given = [
        amount
        for _, *pairs in proof["flow"]
        for who, amount in zip(pairs[::2], pairs[1::2], strict=True)
        if who == proof["op"]
    ]
    canvas.text((0, -50), f"any stage with {op} costs at least", anchor="start")
    parts = " + ".join(map(str, [LADDER.work[op], *given]))
    canvas.text((0, -32), f"{parts} = {row['lower']} ticks", anchor="start", bold=True, colour=FLOW)
    return canvas.svg(f"A flow out of op {op} of the ladder: {parts} = {row['lower']}.")
