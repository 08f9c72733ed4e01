"""Stages as comma-separated values, for spreadsheets and data frames: one row per op. Written, not read.

Rows stand in the order of the pipeline: by stage, and within a stage in the graph's own order. The columns:

stage
    Number of the stage that runs the op, from 0.
op, kind
    As the graph calls them. Names that a spreadsheet would take for a formula (they begin with ``=``, ``+``, ``-``,
    ``@`` or a control character) have an apostrophe before them.
work_ms (or work_ps … after the graph's unit of time; work in an abstract graph)
    An exact decimal.
param_bytes
    Parameters that the op reads.
output_bytes, sent_bytes
    Size of the tensors that the op makes, and of those among them that other stages read; empty where a size is
    unknown.

One row per stage is what ``mtpp evaluate --format csv`` prints. RFC 4180, with line feeds.
"""

from __future__ import annotations

import csv
import io
from fractions import Fraction

import numpy as np

from mtpp.formats.json_text import decimal_text
from mtpp.graph import UNKNOWN_BYTES
from mtpp.plan import Plan

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_stage_csv(plan: Plan) -> str:
    """Return the text of a CSV file with one row per op.

    Raises
    ------
    InputError
        On a cost that is no finite decimal.

    Notes
    -----
    O(n log n + pins) time, O(n) memory.
    """
    graph = plan.graph
    stages = plan.partition.assignment
    position = np.empty(graph.op_count, dtype=np.int64)
    position[graph.order] = np.arange(graph.op_count)
    outputs, sent = _sizes(plan)
    params, numbers = graph.param_bytes.tolist(), stages.tolist()
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    work = "work" if graph.time_unit == "1" else f"work_{graph.time_unit}"
    writer.writerow(("stage", "op", "kind", work, "param_bytes", "output_bytes", "sent_bytes"))
    for v in np.lexsort((position, stages)).tolist():
        cost = graph.work[v]
        writer.writerow(
            (
                numbers[v],
                _cell(graph.op_names[v]),
                _cell(graph.op_kinds[v]),
                decimal_text(cost) if isinstance(cost, Fraction) else cost,
                params[v],
                outputs[v],
                sent[v],
            )
        )
    return buffer.getvalue()


def _sizes(plan: Plan) -> tuple[list[int | None], list[int | None]]:
    """Return the bytes that each op makes and those that leave its stage; None where one is unknown."""
    graph = plan.graph
    outputs: list[int | None] = [0] * graph.op_count
    sent: list[int | None] = [0] * graph.op_count
    crossing = set(plan.crossing.tolist())
    columns = zip(graph.tensor_producer.tolist(), graph.tensor_bytes.tolist(), strict=True)
    for t, (producer, size) in enumerate(columns):
        for totals in (outputs, sent) if t in crossing else (outputs,):
            total = totals[producer]
            totals[producer] = None if size == UNKNOWN_BYTES or total is None else total + size
    return outputs, sent


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
