"""Folders that a plan was written to for PyTorch's pipelining, read back: plan, passes, ops of each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtpp.checker.training.versions import check_any_training_plan
from mtpp.document_shape import any_array, array, record, whatever
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import attributed, headed, module_names, shaped, shown
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.io.source import Source, read_source
from mtpp.formats.results.planned_schedule import timed_schedule
from mtpp.formats.training.pass_schedule import pass_schedule_from_source
from mtpp.formats.training.torch_pipelining import FORMAT, PLAN, SCHEDULE, STAGES, VERSION
from mtpp.training.pfeife.plan import PLANNER
from mtpp.training.pfeife.timed_schedule import TimedSchedule

_MOST_BYTES = 1 << 30
_AGAIN = "write it again with ‹form› torch-pipelining"
_GIVEN = "the file as `mtpp plan` wrote it"
_GIVE = "give a folder that `mtpp plan` wrote with ‹form› torch-pipelining"


_OPS = headed(
    FORMAT,
    VERSION,
    {
        "model": record(
            {"kind": whatever, "name": whatever, "sha256": whatever}, {"imports": module_names}, closed=False
        ),
        "devices": whatever,
        "micro_batches": whatever,
        "stages": array(record({"index": whatever, "device": whatever, "ops": any_array})),
    },
)


@dataclass(frozen=True)
class TrainingFolder:
    """A plan for PyTorch's pipelining.

    Attributes
    ----------
    path
        Of the folder.
    timed
        Passes of each device with the times that were planned.
    model_sha256, dims
        Of the file that was planned for, and the sizes that it was read with.
    stages
        Names of the ops of each stage, in order.
    iteration_ticks
        Planned.
    imports
        Python modules that register operators of the program.
    """

    path: Path
    timed: TimedSchedule
    model_name: str
    model_sha256: str
    dims: Mapping[str, int]
    stages: Sequence[Sequence[str]]
    iteration_ticks: int
    imports: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """Number of processes."""
        return self.timed.schedule.devices

    @property
    def micro_batches(self) -> int:
        """Of an iteration."""
        return self.timed.schedule.micro_batches

    @property
    def schedule_file(self) -> Path:
        """The passes as PyTorch's runtime reads them."""
        return self.path / SCHEDULE


def read_training_folder(folder: str | Path) -> TrainingFolder:
    """Read and check the three files of a folder.

    Raises
    ------
    InputError
        If one is missing or malformed, or they do not belong together.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError("no such folder", source=str(folder), remedy=_GIVE)
    for name in (PLAN, SCHEDULE, STAGES):
        if not (path / name).is_file():
            raise InputError(f"no {name} in it", source=str(folder), remedy=_GIVE)
    sources = {
        name: read_source(str(path / name), max_bytes=_MOST_BYTES, expected=_GIVEN) for name in (PLAN, SCHEDULE, STAGES)
    }
    plan = _plan(sources[PLAN])
    with attributed(sources[PLAN].display):
        timed = timed_schedule(plan)
        if timed.schedule.dependencies:
            raise InputError(
                "has dependencies between passes, which PyTorch's runtime does not know",
                where="/schedule/dependencies",
                remedy=_AGAIN,
            )
    passes = pass_schedule_from_source(sources[SCHEDULE])
    if passes.rows != timed.schedule.rows:
        raise InputError(f"its passes are not those of {PLAN}", source=sources[SCHEDULE].display, remedy=_AGAIN)
    stages = parse_json(sources[STAGES].data, sources[STAGES].display)
    with attributed(sources[STAGES].display):
        ops, imports = _ops(stages, plan, timed), tuple(stages["model"].get("imports", ()))
    model = plan["model"]
    return TrainingFolder(
        path, timed, model["name"], model["sha256"], model.get("dims", {}), ops, plan["iteration_ticks"], imports
    )


def _plan(source: Source) -> dict[str, Any]:
    document = parse_json(source.data, source.display)
    with attributed(source.display):
        check_any_training_plan(document, ())
        if document.get("planner") != PLANNER:
            raise InputError(
                f"a plan of the planner {document.get('planner')}: its stages hold layers, and no ops of a program",
                where="/planner",
                remedy=f"plan the program with ‹planner› {PLANNER}",
            )
    plan: dict[str, Any] = document
    return plan


def _ops(document: Any, plan: Mapping[str, Any], timed: TimedSchedule) -> list[list[str]]:
    """Return the ops of each stage, which are those of the plan."""
    header = shaped(_OPS, document)
    model = header["model"]
    for key in ("kind", "name", "sha256"):
        if model.get(key) != plan["model"].get(key):
            raise InputError(f"is not that of {PLAN}", where=f"/model/{key}", remedy=_AGAIN)
    devices = timed.schedule.devices
    for key, due in (("devices", devices), ("micro_batches", timed.schedule.micro_batches)):
        if header[key] != due:
            raise InputError(f"{shown(header[key])} is not the {due} of {PLAN}", where=f"/{key}", remedy=_AGAIN)
    found = []
    for s, row in enumerate(header["stages"]):
        for key, due in (("index", s), ("device", s % devices)):
            if row[key] != due:
                raise InputError(f"expected {due}, found {shown(row[key])}", where=f"/stages/{s}/{key}", remedy=_AGAIN)
        found.append([str(name) for name in row["ops"]])
    if found != [[str(name) for name in row["layers"]] for row in plan["stages"]]:
        raise InputError(f"are not those of {PLAN}", where="/stages", remedy=_AGAIN)
    return found
