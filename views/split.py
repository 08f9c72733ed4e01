"""Stages that a model was split into, a line each, and a comparison of whole and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtpp.formats.io.json_text import dump_lines
from mtpp.units import PICOSECONDS, format_bytes
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.formats.results.stage_manifest import Described
    from mtpp.runtime.checking.output_check import OutputCheck, SplitCheck
    from mtpp.views.written_stages import WrittenStages

FORMAT = "mtpp-split"
VERSION = 1
_HEADER = ["stage", "file", "ops", "file size", "weights", "inputs", "outputs", "predicted"]
_UNITS = (("s", "s"), ("ms", "ms"), ("us", "µs"), ("ns", "ns"))
_NAMES_SHOWN = 3
_LEAST_PLAIN = 0.05
"""Differences below read as zero with one digit behind the point."""


def split_text(result: WrittenStages, output_format: str) -> str:
    """Return a result as ``table``, ``json``, ``csv``, ``markdown`` or ``html``."""
    if output_format == "json":
        return dump_lines(split_document(result), ("stages", "check.outputs")) + "\n"
    if output_format == "csv":
        rows = _rows(result)
        return csv_text(list(rows[0]), [list(row.values()) for row in rows])
    cells = _cells(result)
    if output_format == "html":
        return html_text(_title(result), _HEADER, cells, _figures(result), left=(1,))
    if output_format == "markdown":
        return markdown_result(_title(result), _HEADER, cells, _figures(result))
    return _table(result, cells)


def _rows(result: WrittenStages) -> list[dict[str, Any]]:
    return [
        {
            "index": stage.index,
            "file": stage.file,
            "ops": stage.ops,
            "file_bytes": size,
            "param_bytes": result.param_bytes[stage.index],
            "inputs": len(stage.inputs),
            "input_bytes": _bytes(stage.inputs),
            "outputs": len(stage.outputs),
            "output_bytes": _bytes(stage.outputs),
            "work": stage.work,
            "cost": stage.cost,
        }
        for stage, size in zip(result.manifest.stages, result.file_bytes, strict=True)
    ]


def _bytes(tensors: Sequence[Described]) -> int:
    return sum(tensor.bytes or 0 for tensor in tensors)


def split_document(result: WrittenStages) -> dict[str, Any]:
    """Return the JSON object of a result."""
    manifest = result.manifest
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": manifest.name, "sha256": manifest.sha256, "ops": manifest.ops},
        "folder": result.folder,
        "k": manifest.k,
        "time_unit": manifest.time_unit,
        "ticks_per_unit": manifest.ticks_per_unit,
        "bottleneck": manifest.bottleneck,
        "stages": _rows(result),
        "shared_files": result.shared_bytes,
        "calls_kept": result.calls_kept,
        "calls_inlined": result.calls_inlined,
    }
    if result.check is not None:
        check = result.check
        document["check"] = {
            "passed": check.passed,
            "seed": check.seed,
            "inputs": check.inputs,
            "notes": list(check.notes),
            **({} if check.failure is None else {"failure": check.failure}),
            "random_nodes": list(check.random),
            "random_weights": check.absent,
            "outputs": [_check_row(output) for output in check.outputs],
        }
    return document


def _check_row(output: OutputCheck) -> dict[str, Any]:
    def finite(value: float) -> float | None:
        return value if value < float("inf") else None

    return {
        "name": output.name,
        "dtype": output.dtype,
        "passed": output.passed,
        "identical": output.identical,
        "largest_difference": finite(output.largest_difference),
        "relative_difference": finite(output.relative_difference),
    }


def _title(result: WrittenStages) -> str:
    manifest = result.manifest
    return f"{manifest.name}: {counted(manifest.ops, 'op')} in {counted(len(manifest.stages), 'stage')}"


def _cells(result: WrittenStages) -> list[list[str]]:
    return [
        [
            str(row["index"]),
            row["file"],
            f"{row['ops']:,}",
            format_bytes(row["file_bytes"]),
            format_bytes(row["param_bytes"]),
            _amount(stage.inputs),
            _amount(stage.outputs),
            _time(row["cost"], result),
        ]
        for row, stage in zip(_rows(result), result.manifest.stages, strict=True)
    ]


def _amount(tensors: Sequence[Described]) -> str:
    """Return how many tensors there are, and their size: with ``+ open`` where only a run tells that of some."""
    known = _bytes(tensors)
    sizes = [format_bytes(known)] if known or not any(None in tensor.shape for tensor in tensors) else []
    sizes += ["open"] if any(None in tensor.shape for tensor in tensors) else []
    return f"{len(tensors)}, {' + '.join(sizes)}"


def _time(ticks: int, result: WrittenStages) -> str:
    manifest = result.manifest
    if manifest.time_unit not in PICOSECONDS:
        return f"{ticks / manifest.ticks_per_unit:,.6g}"
    picoseconds = ticks * PICOSECONDS[manifest.time_unit] / manifest.ticks_per_unit
    largest = manifest.bottleneck * PICOSECONDS[manifest.time_unit] / manifest.ticks_per_unit
    for unit, shown in _UNITS:
        if largest >= 10 * PICOSECONDS[unit]:
            value = picoseconds / PICOSECONDS[unit]
            return f"{value:.2g} {shown}" if 0 < value < _LEAST_PLAIN else f"{value:,.1f} {shown}"
    return f"{picoseconds:,.0f} ps"


def _figures(result: WrittenStages) -> list[tuple[str, str]]:
    manifest = result.manifest
    figures = []
    if result.folder is not None:
        figures.append(("written to", result.folder))
    slowest = max(manifest.stages, key=lambda stage: stage.cost)
    if slowest.cost:
        figures.append(
            (
                "bottleneck",
                f"{_time(slowest.cost, result)} predicted (stage {slowest.index}), "
                f"{manifest.work / slowest.cost:.2f}× the throughput of one stage",
            )
        )
    empty = manifest.k - len(manifest.stages)
    if empty:
        figures.append(("empty stages", f"{empty:,} of {manifest.k:,}, no file"))
    there = {name: size for name, size in result.shared_bytes.items() if size is not None}
    if there:
        figures.append(("shared weights", f"{_listed(list(there))}, {format_bytes(sum(there.values()))}"))
    absent = [name for name in result.shared_bytes if name not in there]
    if absent:
        figures.append(("absent weights", f"{_listed(absent)}: beside the model there are none either"))
    if result.calls_kept or result.calls_inlined:
        figures.append(
            ("function calls", f"{result.calls_kept:,} kept, {result.calls_inlined:,} inlined, a cut goes through them")
        )
    if manifest.direct:
        figures.append(("passed through", _listed([name for name, _ in manifest.direct])))
    if result.check is not None:
        figures.append(("check", _check_text(result.check)))
    return figures


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in names[:_NAMES_SHOWN])
    return text + (f", … {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else "")


def _check_text(check: SplitCheck) -> str:
    if check.failure is not None:
        return f"FAILED: {check.failure}"
    count = len(check.outputs)
    outputs = "output" if count == 1 else "outputs"
    identical = sum(output.identical for output in check.outputs)
    if check.random and check.passed:
        return f"types and shapes of {count} {outputs} are the same; the values are random"
    if identical == count:
        inputs = "" if check.inputs == 1 else f", for {check.inputs} sets of inputs"
        return f"passed: {'the output is' if count == 1 else f'all {count} outputs are'} the same bit for bit{inputs}"
    worst = max(check.outputs, key=lambda output: output.relative_difference)
    differs = (
        f"{identical} of {count} {outputs} the same bit for bit; largest difference {worst.largest_difference:.3g}, "
        f"{worst.relative_difference:.3g} of the largest value, in {_listed([worst.name])}"
    )
    return f"passed within tolerance: {differs}" if check.passed else f"FAILED: {differs}"


def _table(result: WrittenStages, cells: list[list[str]]) -> str:
    from rich.table import Table

    table = Table(
        title=safe_text(_title(result), "bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for index, name in enumerate(_HEADER):
        table.add_column(safe_text(name), justify="left" if index == 1 else "right", no_wrap=True)
    for row in cells:
        table.add_row(*(safe_text(cell) for cell in row))
    figures = _figures(result)
    return rendered(result_terminal(), table, *(("", figures_grid(figures)) if figures else ()))
