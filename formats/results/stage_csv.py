"""Stages as comma-separated values, for spreadsheets and data frames: one row per op.

Rows stand in the order of the pipeline: by stage, and within a stage in the graph's own order. The columns:

stage
    Number of the stage that runs the op, from 0.
op, kind
    As the graph calls them; those that a spreadsheet would take for a formula are escaped
    (:mod:`mtpp.formats.io.csv_text`).
work_ms (or work_ps … after the graph's unit of time; work in an abstract graph)
    An exact decimal.
param_bytes
    Parameters that the op reads.
output_bytes, sent_bytes
    Size of the tensors that the op makes, and of those among them that other stages read; empty where a size is
    unknown.

One row per stage is what ``mtpp evaluate --format csv`` prints. As an assignment, any table with the columns ``op`` and
``stage`` is read.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mtpp.errors import InputError
from mtpp.formats.io.csv_text import csv_rows, csv_text
from mtpp.formats.io.json_text import decimal_text
from mtpp.inference.graph import UNKNOWN_BYTES
from mtpp.inference.plan import Plan

_REQUIRED = frozenset((b"op", b"stage"))
_BOM = b"\xef\xbb\xbf"
_LONGEST_HEADER = 4096
_DIGITS = 19


def write_stage_csv(plan: Plan) -> str:
    """Return the text of a CSV file with one row per op.

    Notes
    -----
    O(n log n + pins) time, O(n) memory.
    """
    graph = plan.graph
    stages = plan.partition.assignment
    position = np.empty(graph.op_count, dtype=np.int64)
    position[graph.order] = np.arange(graph.op_count)
    outputs, sent = _sizes(plan)
    params, numbers = graph.read_bytes.tolist(), stages.tolist()
    work = "work" if graph.time_unit == "1" else f"work_{graph.time_unit}"
    rows = (
        (
            numbers[v],
            graph.op_names[v],
            graph.op_kinds[v],
            decimal_text(graph.work[v]) if isinstance(graph.work[v], Fraction) else graph.work[v],
            params[v],
            outputs[v],
            sent[v],
        )
        for v in np.lexsort((position, stages)).tolist()
    )
    return csv_text(("stage", "op", "kind", work, "param_bytes", "output_bytes", "sent_bytes"), rows)


def looks_like_stage_csv(data: bytes) -> bool:
    """Return whether *data* begins with a line that names the columns of an assignment."""
    first = data[:_LONGEST_HEADER].removeprefix(_BOM).split(b"\n", 1)[0]
    return _REQUIRED.issubset(first.strip().split(b","))


def read_stage_csv(data: bytes, source: str) -> dict[str, int]:
    """Return the stage of each op in a table with the columns ``op`` and ``stage``; others are not looked at.

    Raises
    ------
    InputError
        If it is no such table, an op stands in it twice, or a stage is no whole number; it names the row.
    """
    try:
        rows = list(csv_rows(data.removeprefix(_BOM).decode()))
    except ValueError as error:
        raise InputError(f"not comma-separated values: {error}", source=source) from None
    op, stage = rows[0].index("op"), rows[0].index("stage")
    stages: dict[str, int] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        where = f"row {number}"
        if len(row) <= max(op, stage):
            raise InputError(f"has {len(row)} cells", source=source, where=where, remedy="give every column a cell")
        if row[op] in stages:
            raise InputError(f"the op {row[op]!r} stands there twice", source=source, where=where)
        digits = row[stage].strip()
        if not (digits.isascii() and digits.isdecimal() and len(digits) < _DIGITS):
            raise InputError(f"{row[stage]!r} is not the number of a stage", source=source, where=where)
        stages[row[op]] = int(digits)
    return stages


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
