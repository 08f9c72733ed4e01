"""Training runs, measured against predicted and held against the unsplit model: table, Markdown, CSV, HTML and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mtpp.formats.results.training_run import stage_rows
from mtpp.terminal_safe import terminal_safe
from mtpp.units import format_picoseconds
from mtpp.views.renderer import view
from mtpp.views.table import NONE, Column, Table, table_of_records

if TYPE_CHECKING:
    from mtpp.runtime.training.comparison import Compared
    from mtpp.runtime.training.training_run import Trained
    from mtpp.views.terminal import Medium


def _time(seconds: float | None) -> str:
    return NONE if seconds is None else format_picoseconds(seconds * 1e12)


_COLUMNS: Mapping[str, Column] = {
    "index": Column("stage"),
    "device": Column("device"),
    "ops": Column("ops", "{:,}".format),
    "forward_s": Column("forward", _time),
    "planned_forward_s": Column("planned", _time),
    "backward_s": Column("backward", _time),
    "planned_backward_s": Column("planned", _time),
    "handover_s": Column("hand-over", _time),
    "planned_handover_s": Column("planned", _time),
}


@view
def trained_text(trained: Trained, medium: Medium) -> Iterable[Table]:
    """Return a table of the stages."""
    records = stage_rows(trained)
    if medium.form == "csv":
        return [table_of_records(records)]
    rows = [[record[key] for key in _COLUMNS] for record in records]
    return [Table(_title(trained), list(_COLUMNS.values()), rows, _figures(trained))]


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
    rows = [("step", step)]
    if run.compared is None or trained.unsplit_s is None:
        rows += [
            ("compared", "not compared with the unsplit model, which was left out"),
            ("losses", f"{_losses(run.last_losses)} in the last step, not compared"),
        ]
    else:
        faster = trained.unsplit_s / trained.step_s
        rows += [
            ("unsplit", f"{_time(trained.unsplit_s)} a step: the pipeline is {faster:.2f}× as fast"),
            ("losses", _verdict(run.compared.losses, "loss", "losses")),
            ("gradients", _verdict(run.compared.gradients, "gradient", "gradients")),
        ]
        if run.compared.buffers.count:
            rows.append(("buffers", _verdict(run.compared.buffers, "buffer", "buffers")))
    threads = _number(run.terms.threads, "thread")
    rows.append(("run", f"a process for each device, gloo, {threads} each; {_number(trained.cores, 'core')}"))
    return rows


def _losses(losses: Sequence[float]) -> str:
    """Return the range of the losses of all micro-batches."""
    least, most = min(losses), max(losses)
    return f"{least:.6g}" if least == most else f"{least:.6g} … {most:.6g}"


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
