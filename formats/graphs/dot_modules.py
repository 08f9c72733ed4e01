"""DOT drawings of modules: a box for each, with the ops that it stands for, and the bytes that flow between them.

Ops whose module is not known are boxes of their own. With a partition, stages are clusters; a module that is cut has a
box in each of its stages. There may be cycles: two modules that take turns feed each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpp.formats.graphs.dot import head, quoted, stage_head, time_text
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.plan import Plan
from mtpp.units import format_bytes

Box = tuple[int, int]
"""A stage, and a module or, after all modules, an op without one."""


def write_dot_modules(graph: CostGraph, modules: Sequence[str], module_of: Sequence[int | None]) -> str:
    """Return the text of a DOT file that draws the modules of *graph*.

    Parameters
    ----------
    modules
        Their paths.
    module_of
        Module of each op; None where it is not known.

    Notes
    -----
    O(n + pins) time and memory.
    """
    boxes = _boxes(modules, module_of, [0] * graph.op_count)
    members = _members(boxes)
    lines = [*head(graph.name), *(f" {_node(graph, modules, box, *members[box])}" for box in members)]
    return "\n".join([*lines, *_edges(graph, boxes, members)]) + "\n}\n"


def write_dot_module_stages(plan: Plan, modules: Sequence[str], module_of: Sequence[int | None]) -> str:
    """Return the text of a DOT file that draws the modules of a plan's stages as clusters, empty ones left out."""
    graph, costs = plan.graph, plan.costs
    boxes = _boxes(modules, module_of, plan.partition.assignment.tolist())
    members = _members(boxes)
    nodes: list[list[str]] = [[] for _ in range(plan.partition.k)]
    for box, found in members.items():
        nodes[box[0]].append(f"  {_node(graph, modules, box, *found)}")
    lines = head(graph.name)
    for stage, count in enumerate(costs.ops.tolist()):
        if count:
            cost = plan.instance.describe(int(costs.cost[stage]))
            lines += [*stage_head(stage, count, cost), *nodes[stage], " }"]
    return "\n".join([*lines, *_edges(graph, boxes, members)]) + "\n}\n"


def _boxes(modules: Sequence[str], module_of: Sequence[int | None], stages: Sequence[int]) -> list[Box]:
    return [
        (stage, len(modules) + op if module is None else module)
        for op, (module, stage) in enumerate(zip(module_of, stages, strict=True))
    ]


def _members(boxes: Sequence[Box]) -> dict[Box, tuple[int, list[int]]]:
    """Return the number of each box and its ops."""
    found: dict[Box, tuple[int, list[int]]] = {}
    for op, box in enumerate(boxes):
        found.setdefault(box, (len(found), []))[1].append(op)
    return found


def _node(graph: CostGraph, modules: Sequence[str], box: Box, number: int, ops: list[int]) -> str:
    time = time_text(sum(graph.work[op] for op in ops), graph.time_unit)
    if box[1] < len(modules):
        parts = [modules[box[1]], f"{len(ops):,} op{'' if len(ops) == 1 else 's'}", time]
    else:
        parts = [graph.op_names[ops[0]], graph.op_kinds[ops[0]], time]
    label = "\\n".join(quoted(part)[1:-1] for part in parts if part)
    return f'n{number} [label="{label}"];'


def _edges(graph: CostGraph, boxes: Sequence[Box], members: dict[Box, tuple[int, list[int]]]) -> Iterator[str]:
    """Yield an edge for each two boxes between which tensors flow: each tensor counts once, however many read it."""
    flows: dict[tuple[Box, Box], int | None] = {}
    for t, size in enumerate(graph.tensor_bytes.tolist()):
        source = boxes[graph.tensor_producer[t]]
        for target in {boxes[v]: None for v in graph.tensor_consumers(t).tolist()}:
            if target != source:
                so_far = flows.get((source, target), 0)
                flows[source, target] = None if so_far is None or size == UNKNOWN_BYTES else so_far + size
    for (source, target), size in flows.items():
        label = "" if size is None else format_bytes(size)
        crossing = ", style=bold" if source[0] != target[0] else ""
        yield f' n{members[source][0]} -> n{members[target][0]} [label="{label}"{crossing}];'
