"""Tensors that cross between stages, with their bytes and what it takes to move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.inference.graph import UNKNOWN_BYTES
from mtpp.units import format_bytes
from mtpp.views.report.page import Block, Cell, Prose, Row, Section, Table
from mtpp.views.report.stated import StatedPlan
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.instance import Instance

_MOST_LISTED = 500


def crossing_section(graph: CostGraph, shown: StatedPlan, instance: Instance, stages: Sequence[int]) -> Section:
    """Return the section on tensors that an op of another stage reads than the one that makes them."""
    transfer = instance.transfer.tolist()
    found = []
    for t, producer in enumerate(graph.tensor_producer.tolist()):
        readers = sorted({stages[v] for v in graph.tensor_consumers(t).tolist()} - {stages[producer]})
        if readers:
            found.append((transfer[t], t, producer, readers))
    found.sort(key=lambda one: (-one[0], one[1]))
    sizes = [size for _, t, _, _ in found if (size := int(graph.tensor_bytes[t])) != UNKNOWN_BYTES]
    total = f", {format_bytes(sum(sizes))}" if sizes and len(sizes) == len(found) else ""
    rows = [
        Row(
            [
                Cell(graph.tensor_names[t]),
                Cell(graph.op_names[producer]),
                Cell(str(stages[producer]), stages[producer]),
                Cell(", ".join(map(str, readers))),
                _size(int(graph.tensor_bytes[t])),
                Cell(shown.describe(ticks), ticks),
            ]
        )
        for ticks, t, producer, readers in found[:_MOST_LISTED]
    ]
    verb = "crosses" if len(found) == 1 else "cross"
    caption = (
        f"{len(found):,} of {counted(graph.tensor_count, 'tensor')} {verb}{total}; "
        "each is paid once by every stage it touches"
    )
    header = ("tensor", "made by", "in stage", "read in stages", "size", "transfer")
    blocks: list[Block] = [Table("crossing", caption, header, rows, left=(0, 1), sortable=True)]
    if len(found) > _MOST_LISTED:
        blocks.append(Prose(f"The {_MOST_LISTED:,} most expensive of them are listed.", quiet=True))
    return Section("crossing-part", "Tensors between stages", blocks)


def _size(count: int) -> Cell:
    return Cell("unknown", -1) if count == UNKNOWN_BYTES else Cell(format_bytes(count), count)
