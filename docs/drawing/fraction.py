"""Drawing of the fraction bound: the share of its stage that each op takes at least."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from docs.drawing.canvas import Canvas
from docs.drawing.example import LADDER, Example
from docs.drawing.graph_picture import GraphPicture
from docs.drawing.stacked_shares import draw_shares


def absorbed(rows: list[list[int]], count: int) -> list[int]:
    """Return what each op gets from a flow, less what it gives."""
    found = [0] * count
    for _, *pairs in rows:
        for op, amount in zip(pairs[::2], pairs[1::2], strict=True):
            found[op] -= amount
    return found


def most_beside(example: Example, proof: Mapping[str, Any]) -> list[int]:
    """Return Y by op: no stage below the cutoff that holds the op has more work, itself included."""
    work = list(example.work.values())
    limit = proof["cutoff"] - 1
    most = [min(limit, sum(work))] * len(work)
    for v, p, q, _, flow, drawn, apart in proof["ops"]:
        assert not drawn
        got = absorbed(flow, len(work))
        t = [(p - q) * w for w in work]
        beside = sum(max(0, got[u] - t[u]) for u in range(len(work)) if u != v and u not in apart)
        most[v] = min(most[v], (p * limit - t[v] + got[v] + beside) // q)
    return most


def picture() -> str:
    """Draw the fraction bound of the ladder."""
    canvas = Canvas()
    proof = LADDER.bound("fraction")["lower_proof"]
    most = most_beside(LADDER, proof)
    parts = [Fraction(work, held) for work, held in zip(LADDER.work.values(), most, strict=True)]
    shares = [
        (op, float(part), f"{work} / {held}")
        for (op, work), part, held in zip(LADDER.work.items(), parts, most, strict=True)
    ]
    draw_shares(canvas, shares, proof["stages"], f"together {float(sum(parts)):.3f}")
    return canvas.svg(f"Shares of a stage that the ops of the ladder take: {float(sum(parts)):.3f} together.")


def beside_picture() -> str:
    """Draw the flow that limits what may be beside an op of the ladder."""
    canvas = Canvas()
    proof = LADDER.bound("fraction")["lower_proof"]
    v, p, _, _, flow, _, apart = proof["ops"][-1]
    graph = GraphPicture(canvas, LADDER)
    graph.draw(fill={LADDER.ops[v]: "#fde0c8"}, faded=[LADDER.ops[u] for u in apart])
    graph.flow(flow, scale=p)
    return canvas.svg(f"What a stage with op {LADDER.ops[v]} can hold.")
