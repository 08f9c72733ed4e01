"""Stages that a model was split into, a line each, and a comparison of whole and split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mtpp.formats.results.split import SplitCheck, WrittenStages, known_bytes, stage_rows
from mtpp.units import PICOSECONDS, format_bytes
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table, table_of_records
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.formats.results.stage_manifest import Described
    from mtpp.views.terminal import Medium

_COLUMNS = (
    Column("stage"),
    Column("file", left=True),
    Column("ops", "{:,}".format),
    Column("file size", format_bytes),
    Column("weights", format_bytes),
    Column("inputs"),
    Column("outputs"),
    Column("predicted"),
)
_PLACED = (Column("device", left=True), Column("place", left=True))
_UNITS = (("s", "s"), ("ms", "ms"), ("us", "µs"), ("ns", "ns"))
_NAMES_SHOWN = 3
_LEAST_PLAIN = 0.05
"""Differences below read as zero with one digit behind the point."""


@view
def split_text(result: WrittenStages, medium: Medium) -> Iterable[Table]:
    """Return a table of the stages."""
    rows = stage_rows(result)
    if medium.form == "csv":
        unit = {"time_unit": result.manifest.time_unit, "ticks_per_unit": result.manifest.ticks_per_unit}
        return [table_of_records([{**row, **unit} for row in rows])]
    placed = any(stage.device for stage in result.manifest.stages)
    shown = [
        (
            *(row[key] for key in ("index", "file", "ops", "file_bytes", "param_bytes")),
            _amount(stage.inputs),
            _amount(stage.outputs),
            _time(row["cost"], result),
            *((stage.device, stage.place) if placed else ()),
        )
        for row, stage in zip(rows, result.manifest.stages, strict=True)
    ]
    columns = [*_COLUMNS, *(_PLACED if placed else ())]
    return [Table(_title(result), columns, shown, _figures(result))]


def _title(result: WrittenStages) -> str:
    manifest = result.manifest
    return f"{manifest.name}: {counted(manifest.ops, 'op')} in {counted(len(manifest.stages), 'stage')}"


def _amount(tensors: Sequence[Described]) -> str:
    """Return how many tensors there are, and their size: with ``+ open`` where only a run tells that of some."""
    known = known_bytes(tensors)
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
        text = f"{_time(slowest.cost, result)} predicted (stage {slowest.index})"
        if len({stage.device for stage in manifest.stages}) == 1:  # else the work is that of several devices
            text += f", {manifest.work / slowest.cost:.2f}× the throughput of one stage"
        figures.append(("bottleneck", text))
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
