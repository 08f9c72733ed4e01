"""Split of an ONNX model into one model per stage of a plan, checked to compute the same."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.errors import InputError, Interrupted
from mtpp.host.interrupts import unwinding

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.stage_plan import PlanFiles, PlannedModel
    from mtpp.formats.onnx.stages import Split
    from mtpp.formats.results.stage_manifest import StageManifest
    from mtpp.runtime.checking.split_check import SplitCheck
    from mtpp.views.written_stages import WrittenStages


@dataclass(frozen=True)
class SplitRequest:
    """Terms of a split.

    Attributes
    ----------
    files
        The model and the plan.
    folder
        That the stages are written to, all or nothing; None to write them to a temporary one and only check them.
    force
        Whether stages that were written there earlier may be replaced.
    check_seed
        Of the random inputs and weights of a check; None for no check.
    forms
        Forms of other programs that the plan is wanted in as well.
    """

    files: PlanFiles
    folder: str | None
    force: bool = False
    check_seed: int | None = None
    forms: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class SplitResult:
    """Stages that a model was split into.

    Attributes
    ----------
    stages
        Their manifest, the sizes of their files, and the check.
    emitted
        The plan in the forms asked for, one after the other; None if none was.
    """

    stages: WrittenStages
    emitted: str | None = None

    @property
    def folder(self) -> str | None:
        """The folder that the stages are in; None if they were only checked."""
        return self.stages.folder

    @property
    def manifest(self) -> StageManifest:
        """Files of the stages, and the tensors between them."""
        return self.stages.manifest

    @property
    def passed(self) -> bool | None:
        """Whether the stages compute what the whole model does; None if that was not checked."""
        return None if self.stages.check is None else self.stages.check.passed

    def document(self) -> dict[str, Any]:
        """Return the JSON object that ``mtpp split --format json`` prints."""
        from mtpp.views.split import split_document

        return split_document(self.stages)

    def __repr__(self) -> str:
        from mtpp.views.split import split_text

        return split_text(self.stages, "table")

    def _repr_html_(self) -> str:
        from mtpp.views.split import split_text

        return split_text(self.stages, "html")


def split(
    model: str | os.PathLike[str] | Model,
    plan: Any,
    folder: str | os.PathLike[str] | None = None,
    *,
    check: bool = False,
    force: bool = False,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    max_input_size: int | str | None = None,
    observer: Observer | None = None,
) -> SplitResult:
    """Write one ONNX model per stage of a plan.

    The stages are for the sizes that the plan was made for. External weights are copied once, and shared by the stages.
    Each stage reads what earlier ones made: see ``manifest.json``.

    Parameters
    ----------
    model
        Path of the ONNX model that the plan is about, or one as read.
    plan
        A plan: a path, bytes, a parsed document, an object that has one, or the stages of ops by name.
    folder
        Folder for the stages and their manifest, written whole or not at all. None: they are only checked.
    check
        Whether to run whole and split on random inputs and compare; needs ``mtpp[run]``.
    force
        Whether to replace the stages that an earlier split wrote to that folder.
    seed
        Of random inputs and weights.
    dims
        Sizes of symbolic dimensions that the plan has not.
    max_input_size
        Bytes beyond which inputs are refused. None: 2 GiB.
    observer
        Listener to what is being done, and to warnings.

    Returns
    -------
    What was written. Stages that compute something else raise nothing: look at :attr:`SplitResult.passed`.

    Raises
    ------
    InputError
        If a parameter is of the wrong type, an input is broken, the two do not belong together, the model cannot be
        split or run, or the folder cannot be written.
    InvalidPartition
        If an op has no stage, or needs what a later stage makes.
    Interrupted
        If Ctrl-C ended the work; nothing is left behind.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import mtpp
    >>> model = mtpp.datasets.sample_path("resnet50")
    >>> plan = mtpp.partition(model, 2)
    >>> with TemporaryDirectory() as folder:
    ...     parts = mtpp.split(model, plan, f"{folder}/stages")
    >>> [stage.file for stage in parts.manifest.stages]
    ['stage-0.onnx', 'stage-1.onnx']
    """
    from mtpp.api.inputs.stage_plan import plan_files
    from mtpp.api.inputs.user_assignment import brought_along
    from mtpp.api.parameters import MOST_SEED, flag, path_text, whole

    seed = whole(seed, "seed", least=0, most=MOST_SEED)
    wanted = flag(check, "check")
    if folder is None and not wanted:
        raise InputError("is missing", parameter="folder", remedy="give one, or ‹check› without one")
    request = SplitRequest(
        plan_files(model, plan, dims, max_input_size),
        None if folder is None else path_text(folder, "folder"),
        force=flag(force, "force"),
        check_seed=seed if wanted else None,
    )
    with brought_along(plan, "plan"):
        return split_files(request, listener(observer))


def split_files(request: SplitRequest, observer: Observer) -> SplitResult:
    """Split a model; write the stages, all or nothing, and check them if asked to.

    Raises
    ------
    InputError, InvalidPartition, Interrupted
        As :func:`split`.
    """
    from mtpp.api.emit import check_forms, forms_text, request_of
    from mtpp.api.inputs.stage_plan import read_planned_model
    from mtpp.formats.io.new_folder import check_folder
    from mtpp.formats.onnx.stages.writing import OURS

    if request.folder is not None:
        check_folder(request.folder, OURS, force=request.force)
    if request.check_seed is not None:
        from mtpp.runtime.session import onnxruntime

        onnxruntime()  # says so at once if it is not there
    check_forms(request.forms)
    try:
        planned = read_planned_model(request.files, observer)
        text = forms_text(request_of(planned), request.forms) if request.forms else None
        return SplitResult(_split(planned, request, observer), text)
    except KeyboardInterrupt:
        raise Interrupted("the split was interrupted") from None


def _split(model: PlannedModel, request: SplitRequest, observer: Observer) -> WrittenStages:
    from mtpp.formats.onnx.stages import split_model
    from mtpp.formats.onnx.stages.writing import write_split
    from mtpp.inference.frozen import frozen
    from mtpp.views.written_stages import WrittenStages

    source, plan = model.source, model.plan
    with observer.steps() as steps, unwinding(), _place(request) as folder:
        steps.show("cutting")
        split = split_model(model.reading, source.data, plan.labels, source=source.display, folder=model.folder)
        about = {
            "name": model.reading.graph.name,
            "sha256": source.sha256,
            "ops": model.reading.graph.op_count,
            "k": plan.k,
            "time_unit": plan.time_unit,
            "ticks_per_unit": plan.ticks_per_unit,
            "bottleneck": plan.bottleneck,
            "work": sum(plan.works),
        }
        predicted = dict(enumerate(zip(plan.costs, plan.works, strict=True)))
        manifest, fault = write_split(folder, split, predicted, about, source.display)
        if fault is not None:
            observer.warn(f"{source.display}: no valid model for onnx.checker, neither whole nor split: {fault}")
        shared, calls = _shared(split, folder), (split.calls_kept, split.calls_inlined)
        del split  # and the weights with it
        result = None
        if request.check_seed is not None:
            result = _checked(model, manifest, folder, request.check_seed, observer, steps.show)
        return WrittenStages(
            request.folder,
            manifest,
            tuple(plan.param_bytes),
            tuple((folder / stage.file).stat().st_size for stage in manifest.stages),
            frozen(shared),
            *calls,
            result,
        )


@contextmanager
def _place(request: SplitRequest) -> Iterator[Path]:
    from mtpp.formats.io.new_folder import new_folder
    from mtpp.formats.onnx.stages.writing import OURS

    if request.folder is None:
        try:
            with tempfile.TemporaryDirectory(prefix="mtpp-split-") as folder:
                yield Path(folder)
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror or error}",
                source=tempfile.gettempdir(),
                remedy="set TMPDIR to a folder with room for the stages, or give ‹folder› FOLDER",
            ) from None
    else:
        with new_folder(request.folder, OURS, force=request.force) as draft:
            yield draft


def _shared(split: Split, folder: Path) -> dict[str, int | None]:
    files = {name: (folder / name).stat().st_size for name in split.data_files.files}
    return {**files, **dict.fromkeys(split.data_files.absent)}


def _checked(
    model: PlannedModel,
    manifest: StageManifest,
    folder: Path,
    seed: int,
    observer: Observer,
    show: Callable[[str], None],
) -> SplitCheck:
    from mtpp.runtime.checking.split_check import check_split

    def tell(text: str) -> None:
        observer.note(text)
        show(text)

    source = model.source
    found = check_split(source.data, model.folder, manifest, folder, display=source.display, seed=seed, tell=tell)
    if found.absent:
        weights = "weight is" if found.absent == 1 else "weights are"
        observer.warn(f"{found.absent:,} {weights} absent: checked with random ones")
    if found.random:
        observer.warn(f"{found.random[0]} draws random numbers: only types and shapes of the outputs were compared")
    for output in found.outputs:
        if not output.finite and not found.random:
            observer.warn(f"output {output.name!r} has no finite value: that it is the same says little")
    return found
