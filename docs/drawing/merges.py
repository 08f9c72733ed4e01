"""Drawing of a merge: an op and the only one that reads from it, and the graph in which they are one."""

from __future__ import annotations

from docs.drawing.canvas import FLOW, Canvas
from docs.drawing.chosen_stages import AREA, cost_words
from docs.drawing.example import DrawnTensor, Example
from docs.drawing.graph_picture import STEP, GraphPicture

MERGE = Example("merge", 3)


def merged(example: Example) -> tuple[dict[str, int], list[DrawnTensor], tuple[str, str]]:
    """Return work and tensors after the first merge of the proof, and the op that moves with the one it moves to."""
    (rule, moved, leader), *more = example.bound("node")["lower_proof"]["merges"]
    assert rule == "pull-up"
    assert not more
    gone, kept = example.ops[moved], example.ops[leader]
    work = {op: ticks for op, ticks in example.work.items() if op != gone}
    work[kept] += example.work[gone]
    tensors = []
    for one in example.tensors:
        touching = [kept if op == gone else op for op in one.touching]
        readers = tuple(op for op in dict.fromkeys(touching[1:]) if op != touching[0])
        tensors.append(DrawnTensor(one.name, touching[0], readers, one.transfer))
    return work, [one for one in tensors if one.consumers], (gone, kept)


def picture() -> str:
    """Draw the graph before and after."""
    canvas = Canvas()
    work, tensors, (gone, kept) = merged(MERGE)
    before = GraphPicture(canvas, MERGE)
    before.area((kept, gone), AREA)
    before.draw()
    GraphPicture(canvas, MERGE, (4.9 * STEP, 0.0), tensors, work).draw(fill={kept: AREA})
    for line, some in enumerate(((kept,), (kept, gone))):
        canvas.text((0, -34 + 18 * line), cost_words(MERGE, some), anchor="start", bold=True, colour=FLOW)
    return canvas.svg(f"Op {gone} is merged with {kept}, the only op it reads from.")
