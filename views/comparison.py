"""Comparisons of algorithms: the paper's Table 2 for terminals, Markdown and HTML, their runs as CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.views.cut_short import runs_cut_short
from mtpp.views.tables import (
    csv_text,
    figures_grid,
    markdown_result,
    rendered,
    result_terminal,
    safe_text,
    seconds_text,
)

if TYPE_CHECKING:
    from mtpp.solvers.certify.comparison import ComparedRuns, Mean

FORMAT = "mtpp-comparison"
VERSION = 1

_COLUMNS = (
    "model", "ops", "k", "algorithm", "bottleneck", "simple_bound", "ratio", "evaluations", "seconds", "stopped",
    "found_by", "time_unit", "ticks_per_unit", "source",
)  # fmt: skip
_NONE = "–"


def comparison_text(comparison: ComparedRuns, output_format: str) -> str:
    """Return *comparison* as ``table``, ``markdown`` or ``csv`` (a line per run)."""
    if output_format == "csv":
        return csv_text(_COLUMNS, [[row[name] for name in _COLUMNS] for row in run_rows(comparison)])
    header, rows, best = _mean_cells(comparison)
    if output_format == "markdown":
        marked = [
            [f"**{cell}**" if (i, j) in best else cell for j, cell in enumerate(row)] for i, row in enumerate(rows)
        ]
        return markdown_result(_title(comparison), header, marked, _figures(comparison))
    return _table(comparison, header, rows, best)


def comparison_html(comparison: ComparedRuns) -> str:
    """Return the table of means."""
    from mtpp.views.html import html_text

    header, rows, _ = _mean_cells(comparison)
    return html_text(_title(comparison), header, rows, _figures(comparison), left=[0])


def comparison_json(comparison: ComparedRuns, *, elapsed_s: float) -> str:
    """Return the ``mtpp-comparison`` document, version 1, a line per model, run and mean."""
    from mtpp.formats.io.json_text import dump_lines

    return dump_lines(_document(comparison, elapsed_s), ("models", "rows", "summary")) + "\n"


def _document(comparison: ComparedRuns, elapsed_s: float) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "system": comparison.system.to_document(),
        "k": list(comparison.stage_counts),
        "algorithms": comparison.algorithms,
        "seed": comparison.limits.seed,
        "time_limit_s": comparison.limits.time_limit_s,
        "work_limit": comparison.limits.work_limit,
        "interrupted": comparison.interrupted,
        "models": [
            {
                "name": model.name,
                "source": model.path,
                "sha256": model.sha256,
                "ops": model.ops,
                "tensors": model.tensors,
                "dims": dict(model.dims),
                **({"proposed_dims": list(model.proposed_dims)} if model.proposed_dims else {}),
                **({"assumptions": list(model.assumptions)} if model.assumptions else {}),
                **({} if model.costs_sha256 is None else {"costs_sha256": model.costs_sha256}),
            }
            for model in comparison.models
        ],
        "rows": run_rows(comparison),
        "summary": [
            {
                "algorithm": mean.algorithm,
                "k": mean.k,
                "models": mean.models,
                "geomean_ratio": mean.ratio,
                "seconds": round(mean.seconds, 6),
            }
            for mean in comparison.means()
        ],
        "elapsed_s": round(elapsed_s, 3),
    }


def run_rows(comparison: ComparedRuns) -> list[dict[str, Any]]:
    """Return the runs as JSON values."""
    models = {model.path: model for model in comparison.models}
    return [
        {
            "model": models[cell.source].name,
            "source": cell.source,
            "ops": models[cell.source].ops,
            "k": cell.k,
            "algorithm": cell.algorithm,
            "time_unit": cell.time_unit,
            "ticks_per_unit": cell.ticks_per_unit,
            "bottleneck": cell.bottleneck,
            "simple_bound": _plain(cell.simple_bound),
            "ratio": cell.ratio,
            "evaluations": cell.evaluations,
            "seconds": round(cell.seconds, 6),
            "stopped": str(cell.stopped),
            "found_by": cell.found_by,
            "problem": cell.problem,
        }
        for cell in comparison.cells
    ]


def _plain(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _mean_cells(comparison: ComparedRuns) -> tuple[list[str], list[list[str]], set[tuple[int, int]]]:
    """Return the header, the rows of the table of means, and where (row, column) the best of each column stand."""
    counts = comparison.stage_counts
    means = comparison.means()
    header = ["algorithm", *(f"k = {k}" for k in counts), "seconds"]
    rows = []
    for i, name in enumerate(comparison.algorithms):
        own = means[i * len(counts) : (i + 1) * len(counts)]
        rows.append([name, *map(_ratio, own), seconds_text(sum(mean.seconds for mean in own))])
    best = set()
    for j in range(1, len(counts) + 1):
        column = [row[j] for row in rows]
        least = min(column, key=lambda cell: float("inf") if cell == _NONE else float(cell))
        best |= {(i, j) for i, cell in enumerate(column) if cell == least != _NONE}
    resting = [mean.models for mean in means[: len(counts)]]
    if any(models < len(comparison.models) for models in resting):
        rows.append(["graphs", *map(str, resting), ""])
    return header, rows, best


def _ratio(mean: Mean) -> str:
    return _NONE if mean.ratio is None else f"{mean.ratio:.3f}"


def _title(comparison: ComparedRuns) -> str:
    models = comparison.models
    ops = f"{sum(model.ops for model in models):,} ops"
    if len(models) == 1:
        return f"Bottleneck / simple lower bound: {models[0].name}, {ops}"
    return f"Bottleneck / simple lower bound: geometric means over {len(models):,} graphs, {ops} in all"


def _figures(comparison: ComparedRuns) -> list[tuple[str, str]]:
    from mtpp.inference.model_assumptions import assumptions_of_models
    from mtpp.inference.model_sizes import sizes_of_models

    given = comparison.limits
    limits = [f"seed {given.seed}"]
    if given.time_limit_s is not None:
        limits.append(f"{given.time_limit_s:g} s per run")
    if given.work_limit is not None:
        limits.append(f"at most {given.work_limit:,} evaluations per run")
    threads = f"{given.jobs} thread{'s' if given.jobs > 1 else ''}"
    assumed = [f"system {comparison.system.describe()}", *sizes_of_models(comparison.models)]
    assumed += assumptions_of_models((model.name, model.assumptions) for model in comparison.models)
    figures = [
        ("simple bound", "max(largest op, work / k); a ratio of 1 is optimal, lower is better"),
        ("seconds", f"of search, in all runs that the means rest on, on {threads}"),
        ("limits", ", ".join(limits)),
        ("assumptions", "; ".join(assumed)),
    ]
    figures[2:2] = runs_cut_short(comparison.cells)
    if comparison.interrupted:
        done = f"after {len(comparison.cells):,} of {comparison.runs:,} runs"
        figures.insert(0, ("interrupted", f"{done}; a column rests on the graphs that all algorithms finished"))
    return figures


def _table(
    comparison: ComparedRuns, header: Sequence[str], rows: Sequence[Sequence[str]], best: set[tuple[int, int]]
) -> str:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for j, name in enumerate(header):
        table.add_column(safe_text(name), justify="right" if j else "left", no_wrap=True)
    for i, row in enumerate(rows):
        table.add_row(*(safe_text(cell, "bold green" if (i, j) in best else "") for j, cell in enumerate(row)))
    terminal = result_terminal()
    title, figures = safe_text(_title(comparison), "bold"), figures_grid(_figures(comparison))
    return rendered(terminal, title) + rendered(result_terminal(endless=True), table) + rendered(terminal, "", figures)
