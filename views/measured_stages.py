"""Stages of a plan beside a run of them: predicted and measured times, and whether a pipeline pays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mtpp.formats.measured.measured_stages import MeasuredStages
from mtpp.units import format_picoseconds
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table, table_of_records

if TYPE_CHECKING:
    from mtpp.views.terminal import Medium


def _time(seconds: float) -> str:
    return format_picoseconds(seconds * 1e12)


def _ratio(value: float) -> str:
    return f"{value:.2f}"


_COLUMNS = (
    *(Column(name) for name in ("stage", "ops")),
    *(Column(name, _time) for name in ("predicted", "measured")),
    Column("measured / predicted", _ratio),
)


@view
def measured_text(stages: MeasuredStages, medium: Medium, assumptions: Sequence[str]) -> Iterable[Table]:
    """Return a table of the stages; as CSV in seconds."""
    if medium.form == "csv":
        return [table_of_records(stages.rows())]
    rows = [list(row.values()) for row in stages.rows()]
    title = f"{stages.run.name}: {len(rows)} stages as predicted and as measured, {stages.run.batches:,} batches"
    slowest = [row[0] for row in rows].index(stages.slowest[1])
    return [Table(title, _COLUMNS, rows, _figures(stages, assumptions), styles={slowest: "bold"})]


def _figures(stages: MeasuredStages, assumptions: Sequence[str]) -> list[tuple[str, str]]:
    (expected, slowest), (predicted, measured), (due, speedup) = stages.slowest, stages.bottleneck, stages.speedup
    ratio = "" if stages.bottleneck_ratio is None else f": {_ratio(stages.bottleneck_ratio)}× the predicted"
    unsplit = "" if stages.unsplit is None else f"{_time(float(stages.unsplit))} predicted, "
    pays = {True: "it pays", False: "it does not pay", None: "not known"}
    verdicts = [pays[None if one is None else one > 1] for one in (due, speedup)]
    factors = ["–" if one is None else f"{one:.2f}" for one in (due, speedup)]
    return [
        (
            "bottleneck",
            f"{_time(predicted)} predicted (stage {expected}), {_time(measured)} measured (stage {slowest}){ratio}",
        ),
        ("unsplit", f"{unsplit}{_time(stages.run.unsplit_s)} measured"),
        ("speed-up", f"{factors[0]} predicted, {factors[1]} measured, of a full pipeline"),
        ("pipeline", f"{verdicts[0]} as predicted, {verdicts[1]} as measured"),
        ("assumptions", "; ".join(assumptions)),
    ]
