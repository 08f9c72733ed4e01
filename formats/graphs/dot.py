"""DOT, the language of Graphviz: drawings of graphs and of their stages. Written, not read.

An op is a box with its name, its kind and its time; an edge is one use of a tensor, labelled with its size, or with
its transfer time where no size is known. With a partition, stages are clusters, each in its colour, and edges between
them are drawn bold. Draw it with ``dot -Tsvg graph.dot -o graph.svg``; above a few thousand ops ``sfdp`` is faster.

The language: https://graphviz.org/doc/info/lang.html; escapes in labels: https://graphviz.org/docs/attr-types/escString/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from mtpp.colours import stage_colour, text_on
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.plan import Plan
from mtpp.units import PICOSECONDS, Exact, format_bytes, format_picoseconds

Box = tuple[int, int]
"""A stage, and a module or, after all modules, an op without one."""

_LARGEST_SHOWN = 10**18
"""Of any cost: no larger one can be computed with, and files may hold numbers that no float holds."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
"""Labels know backslash sequences (``\\N`` is the name of the node) and HTML entities."""

_START = re.compile(rb"(?>(?:\s|//[^\n]*\n|/\*.*?\*/)*)(?:strict\s+)?(?:di)?graph\b[^{]{0,200}\{", re.DOTALL | re.I)


def looks_like_dot(data: bytes) -> bool:
    """Return whether a text begins as a graph in DOT does; cheap."""
    return _START.match(data[:4096]) is not None


def write_dot(graph: CostGraph) -> str:
    """Return the text of a DOT file that draws *graph*.

    Notes
    -----
    O(n + pins) time and memory.
    """
    lines = [*head(graph.name), *_nodes(graph, range(graph.op_count), " "), *_edges(graph, None)]
    return "\n".join(lines) + "\n}\n"


def write_dot_stages(plan: Plan) -> str:
    """Return the text of a DOT file that draws the stages of a plan as clusters, empty ones left out."""
    graph, assignment = plan.graph, plan.partition.assignment
    lines = head(graph.name)
    costs = plan.costs
    ops_by_stage = np.argsort(assignment, kind="stable").tolist()
    begin = 0
    for stage, count in enumerate(costs.ops.tolist()):
        if not count:
            continue
        cost = plan.instance.describe(int(costs.cost[stage]))
        lines += stage_head(stage, count, cost)
        lines += _nodes(graph, ops_by_stage[begin : begin + count], "  ")
        lines.append(" }")
        begin += count
    return "\n".join([*lines, *_edges(graph, assignment.tolist())]) + "\n}\n"


def quoted(text: str) -> str:
    """Return a string in DOT that a label shows as *text*, control characters as their code points."""
    visible = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return f'"{visible.translate(_ESCAPES)}"'


def head(name: str) -> list[str]:
    """Return the first lines of a drawing."""
    return [
        f"digraph {quoted(name)} {{",
        ' node [shape=box, style=filled, fillcolor="#ffffff", fontname="Helvetica"];',
        ' edge [fontname="Helvetica", fontsize=9];',
    ]


def stage_head(stage: int, ops: int, cost: str) -> list[str]:
    """Return the first lines of the cluster of a stage."""
    size, fill = "1 op" if ops == 1 else f"{ops} ops", stage_colour(stage)
    return [
        f" subgraph cluster_{stage} {{",
        f'  label="stage {stage}: {size}, {cost}"; style="rounded,filled"; fillcolor="#f7f7f7";',
        f'  node [fillcolor="{fill}", fontcolor="{text_on(fill)}"];',
    ]


def _nodes(graph: CostGraph, ops: range | list[int], indent: str) -> Iterator[str]:
    for v in ops:
        parts = [graph.op_names[v], graph.op_kinds[v], time_text(graph.work[v], graph.time_unit)]
        label = "\\n".join(quoted(part)[1:-1] for part in parts if part)
        yield f'{indent}n{v} [label="{label}"];'


def _edges(graph: CostGraph, stages: list[int] | None) -> Iterator[str]:
    consumers, offsets = graph.consumers.tolist(), graph.consumer_offsets.tolist()
    columns = zip(graph.tensor_producer.tolist(), graph.tensor_bytes.tolist(), graph.transfer, strict=True)
    for t, (producer, size, transfer) in enumerate(columns):
        label = ""
        if size != UNKNOWN_BYTES:
            label = format_bytes(size)
        elif transfer is not None:
            label = time_text(transfer, graph.time_unit)
        for v in consumers[offsets[t] : offsets[t + 1]]:
            crossing = ", style=bold" if stages is not None and stages[producer] != stages[v] else ""
            yield f' n{producer} -> n{v} [label="{label}"{crossing}];'


def time_text(cost: Exact, time_unit: str) -> str:
    """Return a cost as labels show it."""
    shown = min(cost, _LARGEST_SHOWN)
    if time_unit == "1":
        return str(shown) if isinstance(shown, int) else f"{float(shown):g}"
    return format_picoseconds(float(shown * PICOSECONDS[time_unit]))


def write_dot_modules(graph: CostGraph, modules: Sequence[str], module_of: Sequence[int | None]) -> str:
    """Return the text of a DOT file that draws the modules of *graph*: a box for each, and the bytes between them.

    Ops whose module is not known are boxes of their own. With a partition, stages are clusters; a module that is cut
    has a box in each of its stages. There may be cycles: two modules that take turns feed each other.

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
    return "\n".join([*lines, *_flows(graph, boxes, members)]) + "\n}\n"


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
    return "\n".join([*lines, *_flows(graph, boxes, members)]) + "\n}\n"


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


def _flows(graph: CostGraph, boxes: Sequence[Box], members: dict[Box, tuple[int, list[int]]]) -> Iterator[str]:
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
