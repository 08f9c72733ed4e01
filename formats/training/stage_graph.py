"""Stage graphs of one's own, ``mtpp-stage-graph`` version 1, as JSON: a pipeline to be simulated.

Times are exact decimals in ``time_unit``, rounded up to picoseconds. A stage has either ``in_flight`` and ``k``, from
which its order of passes follows, or its ``order`` as ``F1 F2 B1 B2``.
"""

from __future__ import annotations

from typing import Any

from mtpp.array_types import Int32Array
from mtpp.document_shape import array, record, text
from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.io.json_shape import (
    at_least,
    attributed,
    cost_number,
    headed,
    pointer,
    refuse_other_format,
    shaped,
    whole_number,
)
from mtpp.formats.io.source import Source
from mtpp.training.model import TIME_UNITS
from mtpp.training.stage_graph import (
    LARGEST_SUM,
    MOST_PASSES,
    PipelineStage,
    StageGraph,
    StageTransfer,
    interleaved_order,
    order_of_text,
)
from mtpp.units import PICOSECONDS, Exact, ceil_ratio

FORMAT = "mtpp-stage-graph"
VERSION = 1

EXPECTED = f"a stage graph as {FORMAT}, or a training plan (see docs/formats.md)"
"""What a simulation needs."""

_COUNT = at_least(1, LARGEST_SUM)
_TIMES = {"forward": cost_number, "backward": cost_number}
_STAGE = record(
    {"micro_batch": _COUNT, **_TIMES},
    {"name": text, "synchronisation": cost_number, "in_flight": _COUNT, "k": _COUNT, "order": text},
)
_GRAPH = headed(
    FORMAT,
    VERSION,
    {
        "time_unit": text,
        "mini_batch": _COUNT,
        "stages": array(_STAGE),
        "transfers": array(record({"source": whole_number, "target": whole_number, **_TIMES})),
    },
    {"name": text},
)


def stage_graph_from_source(source: Source) -> StageGraph:
    """Make a stage graph of bytes that were read, as :func:`stage_graph_from_document`.

    Raises
    ------
    UnrecognisedInput
        If it is no JSON object.
    """
    content = Content(source)
    if not content.is_json:
        raise UnrecognisedInput("not a stage graph: no JSON object", source=source.display, remedy=f"give {EXPECTED}")
    return stage_graph_from_document(content.document, source.display, source.stem)


def stage_graph_from_document(document: Any, source: str, name: str = "stage graph") -> StageGraph:
    """Make a stage graph of a parsed ``mtpp-stage-graph`` document; *source* is what messages call it.

    Parameters
    ----------
    name
        Of a graph that brings none.

    Raises
    ------
    InputError
        On an unknown or missing key, a value of the wrong type, an order with a pass twice or missing, and whatever
        :class:`StageGraph` refuses.
    """
    with attributed(source):
        refuse_other_format(document, FORMAT, EXPECTED)
        shaped(_GRAPH, document)
        unit, mini_batch = document["time_unit"], document["mini_batch"]
        if unit not in TIME_UNITS:
            remedy = f"use one of {', '.join(TIME_UNITS)}"
            raise InputError(f"unknown unit of time {unit!r}", where="/time_unit", remedy=remedy)
        return StageGraph(
            document.get("name", name),
            unit,
            mini_batch,
            [_stage(row, s, mini_batch, unit) for s, row in enumerate(document["stages"])],
            [
                StageTransfer(row["source"], row["target"], *(_ticks(row[time], unit) for time in _TIMES))
                for row in document["transfers"]
            ],
        )


def _stage(row: dict[str, Any], number: int, mini_batch: int, unit: str) -> PipelineStage:
    where, size = pointer("stages", number), row["micro_batch"]
    if mini_batch % size:
        problem = f"micro-batches of {size:,} samples do not divide the mini-batch of {mini_batch:,}"
        raise InputError(problem, where=f"{where}/micro_batch")
    return PipelineStage(
        row.get("name", f"stage {number}"),
        size,
        _ticks(row["forward"], unit),
        _ticks(row["backward"], unit),
        _ticks(row.get("synchronisation", 0), unit),
        _order(row, mini_batch // size, where),
    )


def _order(row: dict[str, Any], count: int, where: str) -> Int32Array:
    if 2 * count > MOST_PASSES:
        problem = f"the stage has more than {MOST_PASSES:,} passes"
        raise InputError(problem, where=f"{where}/micro_batch", remedy="use larger micro-batches")
    if "order" in row:
        for key in ("in_flight", "k"):
            if key in row:
                raise InputError(f"{key} and order are both given", where=f"{where}/{key}", remedy="give one of them")
        try:
            return order_of_text(row["order"], count)
        except InputError as error:
            error.where = error.where or f"{where}/order"
            raise
    if "in_flight" not in row:
        remedy = 'give the forward passes before the first backward pass, or "order": "F1 B1 …"'
        raise InputError("neither in_flight nor order is given", where=where, remedy=remedy)
    return interleaved_order(count, row["in_flight"], row.get("k", 1))


def _ticks(time: Exact, unit: str) -> int:
    return ceil_ratio(time.numerator * PICOSECONDS[unit], time.denominator)
