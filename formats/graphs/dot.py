"""DOT, the language of Graphviz: drawings of graphs and of their stages. Written, not read.

An op is a box with its name, its kind and its time; an edge is one use of a tensor, labelled with its size, or with
its transfer time where no size is known. With a partition, stages are clusters, each in its colour, and edges between
them are drawn bold. Draw it with ``dot -Tsvg graph.dot -o graph.svg``; above a few thousand ops ``sfdp`` is faster.

The language: https://graphviz.org/doc/info/lang.html; escapes in labels: https://graphviz.org/docs/attr-types/escString/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from mtpp.formats.graphs.stage_colours import stage_colour
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.plan import Plan
from mtpp.units import PICOSECONDS, Exact, format_bytes, format_picoseconds

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
    size = "1 op" if ops == 1 else f"{ops} ops"
    return [
        f" subgraph cluster_{stage} {{",
        f'  label="stage {stage}: {size}, {cost}"; style="rounded,filled"; fillcolor="#f7f7f7";',
        f'  node [fillcolor="{stage_colour(stage)}"];',
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
