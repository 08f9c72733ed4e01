"""Stage graphs of one's own, ``mtpp-stage-graph`` version 1, as JSON: a pipeline to be simulated.

Times are exact decimals in ``time_unit``, rounded up to picoseconds. A stage has either ``in_flight`` and ``k``, from
which its order of passes follows, or its ``order`` as ``F1 F2 B1 B2``.
"""

from __future__ import annotations

from typing import Any

from mtpp.array_types import Int32Array
from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.io.json_shape import (
    attributed,
    check_header,
    check_keys,
    pointer,
    require_cost,
    require_list,
    require_object,
    require_text,
    require_whole,
    shown,
)
from mtpp.formats.io.source import Source
from mtpp.training.model import TIME_UNITS
from mtpp.training.pass_order import MOST_PASSES, interleaved_order, order_of_text
from mtpp.training.stage_graph import LARGEST_SUM, PipelineStage, StageGraph, StageTransfer
from mtpp.units import PICOSECONDS, ceil_ratio

FORMAT = "mtpp-stage-graph"
VERSION = 1

EXPECTED = f"a stage graph as {FORMAT}, or a training plan (see docs/formats.md)"
"""What a simulation needs."""

_TIMES = ("forward", "backward")
_SCHEDULE = ("in_flight", "k", "order")


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
        :meth:`StageGraph.build` refuses.
    """
    with attributed(source):
        found = document.get("format") if isinstance(document, dict) else None
        if isinstance(found, str) and found != FORMAT:
            raise UnrecognisedInput(f"the format is {shown(found)}", where="/format", remedy=f"give {EXPECTED}")
        document = check_header(document, FORMAT, VERSION)
        check_keys(document, "", ("format", "version", "time_unit", "mini_batch", "stages", "transfers"), ("name",))
        unit = require_text(document["time_unit"], "/time_unit")
        if unit not in TIME_UNITS:
            remedy = f"use one of {', '.join(TIME_UNITS)}"
            raise InputError(f"unknown unit of time {unit!r}", where="/time_unit", remedy=remedy)
        mini_batch = _positive(document["mini_batch"], "/mini_batch")
        stages = require_list(document["stages"], "/stages")
        transfers = require_list(document["transfers"], "/transfers")
        return StageGraph.build(
            require_text(document.get("name", name), "/name"),
            unit,
            mini_batch,
            [_stage(row, s, mini_batch, unit) for s, row in enumerate(stages)],
            [_transfer(row, pointer("transfers", t), unit) for t, row in enumerate(transfers)],
        )


def _stage(row: Any, number: int, mini_batch: int, unit: str) -> PipelineStage:
    where = pointer("stages", number)
    check_keys(require_object(row, where), where, ("micro_batch", *_TIMES), ("name", "synchronisation", *_SCHEDULE))
    size = _positive(row["micro_batch"], f"{where}/micro_batch")
    if mini_batch % size:
        problem = f"micro-batches of {size:,} samples do not divide the mini-batch of {mini_batch:,}"
        raise InputError(problem, where=f"{where}/micro_batch")
    forward, backward = (_ticks(row[key], f"{where}/{key}", unit) for key in _TIMES)
    return PipelineStage(
        require_text(row.get("name", f"stage {number}"), f"{where}/name"),
        size,
        forward,
        backward,
        _ticks(row.get("synchronisation", 0), f"{where}/synchronisation", unit),
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
            return order_of_text(require_text(row["order"], f"{where}/order"), count)
        except InputError as error:
            error.where = error.where or f"{where}/order"
            raise
    if "in_flight" not in row:
        remedy = 'give the forward passes before the first backward pass, or "order": "F1 B1 …"'
        raise InputError("neither in_flight nor order is given", where=where, remedy=remedy)
    in_flight = _positive(row["in_flight"], f"{where}/in_flight")
    return interleaved_order(count, in_flight, _positive(row.get("k", 1), f"{where}/k"))


def _transfer(row: Any, where: str, unit: str) -> StageTransfer:
    check_keys(require_object(row, where), where, ("source", "target", *_TIMES))
    source, target = (require_whole(row[key], f"{where}/{key}") for key in ("source", "target"))
    forward, backward = (_ticks(row[key], f"{where}/{key}", unit) for key in _TIMES)
    return StageTransfer(source, target, forward, backward)


def _positive(value: Any, where: str) -> int:
    number = require_whole(value, where)
    if not 1 <= number < LARGEST_SUM:
        raise InputError("must be at least 1" if number < 1 else "must be below 2^62", where=where)
    return number


def _ticks(value: Any, where: str, unit: str) -> int:
    time = require_cost(value, where)
    return ceil_ratio(time.numerator * PICOSECONDS[unit], time.denominator)
