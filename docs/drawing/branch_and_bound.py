"""Drawing of a proof by branch and bound: the tree of its cases, each refuted or split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from docs.drawing.canvas import CLASH, INK, TAKEN, Canvas, Point
from docs.drawing.example import LADDER

_STEP_X, _STEP_Y = 160.0, 78.0
_WIDTH, _HEIGHT = 152.0, 40.0

Nodes = Sequence[Any]


def _places(nodes: Nodes) -> dict[int, Point]:
    """Return where the nodes are drawn: leaves side by side, others above the middle of their two."""
    found: dict[int, Point] = {}
    leaves = 0

    def put(node: int, depth: int) -> float:
        nonlocal leaves
        branch = nodes[node][1]
        if branch is None:
            x = leaves * _STEP_X
            leaves += 1
        else:
            x = sum(put(below, depth + 1) for below in branch[2:]) / 2
        found[node] = (x, depth * _STEP_Y)
        return x

    put(0, 0)
    return found


def stages_words(boundary: int, k: int, *, first: bool) -> str:
    """Return which stages an op is in, if it is in the first *boundary* ones or not."""
    low, high = (1, boundary) if first else (boundary + 1, k)
    return f"stage {low}" if low == high else f"stages {low}–{high}"


def _texts(nodes: Nodes, blocks: int, k: int) -> dict[int, tuple[str, str, bool]]:
    """Return by node what is assumed, what is done about it, and whether it is refuted."""
    assumed = {0: "all partitions"}
    found = {}
    for node, (steps, branch) in enumerate(nodes):
        if branch is None:
            weighed = sorted({b for step in steps for b, multiplier in enumerate(step[1][:blocks], 1) if multiplier})
            says = "refuted by stage" + ("s " if len(weighed) > 1 else " ") + " and ".join(map(str, weighed))
        else:
            op, boundary, *below = branch
            says = f"two cases of {LADDER.ops[op]}"
            for first, child in zip((False, True), below, strict=True):
                assumed[child] = f"{LADDER.ops[op]} in {stages_words(boundary, k, first=first)}"
        found[node] = (assumed[node], says, branch is None)
    return found


def picture() -> str:
    """Draw the cases of the ladder."""
    canvas = Canvas()
    row = LADDER.bound("branch-and-bound")
    proof = row["lower_proof"]
    nodes, k = proof["nodes"], sum(proof["blocks"])
    at = _places(nodes)
    for node, (_, branch) in enumerate(nodes):
        for child in [] if branch is None else branch[2:]:
            (x, y), (cx, cy) = at[node], at[child]
            canvas.line([(x, y + _HEIGHT / 2), (cx, cy - _HEIGHT / 2)], colour=TAKEN)
    for node, (words, says, refuted) in _texts(nodes, len(proof["blocks"]), k).items():
        x, y = at[node]
        left, top, colour = x - _WIDTH / 2, y - _HEIGHT / 2, CLASH if refuted else INK
        fill = "#f6d5d5" if refuted else "white"
        canvas.rectangle(left, top, _WIDTH, _HEIGHT, fill=fill, edge=colour, corner=8)
        canvas.text((x, y - 8), words, size=12, bold=True)
        canvas.text((x, y + 9), says, size=11, colour=colour)
    return canvas.svg(f"Cases that cover all partitions of the ladder below {row['lower']} ticks.")
