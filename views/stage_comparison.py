"""Two partitions of one model side by side, and where the slowest stage of the first loses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mtpp.formats.results.stage_comparison import PARTS, StageComparison
from mtpp.views.partition_plan import common_unit, unit_text
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table, table_of_records
from mtpp.views.terminal import Medium
from mtpp.wording import counted

_SPARE = {"input": 2, "output": 2}
"""Columns that narrow terminals leave out, on both sides: those with the highest number first."""

_ROOMY = 100
"""Characters from which a terminal has room for two blanks between columns."""


@view
def compared_text(comparison: StageComparison, medium: Medium, assumptions: Sequence[str]) -> Iterable[Table]:
    """Return a table of the stages of both, a line each; as CSV in ticks."""
    pairs = list(zip(*comparison.padded(), strict=True))
    if medium.form == "csv":
        instance = comparison.given.instance
        unit = {"time_unit": instance.time_unit, "ticks_per_unit": instance.ticks_per_unit}
        return [table_of_records(_record(b, pair) | unit for b, pair in enumerate(pairs))]
    instance, costs = comparison.given.instance, common_unit(comparison.given)
    parts = [part for part in PARTS if part != "overflow" or instance.device.fast_memory_bytes is not None]
    devices = [[_device(row) for row in pair] for pair in pairs]
    apart = any(one != two for one, two in devices)
    named = [Column("device", left=True)] if any(one for one, _ in devices) else []
    shown = [Column(name, costs.text, spare=_SPARE.get(name, 0)) for name in (*parts, "cost")]
    first = [*(named if apart else []), Column("ops", spare=1), *shown]
    second = first if medium.form == "table" else [replace(one, name=f"{one.name}, against") for one in first]
    between = [Column("│", left=True)] if medium.form == "table" else []
    last = Column("+/−" if medium.form == "table" else "difference", partial(costs.text, signed=True))
    rows = []
    for b, pair in enumerate(pairs):
        sides = [[_shown(row, name) for name in ("ops", *parts, "cost")] for row in pair]
        given, against = ([*([name] if apart else []), *side] for name, side in zip(devices[b], sides, strict=True))
        one, two = (0 if row is None else row["cost"] for row in pair)
        shared = [devices[b][0]] if named and not apart else []
        rows.append([b, *shared, *given, *("│" for _ in between), *against, one - two])
    title = f"{comparison.given_name} against {comparison.other_name}, stage by stage" + unit_text(instance, costs)
    figures = [*_figures(comparison), ("assumptions", "; ".join(assumptions))]
    alike = [] if apart else named
    columns = [Column("stage"), *alike, *first, *between, *second, last]
    gap = 1 if medium.form == "table" and medium.terminal.width < _ROOMY else 2
    return [Table(title, columns, rows, figures, gap=gap)]


def _device(row: dict[str, Any] | None) -> str:
    """Return the name of the device of a stage, nothing where none are listed."""
    if row is None:
        return ""
    if "devices" in row:
        return " + ".join(one["name"] for one in row["devices"])
    return row["device"]["name"] if "device" in row else ""


def _shown(row: dict[str, Any] | None, name: str) -> int | None:
    """Return a figure; of an empty stage there is none but its number of ops."""
    return None if row is None or not (row["ops"] or name == "ops") else row[name]


def _record(stage: int, pair: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    sides = zip(("given", "against"), pair, strict=True)
    names = ("ops", *PARTS, "cost")
    record: dict[str, Any] = {"stage": stage}
    for side, row in sides:
        if any(_device(one) for one in pair):
            record[f"{side}_device"] = _device(row)
        record |= {f"{side}_{name}": row and row[name] for name in names}
    return record


def _figures(comparison: StageComparison) -> list[tuple[str, str]]:
    """Return what makes the difference, in words."""
    describe = comparison.given.instance.describe
    one, two = comparison.given.bottleneck, comparison.other.bottleneck
    parts = comparison.difference
    verdict = f"{describe(one)} (stage {comparison.slowest[0]}) against {describe(two)} (stage {comparison.slowest[1]})"
    if one == two:
        return [("bottleneck", f"{verdict}: the same"), _ratios(comparison)]
    share = f", {abs(one - two) / two:.1%}" if two else ""
    verdict += f": {describe(abs(one - two))}{share} {'more' if one > two else 'less'}"
    made_of = ", ".join(f"{_signed(describe, parts[part])} {part}" for part in PARTS if parts[part] or part == "work")
    figures = [("bottleneck", verdict), ("made of", made_of)]
    if len(comparison.given.instance.machine.classes) == 1:  # else an even share is of no device
        figures.append(("balance", _balance(comparison)))
    moved = [
        f"stage {row['stage']} ({counted(row['ops'], 'op')}, {describe(row['work'])})" for row in comparison.elsewhere
    ]
    ops = int(comparison.given.costs.ops[comparison.slowest[0]])
    its = "its only op is" if ops == 1 else f"its {ops} ops are"
    figures.append((f"stage {comparison.slowest[0]}", f"{its} in {', '.join(moved)} of the other"))
    sums = [int((plan.costs.input + plan.costs.output).sum()) for plan in (comparison.given, comparison.other)]
    figures.append(("transfers", f"{describe(sums[0])} in all stages together against {describe(sums[1])}"))
    return [*figures, _ratios(comparison)]


def _ratios(comparison: StageComparison) -> tuple[str, str]:
    ratios = [
        "none proven" if plan.certificate.ratio is None else f"{plan.certificate.ratio:.4f}"
        for plan in (comparison.given, comparison.other)
    ]
    lower = comparison.given.lower
    bound = f"lower bound {comparison.given.instance.describe(lower.value)} by {lower.method}, tier {lower.tier}"
    return ("ratio", f"{ratios[0]} against {ratios[1]} proven: {bound}")


def _balance(comparison: StageComparison) -> str:
    """Say how the slowest stages compare to stages of equal work."""
    describe = comparison.given.instance.describe
    texts = []
    for plan, stage in zip((comparison.given, comparison.other), comparison.slowest, strict=True):
        share = int(plan.instance.work.sum()) / plan.partition.k
        excess = int(plan.costs.work[stage]) - share
        texts.append(
            f"work is {describe(round(abs(excess)))} {'above' if excess >= 0 else 'below'} "
            f"an even share of {describe(round(share))}"
        )
    return " against ".join(dict.fromkeys(texts))


def _signed(describe: Callable[[int], str], ticks: int) -> str:
    return ("+" if ticks >= 0 else "-") + describe(abs(ticks))
