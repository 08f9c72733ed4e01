"""Flows between the stages of a training plan, and the table of them: bytes and times of each hand-over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpp.views.report.page import TableBlock
from mtpp.views.report.training.scales import SizeScale, TimeScale
from mtpp.views.table import Column, Table

_MOST = 200
"""Lines of the table; of more flows, the largest are listed."""


@dataclass(frozen=True)
class StageFlow:
    """Tensors that go from one stage to another for a micro-batch, and gradients that come back.

    Attributes
    ----------
    forward_bytes, backward_bytes
        None: not all sizes are known. 0: the one stage waits for the other, which hands it nothing.
    forward_ticks, backward_ticks
        None: nothing says that.
    samples
        Of the micro-batch; None: nothing says that.
    """

    source: int
    target: int
    forward_bytes: int | None
    backward_bytes: int | None
    forward_ticks: int | None = None
    backward_ticks: int | None = None
    samples: int | None = None

    def size_text(self) -> str:
        """Write the bytes that go forward, in the unit that reads best."""
        if self.forward_bytes is None:
            return ""
        return "nothing" if not self.forward_bytes else SizeScale.of(self.forward_bytes).text(self.forward_bytes)


def flows_table(flows: Sequence[StageFlow], times: TimeScale) -> TableBlock:
    """Return the flows as a table, which says in words what the drawing shows."""
    listed = sorted(flows, key=lambda one: (one.source, one.target))
    if len(flows) > _MOST:
        listed = sorted(flows, key=lambda one: -(one.forward_bytes or one.forward_ticks or 0))[:_MOST]
    sizes = SizeScale.of(max((max(one.forward_bytes or 0, one.backward_bytes or 0) for one in flows), default=0))
    columns = [Column("from"), Column("to")]
    keys: list[str] = []
    for key, column in (
        ("samples", Column("samples", "{:,}".format)),
        ("forward_bytes", Column(sizes.headed("tensors"), sizes.number)),
        ("backward_bytes", Column(sizes.headed("gradients"), sizes.number)),
        ("forward_ticks", Column(times.headed("transfer"), times.number)),
        ("backward_ticks", Column(times.headed("transfer back"), times.number)),
    ):
        if any(getattr(one, key) is not None for one in flows):
            columns.append(column)
            keys.append(key)
    rows = [[one.source, one.target, *(getattr(one, key) for key in keys)] for one in listed]
    caption = "Between stages, for each micro-batch"
    if len(listed) < len(flows):
        caption += f"; the {_MOST} largest of {len(flows):,}"
    return TableBlock("flow-table", Table(caption, columns, rows), sortable=True)
