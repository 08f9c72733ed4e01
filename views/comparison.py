"""Table of algorithms measured against each other, as the paper's Table 2; as CSV their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mtpp.formats.results.comparison import run_rows
from mtpp.views.certificate_texts import ON_ENVELOPE, goal_figures, runs_cut_short, seconds_text
from mtpp.views.renderer import view
from mtpp.views.table import NONE, Column, Table, table_of_records

if TYPE_CHECKING:
    from mtpp.solvers.certify.comparison import ComparedRuns, Mean
    from mtpp.views.terminal import Medium

_COLUMNS = (
    "model", "ops", "k", "algorithm", "bottleneck", "simple_bound", "ratio", "evaluations", "seconds", "stopped",
    "found_by", "time_unit", "ticks_per_unit", "source",
)  # fmt: skip


_BROKEN = "breaks"
"""Mean of partitions some of which do not keep to the limit of the goal."""

_OVER = " over "
"""Between a mean and the number of graphs that it rests on, where these are not all of its column."""


@view
def comparison_text(comparison: ComparedRuns, medium: Medium) -> Iterable[Table]:
    """Return a table of means, the best of each column marked; as CSV a line per run."""
    if medium.form == "csv":
        more = () if comparison.plain else ("objective", "latency", comparison.goal.limited)
        first = {"objective": comparison.goal.objective, comparison.goal.limited: None}
        return [table_of_records([first | row for row in run_rows(comparison)], (*_COLUMNS, *more))]
    counts, means = comparison.stage_counts, comparison.means()
    resting = [max(mean.models for mean in means if mean.k == k) for k in counts]
    rows = []
    for i, name in enumerate(comparison.algorithms):
        own = means[i * len(counts) : (i + 1) * len(counts)]
        ratios = [_ratio(mean, most) for mean, most in zip(own, resting, strict=True)]
        rows.append([name, *ratios, seconds_text(sum(mean.seconds for mean in own))])
    styles: dict[tuple[int, int], str] = {}
    for j in range(1, len(counts) + 1):
        column = [row[j] for row in rows]
        whole = [cell for cell in column if cell not in (NONE, _BROKEN) and _OVER not in cell]
        least = min(whole, key=float, default=None)
        styles |= {(i, j): "bold green" for i, cell in enumerate(column) if cell == least}
    if any(models < len(comparison.models) for models in resting):
        rows.append(["graphs", *map(str, resting), ""])
    columns = [Column("algorithm", left=True), *(Column(f"k = {k}") for k in counts), Column("seconds")]
    cells = [cell for row in rows for cell in row[1:-1]]
    return [
        Table(_title(comparison), columns, rows, [*_marks(comparison, cells), *_figures(comparison)], styles=styles)
    ]


def _ratio(mean: Mean, most: int) -> str:
    """Return a mean, with the number of its graphs where others rest on *most*, which are more."""
    if mean.broken:
        return _BROKEN
    if mean.ratio is None:
        return NONE
    return f"{mean.ratio:.3f}" + (f"{_OVER}{mean.models:,}" if mean.models < most else "")


def _title(comparison: ComparedRuns) -> str:
    models = comparison.models
    ops = f"{sum(model.ops for model in models):,} ops"
    of = comparison.goal.objective.capitalize()
    if len(models) == 1:
        return f"{of} / simple lower bound: {models[0].name}, {ops}"
    return f"{of} / simple lower bound: geometric means over {len(models):,} graphs, {ops} in all"


def _simple(comparison: ComparedRuns) -> str:
    """Say which bound the objective is compared with."""
    from mtpp.machine.device import Device

    if comparison.replicas:
        return "the time within which all devices together have room for all work"
    if comparison.goal.of_latency:
        return "every op on the device that takes least for it, as far as limits and memories allow"
    machines = [model.machine for model in comparison.models if model.machine]
    differ = any(len({Device.from_figures(one) for one in machine["devices"]}) > 1 for machine in machines)
    return f"max(largest op, work / k){f' {ON_ENVELOPE}' if differ else ''}"


def _figures(comparison: ComparedRuns) -> list[tuple[str, str]]:
    from mtpp.inference.model_file import assumptions_of_models, sizes_of_models

    given = comparison.limits
    limits = [f"seed {given.seed}"]
    if given.time_limit_s is not None:
        limits.append(f"{given.time_limit_s:g} s per run")
    if given.work_limit is not None:
        limits.append(f"at most {given.work_limit:,} evaluations per run")
    threads = f"{given.jobs} thread{'s' if given.jobs > 1 else ''}"
    assumed = _devices(comparison)
    assumed += sizes_of_models(comparison.models)
    assumed += assumptions_of_models((model.name, model.assumptions) for model in comparison.models)
    figures = [
        *goal_figures(comparison.cells),
        ("simple bound", f"{_simple(comparison)}; a ratio of 1 is optimal, lower is better"),
        ("seconds", f"of search, in all runs that the means rest on, on {threads}"),
        ("limits", ", ".join(limits)),
        ("assumptions", "; ".join(assumed)),
    ]
    figures[-2:-2] = runs_cut_short(comparison.cells)
    return figures


def _devices(comparison: ComparedRuns) -> list[str]:
    """Return the devices that costs are of, with names of graphs where they are not those of all."""
    from mtpp.inference.model_file import devices_of_models

    count = Counter(model.name for model in comparison.models)
    return devices_of_models(
        (model.name if count[model.name] == 1 else model.path, comparison.system, model) for model in comparison.models
    )


def _marks(comparison: ComparedRuns, cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Explain cells of the table that are no plain mean."""
    if comparison.interrupted:
        done = f"after {len(comparison.cells):,} of {comparison.runs:,} runs"
        yield "interrupted", f"{done}; a column rests on the graphs that all algorithms finished"
    if _BROKEN in cells:
        yield _BROKEN, "partitions of the algorithm do not keep to the limit on all graphs"
    if any(run.unfit for run in comparison.cells):
        unfit = "the rule of the engine exceeds the memory of a device"
        if any(_OVER in cell for cell in cells):
            yield _OVER.strip(), f"so many graphs: on others {unfit}"
        if NONE in cells:
            yield NONE, f"on every graph {unfit}" if len(comparison.models) > 1 else unfit
