"""Drawing of the relaxation: the graph with the ops that are left out, and what remains."""

from __future__ import annotations

from docs.drawing.canvas import FLOW, INK, Canvas
from docs.drawing.example import DrawnTensor, Example
from docs.drawing.graph_picture import STEP, GraphPicture

SMALL_OPS = Example("small-ops", 3)


def charges(example: Example, charged: dict[str, str]) -> dict[str, int]:
    """Return by left-out op what the op that pays for it has more work."""
    amounts: dict[str, int] = {}
    for op in example.ops:  # in file order, so that those that pay for others come after these
        if op in charged:
            carried = sum(amount for other, amount in amounts.items() if charged[other] == op)
            dearest = max(t.transfer for t in example.tensors if t.producer == op and charged[op] in t.consumers)
            amounts[op] = min(example.work[op] + carried, dearest)
    return amounts


def relaxed(example: Example) -> tuple[dict[str, int], list[DrawnTensor]]:
    """Return the work of the ops that stay, and their tensors."""
    proof = example.bound("relaxation")["lower_proof"]["relaxed"]
    assert not proof["bypassed"]
    assert not proof["lowered"]
    gone = set(proof["left_out"])
    amounts = charges(example, proof["charged"])
    work = {
        op: ticks + sum(amount for other, amount in amounts.items() if proof["charged"][other] == op)
        for op, ticks in example.work.items()
        if op not in gone
    }
    tensors = [
        DrawnTensor(one.name, one.producer, tuple(op for op in one.consumers if op not in gone), one.transfer)
        for one in example.tensors
        if one.producer not in gone
    ]
    return work, tensors


def picture() -> str:
    """Draw the whole graph, and the one without its small ops."""
    canvas = Canvas()
    row = SMALL_OPS.bound("relaxation")
    proof = row["lower_proof"]["relaxed"]
    work, tensors = relaxed(SMALL_OPS)
    amounts = charges(SMALL_OPS, proof["charged"])
    whole = GraphPicture(canvas, SMALL_OPS)
    whole.draw(faded=proof["left_out"])
    for op, payer in proof["charged"].items():
        whole.hint(op, payer, f"{amounts[op]}", FLOW)
    right = 5.1 * STEP
    rest = GraphPicture(canvas, SMALL_OPS, (right, 0.0), tensors, work)
    rest.draw(fill={op: "#fde0c8" for op in work if work[op] > SMALL_OPS.work[op]})
    canvas.text((2 * STEP, -48), f"OPT = {max(map(SMALL_OPS.cost, _stages()))}", colour=INK, bold=True)
    canvas.text((right + 2 * STEP, -48), f"its OPT = {row['lower']}: a lower bound", colour=FLOW, bold=True)
    return canvas.svg("A graph, and what is left of it without its small ops.")


def _stages() -> list[list[str]]:
    best = SMALL_OPS.best
    return [[op for op in SMALL_OPS.ops if best[op] == stage] for stage in set(best.values())]
