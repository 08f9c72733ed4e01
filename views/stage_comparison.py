"""Two partitions of one model side by side, and where the slowest stage of the first loses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.views.partition_plan import common_unit, unit_text
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.inference.cost_columns import CostColumns
    from mtpp.inference.plan import Plan

FORMAT = "mtpp-stage-comparison"
VERSION = 1

_PARTS = ("work", "input", "output", "overflow")
_COLUMNS = ("ops", "work", "input", "output", "overflow", "cost")


@dataclass(frozen=True, eq=False)
class StageComparison:
    """A partition and the one that it is held against, of the same model on the same system.

    Attributes
    ----------
    given_name, other_name
        What messages call them.
    """

    given: Plan
    other: Plan
    given_name: str
    other_name: str

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the search for the other one, which is its best so far."""
        return self.other.stopped == StopReason.INTERRUPTED

    @property
    def slowest(self) -> tuple[int, int]:
        """The slowest stage of each, the first of several."""
        return int(self.given.costs.cost.argmax()), int(self.other.costs.cost.argmax())

    @property
    def difference(self) -> dict[str, int]:
        """Ticks by which the slowest stage given exceeds the slowest one of the other, part by part."""
        one, two = (
            plan.stage_rows()[stage] for plan, stage in zip((self.given, self.other), self.slowest, strict=True)
        )
        return {part: one[part] - two[part] for part in (*_PARTS, "cost")}

    @property
    def elsewhere(self) -> list[dict[str, int]]:
        """Where the other puts the ops of the slowest stage given: stage, ops and their work in ticks."""
        ops = np.flatnonzero(self.given.partition.assignment == self.slowest[0])
        stages = self.other.partition.assignment[ops]
        work = self.given.instance.work[ops]
        return [
            {"stage": int(b), "ops": int((stages == b).sum()), "work": int(work[stages == b].sum())}
            for b in np.unique(stages)
        ]

    def to_document(self) -> dict[str, Any]:
        """Return the ``mtpp-stage-comparison`` document; times are in ticks."""
        instance = self.given.instance
        rows = zip(*self._padded(), strict=True)
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": {"name": self.given.graph.name, "ops": instance.op_count, "tensors": instance.tensor_count},
            "system": instance.system.to_document(),
            "time_unit": self.given.graph.time_unit,
            "ticks_per_unit": instance.ticks_per_unit,
            "given": _summary(self.given, self.given_name, self.slowest[0]),
            "against": _summary(self.other, self.other_name, self.slowest[1]),
            "stages": [{"index": b, "given": one, "against": two} for b, (one, two) in enumerate(rows)],
            "difference": self.difference,
            "elsewhere": self.elsewhere,
        }

    def _padded(self) -> list[list[dict[str, Any] | None]]:
        """Return the rows of both, None where only the other has that many stages."""
        both = [self.given.stage_rows(), self.other.stage_rows()]
        count = max(map(len, both))
        return [[*rows, *[None] * (count - len(rows))] for rows in both]

    def shown(self, output_format: str, assumptions: Sequence[str]) -> str:
        """Return both as ``table``, ``markdown``, ``csv`` or ``json``; the last two are in ticks."""
        if output_format == "json":
            from mtpp.formats.io.json_text import dump_lines

            return dump_lines(self.to_document(), ("stages",)) + "\n"
        costs = common_unit(self.given)
        rows = list(zip(*self._padded(), strict=True))
        if output_format == "csv":
            header = ["stage", *(f"{side}_{name}" for side in ("given", "against") for name in _COLUMNS)]
            values = [
                [b, *(None if row is None else row[name] for row in pair for name in _COLUMNS)]
                for b, pair in enumerate(rows)
            ]
            return csv_text(header, values)
        shown = [name for name in _COLUMNS if name != "overflow" or self._overflows]
        title = f"{self.given_name} against {self.other_name}, stage by stage" + unit_text(self.given.instance, costs)
        header = ["stage", *shown, *(f"{name} " for name in shown), "difference"]
        cells = [[str(b), *self._cells(pair, shown, costs)] for b, pair in enumerate(rows)]
        figures = [*self._figures(), ("assumptions", "; ".join(assumptions))]
        if output_format == "markdown":
            header = ["stage", *shown, *(f"{name}, against" for name in shown), "difference"]
            return markdown_result(title, header, cells, figures)
        return _table(title, header, cells, len(shown), figures)

    @property
    def _overflows(self) -> bool:
        return self.given.instance.system.fast_memory_bytes is not None

    def _cells(self, pair: Sequence[dict[str, Any] | None], shown: Sequence[str], costs: CostColumns) -> list[str]:
        cells = []
        for row in pair:
            for name in shown:
                if row is None or (not row["ops"] and name != "ops"):
                    cells.append("–")
                else:
                    cells.append(str(row["ops"]) if name == "ops" else costs.text(row[name]))
        one, two = (0 if row is None else row["cost"] for row in pair)
        return [*cells, costs.text(one - two, signed=True)]

    def _figures(self) -> list[tuple[str, str]]:
        """Return what makes the difference, in words."""
        describe = self.given.instance.describe
        one, two = self.given.certificate.upper, self.other.certificate.upper
        parts = self.difference
        verdict = f"{describe(one)} (stage {self.slowest[0]}) against {describe(two)} (stage {self.slowest[1]})"
        if one == two:
            return [("bottleneck", f"{verdict}: the same"), self._ratios()]
        share = f", {abs(one - two) / two:.1%}" if two else ""
        verdict += f": {describe(abs(one - two))}{share} {'more' if one > two else 'less'}"
        made_of = ", ".join(
            f"{_signed(describe, parts[part])} {part}" for part in _PARTS if parts[part] or part == "work"
        )
        figures = [("bottleneck", verdict), ("made of", made_of), ("balance", self._balance())]
        moved = [
            f"stage {row['stage']} ({counted(row['ops'], 'op')}, {describe(row['work'])})" for row in self.elsewhere
        ]
        ops = int(self.given.costs.ops[self.slowest[0]])
        its = "its only op is" if ops == 1 else f"its {ops} ops are"
        figures.append((f"stage {self.slowest[0]}", f"{its} in {', '.join(moved)} of the other"))
        sums = [int((plan.costs.input + plan.costs.output).sum()) for plan in (self.given, self.other)]
        figures.append(("transfers", f"{describe(sums[0])} in all stages together against {describe(sums[1])}"))
        return [*figures, self._ratios()]

    def _ratios(self) -> tuple[str, str]:
        ratios = [
            "none proven" if plan.certificate.ratio is None else f"{plan.certificate.ratio:.4f}"
            for plan in (self.given, self.other)
        ]
        lower = self.given.lower
        bound = f"lower bound {self.given.instance.describe(lower.value)} by {lower.method}, tier {lower.tier}"
        return ("ratio", f"{ratios[0]} against {ratios[1]} proven: {bound}")

    def _balance(self) -> str:
        """Say how the slowest stages compare to stages of equal work."""
        describe = self.given.instance.describe
        texts = []
        for plan, stage in zip((self.given, self.other), self.slowest, strict=True):
            share = int(plan.instance.work.sum()) / plan.partition.k
            excess = int(plan.costs.work[stage]) - share
            texts.append(
                f"work is {describe(round(abs(excess)))} {'above' if excess >= 0 else 'below'} "
                f"an even share of {describe(round(share))}"
            )
        return " against ".join(dict.fromkeys(texts))


def _signed(describe: Callable[[int], str], ticks: int) -> str:
    return ("+" if ticks >= 0 else "-") + describe(abs(ticks))


def _summary(plan: Plan, name: str, slowest: int) -> dict[str, Any]:
    certificate = plan.certificate
    return {
        "name": name,
        "algorithm": plan.algorithm,
        "k": plan.partition.k,
        "bottleneck": certificate.upper,
        "stage": slowest,
        "lower_bound": {
            "value": plan.lower.value,
            "method": plan.lower.method,
            "tier": plan.lower.tier,
        },
        "ratio": certificate.ratio,
        "optimal": certificate.optimal,
    }


def _table(
    title: str, header: Sequence[str], cells: Sequence[Sequence[str]], width: int, figures: list[tuple[str, str]]
) -> str:
    from rich.table import Table

    table = Table(title=safe_text(title, "bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, name in enumerate(header):
        if i in (width + 1,):
            table.add_column("against", justify="left", no_wrap=True)
        table.add_column(safe_text(name.strip()), justify="right", no_wrap=True)
    for row in cells:
        table.add_row(*(safe_text(cell) for cell in (*row[: width + 1], "│", *row[width + 1 :])))
    return rendered(result_terminal(endless=True), table, "", figures_grid(figures))
