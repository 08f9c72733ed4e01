"""Training runs, measured against predicted and held against the unsplit model: table, Markdown, CSV, HTML and JSON."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.formats.io.json_text import dump_lines
from mtpp.terminal_safe import terminal_safe
from mtpp.units import PICOSECONDS, format_picoseconds
from mtpp.views.html import html_text
from mtpp.views.tables import csv_text, figures_grid, markdown_result, rendered, result_terminal, safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mtpp.formats.training.training_folder import TrainingFolder
    from mtpp.runtime.training.comparison import Compared
    from mtpp.runtime.training.training_run import TrainingRun

FORMAT = "mtpp-training-run"
VERSION = 1

_HEADER = ("stage", "device", "ops", "forward", "planned", "backward", "planned", "hand-over", "planned")
_NONE = "–"


@dataclass(frozen=True)
class Trained:
    """A run and what it is compared with.

    Attributes
    ----------
    predicted_s
        Of a step, simulated with what was measured.
    cores
        That the processes share.
    """

    folder: TrainingFolder
    run: TrainingRun
    predicted_s: float
    cores: int

    @property
    def step_s(self) -> float:
        """Median seconds of a step but the first one, where there are more."""
        return _median(self.run.step_s)

    @property
    def unsplit_s(self) -> float:
        """The same of the unsplit model."""
        return _median(self.run.unsplit_s)

    @property
    def tick_s(self) -> float | None:
        """Seconds of a tick of the plan, None where its costs have no unit of time."""
        unit = PICOSECONDS.get(self.folder.timed.time_unit)
        return None if unit is None else unit * 1e-12 / self.folder.timed.ticks_per_unit

    @property
    def planned_s(self) -> float | None:
        """Seconds of a step as planned."""
        return None if self.tick_s is None else self.folder.iteration_ticks * self.tick_s


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds[1:] or seconds)


def trained_text(trained: Trained, output_format: str) -> str:
    """Return a run as ``table``, ``json``, ``csv``, ``markdown`` or ``html``."""
    if output_format == "json":
        return trained_json(trained)
    rows = _rows(trained)
    if output_format == "csv":
        return csv_text(list(rows[0]), [list(row.values()) for row in rows])
    cells = [_cells(row) for row in rows]
    if output_format == "html":
        return html_text(_title(trained), _HEADER, cells, _figures(trained))
    if output_format == "markdown":
        return markdown_result(_title(trained), _HEADER, cells, _figures(trained))
    return _table(trained, cells)


def trained_json(trained: Trained) -> str:
    """Return the text of the ``mtpp-training-run`` document, version 1; times are in seconds."""
    return dump_lines(trained_document(trained), ("stages",)) + "\n"


def trained_document(trained: Trained) -> dict[str, Any]:
    """Return the JSON object of :func:`trained_json`."""
    run, folder = trained.run, trained.folder
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": folder.model_name, "sha256": folder.model_sha256},
        "engine": "torch",
        "devices": folder.devices,
        "micro_batches": folder.micro_batches,
        "steps": run.terms.steps,
        "threads": run.terms.threads,
        "cores": trained.cores,
        "agrees": run.agrees,
        "losses": _compared(run.losses),
        "gradients": _compared(run.gradients),
        "buffers": _compared(run.buffers),
        "last_losses": [one if math.isfinite(one) else None for one in run.last_losses],
        "step_s": trained.step_s,
        "steps_s": list(run.step_s),
        "predicted_s": trained.predicted_s,
        "planned_s": trained.planned_s,
        "unsplit_s": trained.unsplit_s,
        "stages": _rows(trained),
    }


def _compared(one: Compared) -> dict[str, Any]:
    difference = one.largest if one.largest < float("inf") else None
    return {"count": one.count, "exact": one.exact, "agrees": one.holds, "difference": difference, "worst": one.worst}


def _rows(trained: Trained) -> list[dict[str, Any]]:
    run, timed, tick = trained.run, trained.folder.timed, trained.tick_s
    planned = {one.source: one.ticks for one in timed.handovers}

    def measured(stage: int, *kinds: str) -> float:
        return sum(run.pass_s.get((stage, kind), 0.0) for kind in kinds)

    def seconds(ticks: int | None) -> float | None:
        return None if tick is None or ticks is None else ticks * tick

    last = len(trained.folder.stages) - 1
    return [
        {
            "index": s,
            "device": s % trained.folder.devices,
            "ops": len(ops),
            "forward_s": measured(s, "F"),
            "planned_forward_s": seconds(timed.forward_ticks[s]),
            "backward_s": measured(s, "B", "I", "W"),
            "planned_backward_s": seconds(timed.backward_ticks[s]),
            "handover_s": None if s == last else run.handover_s[s],
            "planned_handover_s": None if s == last else seconds(planned.get(s)),
        }
        for s, ops in enumerate(trained.folder.stages)
    ]


def _cells(row: dict[str, Any]) -> list[str]:
    times = ("forward_s", "planned_forward_s", "backward_s", "planned_backward_s", "handover_s", "planned_handover_s")
    return [str(row["index"]), str(row["device"]), f"{row['ops']:,}", *(_time(row[key]) for key in times)]


def _time(seconds: float | None) -> str:
    return _NONE if seconds is None else format_picoseconds(seconds * 1e12)


def _title(trained: Trained) -> str:
    folder = trained.folder
    stages, devices = _number(len(folder.stages), "stage"), _number(folder.devices, "device")
    steps, batches = _number(trained.run.terms.steps, "step"), _number(folder.micro_batches, "micro-batch", "es")
    return f"{folder.model_name}: {stages} on {devices}, trained by PyTorch: {steps} of {batches}"


def _number(count: int, what: str, ending: str = "s") -> str:
    return f"{count:,} {what}{'' if count == 1 else ending}"


def _figures(trained: Trained) -> list[tuple[str, str]]:
    run = trained.run
    ratio = trained.step_s / trained.predicted_s if trained.predicted_s else float("inf")
    step = f"{_time(trained.step_s)} measured, {ratio:.2f}× the {_time(trained.predicted_s)} that its passes predict"
    if trained.planned_s is not None:
        step += f"; {_time(trained.planned_s)} planned"
    rows = [
        ("step", step),
        (
            "unsplit",
            f"{_time(trained.unsplit_s)} a step: the pipeline is {trained.unsplit_s / trained.step_s:.2f}× as fast",
        ),
        ("losses", _verdict(run.losses, "loss", "losses")),
        ("gradients", _verdict(run.gradients, "gradient", "gradients")),
    ]
    if run.buffers.count:
        rows.append(("buffers", _verdict(run.buffers, "buffer", "buffers")))
    threads = _number(run.terms.threads, "thread")
    rows.append(("run", f"a process for each device, gloo, {threads} each; {_number(trained.cores, 'core')}"))
    return rows


def _verdict(one: Compared, singular: str, plural: str) -> str:
    if one.count == 0:
        return f"no {plural}"
    what = f"all {one.count:,} {plural} equal" if one.count > 1 else f"the {singular} equals"
    if one.exact == one.count:
        return f"{what} the unsplit model's bit for bit"
    others = one.count - one.exact
    apart = f"{one.largest:.1g}" if one.largest < float("inf") else "more than can be told"
    known = f"{one.exact:,} of {one.count:,} equal the unsplit model's bit for bit, "
    if one.holds:
        return f"{known}{others:,} within {apart} of the largest value, added up in another order"
    return f"{known}{others:,} do not: {terminal_safe(str(one.worst))} differs by {apart} of the largest value"


def _table(trained: Trained, cells: list[list[str]]) -> str:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in _HEADER:
        table.add_column(name, justify="right", no_wrap=True)
    for row in cells:
        table.add_row(*map(safe_text, row))
    title, figures = safe_text(_title(trained), "bold"), figures_grid(_figures(trained))
    terminal = result_terminal()
    return rendered(terminal, title) + rendered(result_terminal(endless=True), table) + rendered(terminal, "", figures)
