"""Summaries of graphs for prompts and notebooks: sizes, kinds of ops, and the most expensive ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from mtpp.terminal_safe import terminal_safe
from mtpp.units import PICOSECONDS, Exact, format_bytes, format_picoseconds

_KINDS, _OPS = 4, 5
"""Kinds of ops, and most expensive ops, that are named."""

Facts = list[tuple[str, str]]


@dataclass(frozen=True)
class GraphSummary:
    """Figures of a graph that a summary is made of, those of ops in the graph's order.

    Attributes
    ----------
    work
        In time units.
    param_bytes
        Of all parameters, each once.
    states
        Number of states.
    """

    name: str
    time_unit: str
    op_names: Sequence[str]
    op_kinds: Sequence[str]
    work: Sequence[Exact]
    tensors: int
    param_bytes: int
    states: int

    def text(self) -> str:
        """Return a dozen lines; O(n log n)."""
        ops = self._expensive()
        width = max((len(name) for name, _ in ops), default=0)
        lines = [f"<CostGraph {self.name!r}>", *(f"  {name}: {value}" for name, value in self._facts())]
        lines += ["  most expensive ops:"] if ops else []
        lines += [f"    {name:<{width}}  {cost}" for name, cost in ops]
        return "\n".join(map(terminal_safe, lines))

    def html(self) -> str:
        """Return the same as a table."""
        left = 'style="text-align: left"'
        rows = "".join(
            f"<tr><th {left}>{_safe(name)}</th><td {left}>{_safe(value)}</td></tr>"
            for name, value in [*self._facts(), *self._expensive()]
        )
        return f"<div><p><b>{_safe(self.name)}</b></p><table><tbody>{rows}</tbody></table></div>"

    def _facts(self) -> Facts:
        kinds = Counter(kind for kind in self.op_kinds if kind)
        named = [f"{count:,} {kind}" for kind, count in kinds.most_common(_KINDS)]
        of = f" ({', '.join(named)}{', …' if len(kinds) > _KINDS else ''})" if named else ""
        facts = [
            ("ops", f"{len(self.op_names):,}{of}"),
            ("tensors", f"{self.tensors:,}"),
            ("work", self._cost(sum(self.work))),
            ("parameters", format_bytes(self.param_bytes)),
        ]
        return facts + ([("states", f"{self.states:,}")] if self.states else [])

    def _expensive(self) -> Facts:
        """Return the most expensive ops with their costs."""
        first = sorted(range(len(self.work)), key=lambda v: (-self.work[v], v))[:_OPS]
        return [(self.op_names[v], self._cost(self.work[v])) for v in first]

    def _cost(self, cost: Exact) -> str:
        if self.time_unit in PICOSECONDS:
            return format_picoseconds(float(cost * PICOSECONDS[self.time_unit]))
        return f"{float(cost):,.6g}"


def _safe(text: str) -> str:
    return escape(terminal_safe(text))
