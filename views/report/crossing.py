"""Tensors that cross between stages, with their bytes and what it takes to move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.inference.graph import UNKNOWN_BYTES
from mtpp.units import format_bytes
from mtpp.views.report.page import Block, Prose, Section, TableBlock
from mtpp.views.report.stated import StatedPlan
from mtpp.views.table import Column, Table
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
        [
            *(graph.tensor_names[t], graph.op_names[producer], stages[producer], ", ".join(map(str, readers))),
            *(int(graph.tensor_bytes[t]), ticks),
        ]
        for ticks, t, producer, readers in found[:_MOST_LISTED]
    ]
    columns = [
        Column("tensor", left=True),
        Column("made by", left=True),
        Column("in stage"),
        Column("read in stages"),
        Column("size", _size),
        Column("transfer", shown.describe),
    ]
    verb = "crosses" if len(found) == 1 else "cross"
    caption = (
        f"{len(found):,} of {counted(graph.tensor_count, 'tensor')} {verb}{total}; "
        "each is paid once by every stage it touches"
    )
    blocks: list[Block] = [TableBlock("crossing", Table(caption, columns, rows), sortable=True)]
    if len(found) > _MOST_LISTED:
        blocks.append(Prose(f"The {_MOST_LISTED:,} most expensive of them are listed.", quiet=True))
    return Section("crossing-part", "Tensors between stages", blocks)


def _size(count: int) -> str:
    return "unknown" if count == UNKNOWN_BYTES else format_bytes(count)
