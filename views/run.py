"""Runs of a pipeline, measured against predicted stage by stage, as table, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING

from mtpp.formats.results.pipeline_run import stage_rows
from mtpp.units import format_bandwidth, format_bytes, format_picoseconds
from mtpp.views.renderer import view
from mtpp.views.table import NONE, Column, Table, table_of_records
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.runtime.checking.agreement import Agreement
    from mtpp.runtime.pipeline.comparison import Comparison
    from mtpp.views.terminal import Medium

_TELLING = 0.05
"""Part by which predicted times have to differ for their correlation to say something; a good plan has equal stages."""


def _seconds(value: float | None) -> str:
    return NONE if value is None else format_picoseconds(value * 1e12)


def _factor(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value < 0.1 else f"{value:.2f}"


_COLUMNS = (
    Column("stage"),
    Column("ops"),
    *(Column(name, _seconds) for name in ("predicted", "alone", "measured")),
    Column("ratio", _factor),
    *(Column(name, _seconds) for name in ("wait in", "wait out")),
    Column("busy", "{:.0%}".format),
)
_SHOWN = ("index", "ops", "predicted_s", "alone_s", "held_s", "ratio", "wait_in_s", "wait_out_s", "share")


@view
def run_text(comparison: Comparison, medium: Medium, name_of: Callable[[str], str] = str) -> Iterable[Table]:
    """Return a table of the stages.

    Parameters
    ----------
    name_of
        Gives the names that a front end has for parameters.
    """
    if medium.form == "csv":
        return [table_of_records(stage_rows(comparison))]
    rows = [[getattr(stage, key) for key in _SHOWN] for stage in comparison.stages]
    styles = {comparison.stages.index(comparison.slowest): "bold"}
    return [Table(_title(comparison), _COLUMNS, rows, _figures(comparison, name_of), styles=styles)]


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
    manifest = measured.wiring.manifest
    on = "" if manifest.one_device is None else f" on {manifest.one_device.device}, the fastest device that holds it"
    expected_unsplit = "" if unsplit is None else f"; {_seconds(unsplit)} predicted{on}"
    if manifest.on_machine and manifest.one_device is None:
        expected_unsplit = "; none predicted: no device is known to hold the whole model"
    figures = [
        ("bottleneck", _bottleneck(comparison)),
        ("throughput", _pair(f"{_rate(comparison.throughput)} batches/s", comparison.predicted_throughput)),
        ("unsplit", f"{_seconds(comparison.unsplit_s)} measured{expected_unsplit} ({whole})"),
        ("speed-up", _pair(f"{comparison.speedup:.2f}", comparison.predicted_speedup) + _verdict(comparison)),
        *_hand_overs(comparison),
        ("correlation", _correlation(comparison)),
        ("limited by", "; ".join(comparison.limits())),
        ("outputs", "; ".join(_outputs(comparison))),
        ("run", "; ".join(_conditions(comparison))),
    ]
    return figures


def _verdict(comparison: Comparison) -> str:
    period = comparison.period_s
    if comparison.pays is not False or period is None or len(comparison.stages) == 1:
        return ""
    return f": does not pay, a result every {_seconds(period)} when full, {_seconds(comparison.unsplit_s)} unsplit"


def _hand_overs(comparison: Comparison) -> list[tuple[str, str]]:
    """Return how much stages hand to each other, and what a message takes."""
    found = comparison.hand_overs
    if not found.messages:
        return []
    longest = max(comparison.stages, key=lambda stage: stage.hand_over_s)
    figures = [
        (
            "hand-overs",
            f"{counted(found.tensors, 'tensor')}, {format_bytes(found.bytes)} a batch; at most "
            f"{_seconds(longest.hand_over_s)} beside the models (stage {longest.index})",
        )
    ]
    line = found.line
    if line is not None:
        rate = line.bandwidth_bytes_per_s
        more = "" if rate == inf else f" + bytes / {format_bandwidth(int(float(f'{rate:.3g}')))}"
        least, most = (format_bytes(f(one.bytes for one in line.messages)) for f in (min, max))
        text = f"{_seconds(line.latency_s)}{more} for each stage, the start of its run included: line through messages"
        figures.append(("a message", f"{text} of {least} to {most}, {line.residual:.0%} off in the mean square"))
    return figures


def _pair(measured: str, predicted: float | None) -> str:
    return f"{measured} measured" + ("" if predicted is None else f"; {_rate(predicted)} predicted")


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value < 10 else f"{value:.4g}"


def _bottleneck(comparison: Comparison) -> str:
    slowest, expected = comparison.slowest, comparison.predicted_slowest
    text = f"{_seconds(slowest.held_s)} measured (stage {slowest.index})"
    if comparison.bottleneck_ratio is None:
        return f"{text}; stage {expected.index} predicted"
    predicted = _seconds(comparison.predicted_bottleneck_s)
    return f"{text}: {_factor(comparison.bottleneck_ratio)}× the {predicted} predicted (stage {expected.index})"


def _correlation(comparison: Comparison) -> str:
    if comparison.correlation is None:
        return f"{NONE} (takes three stages that differ)"
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
    request, length = measured.request, measured.length
    texts = [
        *filter(None, [length.told]),
        f"after {length.warmup:,} to warm up",
        f"queue depth {request.queue_depth}",
        f"{request.threads} thread{'s' if request.threads > 1 else ''} a worker",
        "ONNX Runtime's optimisations on" if request.optimise else "ops as in the file",
    ]
    if measured.cores is not None:
        texts.append("pinned to cores " + ", ".join("+".join(map(str, own)) for own in measured.cores))
    else:
        texts.append(f"{measured.available_cores} core{'s' if measured.available_cores > 1 else ''}, not pinned")
    return texts
