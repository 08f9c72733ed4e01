"""Runs of a pipeline, measured against predicted stage by stage, as table, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.units import format_picoseconds
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text

if TYPE_CHECKING:
    from mtpp.runtime.pipeline.agreement import Agreement
    from mtpp.runtime.pipeline.comparison import Comparison, StageComparison

FORMAT = "mtpp-run"
VERSION = 1

_HEADER = ("stage", "ops", "predicted", "alone", "measured", "ratio", "wait in", "wait out", "busy")
_COLUMNS = (
    "stage", "file", "ops", "predicted_s", "alone_s", "busy_s", "ratio", "cpu_s", "wait_in_s", "wait_out_s", "share",
)  # fmt: skip
_NONE = "–"
_TELLING = 0.05
"""Part by which predicted times have to differ for their correlation to say something; a good plan has equal stages."""


def run_text(comparison: Comparison, output_format: str, name_of: Callable[[str], str] = str) -> str:
    """Return *comparison* as ``table``, ``markdown``, ``html`` or ``csv`` (a line per stage).

    Parameters
    ----------
    name_of
        Gives the names that a front end has for parameters.
    """
    if output_format == "csv":
        return csv_text(_COLUMNS, [[row[name] for name in _COLUMNS] for row in _stage_rows(comparison)])
    rows = [_cells(stage) for stage in comparison.stages]
    if output_format == "html":
        return html_text(_title(comparison), _HEADER, rows, _figures(comparison, name_of))
    slowest = comparison.stages.index(comparison.slowest)
    if output_format == "markdown":
        rows[slowest] = [f"**{cell}**" for cell in rows[slowest]]
        return markdown_result(_title(comparison), _HEADER, rows, _figures(comparison, name_of))
    return _table(comparison, rows, slowest, name_of)


def run_json(comparison: Comparison) -> str:
    """Return the text of the ``mtpp-run`` document, version 1; times are in seconds."""
    from mtpp.formats.io.json_text import dump_lines

    return dump_lines(run_document(comparison), ("stages",)) + "\n"


def run_document(comparison: Comparison) -> dict[str, Any]:
    """Return the JSON object of :func:`run_json`."""
    measured = comparison.measured
    request, run, manifest = measured.request, measured.pipeline, measured.wiring.manifest
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": manifest.name, "sha256": manifest.sha256, "ops": manifest.ops},
        "k": manifest.k,
        "batches": run.batches,
        "warmup": request.warmup,
        "queue_depth": request.queue_depth,
        "threads": request.threads,
        "optimise": request.optimise,
        "seed": request.seed,
        "cores": None if measured.cores is None else [list(own) for own in measured.cores],
        "available_cores": measured.available_cores,
        "stopped": str(run.stopped),
        "elapsed_s": _round(run.elapsed_s),
        "bottleneck": {
            "stage": comparison.slowest.index,
            "measured_s": _round(comparison.slowest.busy_s),
            "predicted_stage": comparison.predicted_slowest.index,
            "predicted_s": _round(comparison.predicted_bottleneck_s),
            "ratio": _round(comparison.bottleneck_ratio),
        },
        "throughput_per_s": {
            "measured": _round(comparison.throughput),
            "predicted": _round(comparison.predicted_throughput),
        },
        "unsplit": {
            "of": "model" if measured.whole else "stages",
            "measured_s": _round(comparison.unsplit_s),
            "predicted_s": _round(comparison.predicted_unsplit_s),
        },
        "speedup": {"measured": _round(comparison.speedup), "predicted": _round(comparison.predicted_speedup)},
        "correlation": _round(comparison.correlation),
        "limits": comparison.limits(),
        "outputs": {
            "repeatable": measured.repeatable,
            "pipeline": _agreement(run.agreement),
            "unsplit": None if measured.whole is None else _agreement(measured.whole[1]),
        },
        "stages": _stage_rows(comparison),
    }


def _agreement(agreement: Agreement) -> dict[str, Any]:
    largest = agreement.largest
    return {
        "compared": agreement.compared,
        "exact": agreement.exact,
        "near": agreement.near,
        "largest_difference": largest if largest < float("inf") else None,
    }


def _stage_rows(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "stage": stage.index,
            "file": stage.file,
            "ops": stage.ops,
            "predicted_s": _round(stage.predicted_s),
            "alone_s": _round(stage.alone_s),
            "busy_s": _round(stage.busy_s),
            "ratio": _round(stage.ratio),
            "cpu_s": _round(stage.cpu_s),
            "wait_in_s": _round(stage.wait_in_s),
            "wait_out_s": _round(stage.wait_out_s),
            "share": _round(stage.share),
        }
        for stage in comparison.stages
    ]


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _seconds(value: float | None) -> str:
    return _NONE if value is None else format_picoseconds(value * 1e12)


def _factor(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value < 0.1 else f"{value:.2f}"


def _cells(stage: StageComparison) -> list[str]:
    return [
        str(stage.index),
        str(stage.ops),
        _seconds(stage.predicted_s),
        _seconds(stage.alone_s),
        _seconds(stage.busy_s),
        _factor(stage.ratio),
        _seconds(stage.wait_in_s),
        _seconds(stage.wait_out_s),
        f"{stage.share:.0%}",
    ]


def _title(comparison: Comparison) -> str:
    run, manifest = comparison.measured.pipeline, comparison.measured.wiring.manifest
    count = len(comparison.stages)
    return f"{manifest.name}: {count} stage{'s' if count > 1 else ''} as a pipeline, {run.batches:,} batches"


def _figures(comparison: Comparison, name_of: Callable[[str], str]) -> list[tuple[str, str]]:
    measured = comparison.measured
    request = measured.request
    threads = f"{request.threads} thread{'s' if request.threads > 1 else ''}"
    if measured.whole is None:
        whole = f"all stages in turn in one process, {threads}; {name_of('model')} FILE measures the unsplit model"
    else:
        whole = f"the unsplit model, {threads}"
    unsplit = comparison.predicted_unsplit_s
    expected_unsplit = "" if unsplit is None else f"; {_seconds(unsplit)} predicted"
    figures = [
        ("bottleneck", _bottleneck(comparison)),
        ("throughput", _pair(f"{_rate(comparison.throughput)} batches/s", comparison.predicted_throughput)),
        ("unsplit", f"{_seconds(comparison.unsplit_s)} measured{expected_unsplit} ({whole})"),
        ("speed-up", _pair(f"{comparison.speedup:.2f}", comparison.predicted_speedup)),
        ("correlation", _correlation(comparison)),
        ("limited by", "; ".join(comparison.limits())),
        ("outputs", "; ".join(_outputs(comparison))),
        ("run", "; ".join(_conditions(comparison))),
    ]
    return figures


def _pair(measured: str, predicted: float | None) -> str:
    return f"{measured} measured" + ("" if predicted is None else f"; {_rate(predicted)} predicted")


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value < 10 else f"{value:.4g}"


def _bottleneck(comparison: Comparison) -> str:
    slowest, expected = comparison.slowest, comparison.predicted_slowest
    text = f"{_seconds(slowest.busy_s)} measured (stage {slowest.index})"
    if comparison.bottleneck_ratio is None:
        return f"{text}; stage {expected.index} predicted"
    predicted = _seconds(comparison.predicted_bottleneck_s)
    return f"{text}: {_factor(comparison.bottleneck_ratio)}× the {predicted} predicted (stage {expected.index})"


def _correlation(comparison: Comparison) -> str:
    if comparison.correlation is None:
        return f"{_NONE} (takes three stages that differ)"
    text = f"{comparison.correlation:.2f} of predicted with measured times of stages"
    if comparison.predicted_spread < _TELLING:
        text += f", which says little: the predicted ones differ by {comparison.predicted_spread:.1%}"
    return text


def _outputs(comparison: Comparison) -> list[str]:
    measured = comparison.measured
    if not measured.repeatable:
        return ["not compared: the model gives others every time"]
    texts = [_compared(measured.pipeline.agreement, "results of the pipeline", "the stages in turn")]
    if measured.whole is not None:
        texts.append(_compared(measured.whole[1], "sets of results of the stages", "the unsplit model"))
    return texts


def _compared(agreement: Agreement, what: str, other: str) -> str:
    count = agreement.compared
    if not count:
        return f"no {what} compared"
    if agreement.exact == count:
        return f"all {count:,} {what} compared equal those of {other} bit for bit"
    if agreement.holds:
        return f"all {count:,} {what} compared equal those of {other} within {agreement.largest:.1g}"
    return f"{count - agreement.near:,} of {count:,} {what} differ from those of {other}"


def _conditions(comparison: Comparison) -> list[str]:
    measured = comparison.measured
    request = measured.request
    texts = [
        f"after {request.warmup:,} to warm up",
        f"queue depth {request.queue_depth}",
        f"{request.threads} thread{'s' if request.threads > 1 else ''} a worker",
        "ONNX Runtime's optimisations on" if request.optimise else "ops as in the file",
    ]
    if measured.cores is not None:
        texts.append("pinned to cores " + ", ".join("+".join(map(str, own)) for own in measured.cores))
    else:
        texts.append(f"{measured.available_cores} core{'s' if measured.available_cores > 1 else ''}, not pinned")
    return texts


def _table(comparison: Comparison, rows: Sequence[Sequence[str]], slowest: int, name_of: Callable[[str], str]) -> str:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in _HEADER:
        table.add_column(safe_text(name), justify="right", no_wrap=True)
    for i, row in enumerate(rows):
        table.add_row(*(safe_text(cell, "bold" if i == slowest else "") for cell in row))
    terminal = result_terminal()
    title, figures = safe_text(_title(comparison), "bold"), figures_grid(_figures(comparison, name_of))
    return rendered(terminal, title) + rendered(result_terminal(endless=True), table) + rendered(terminal, "", figures)
