"""Split of a model into one per stage of a plan, checked to compute the same: ONNX models and PyTorch programs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.options.emitting import NOT_EMITTED, Emitting
from mtpp.api.options.splitting import Planned, Splitting
from mtpp.api.output import ShownResult
from mtpp.api.parameters import path_text
from mtpp.errors import InputError, Interrupted
from mtpp.host.interrupts import unwinding

if TYPE_CHECKING:
    from mtpp.api.inputs.stage_plan import PlanFiles, PlannedModel
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.formats.results.split import WrittenStages
    from mtpp.formats.results.stage_manifest import StageManifest
    from mtpp.views.terminal import Medium


@dataclass(frozen=True, repr=False)
class SplitResult(ShownResult):
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
        """True if the stages compute the results of the whole model; None if that was not checked, or could not be."""
        return None if self.stages.check is None else self.stages.check.passed

    def _said(self) -> dict[str, Any]:
        from mtpp.formats.results.split import split_document

        return split_document(self.stages)

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.split import split_text

        return split_text(self.stages, medium)


def split(
    model: Any,
    plan: Any,
    folder: str | os.PathLike[str] | None = None,
    *,
    check: bool = False,
    force: bool = False,
    inputs: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    seed: int = 0,
    imports: Iterable[str] = (),
    from_format: str | None = None,
    dims: SizeTerms | str | None = None,
    max_input_size: int | str = "2GiB",
    observer: Observer | None = None,
) -> SplitResult:
    """Write one model per stage of a plan: ONNX models of an ONNX model, exported programs of a PyTorch program.

    The stages are for the sizes that the plan was made for. External weights are copied once, and shared by the stages.
    Each stage reads what earlier ones made: see ``manifest.json``. A check needs ``mtpp[run]``, and PyTorch programs
    need ``mtpp[torch]``. Keywords that are not listed are fields of :class:`mtpp.api.options.splitting.Splitting` and
    :class:`mtpp.api.options.splitting.Planned`.

    Parameters
    ----------
    model
        Path of the model that the plan is about, or one as read. None: the one that the plan records. Stages of a
        ``torch.export.ExportedProgram``, and of what a function ``"package.module:function"`` builds (*from_format*
        ``"torch"``), have its weights; those of a module that :func:`mtpp.read` exported have none.
    plan
        A plan: a path, bytes, a parsed document, an object that has one, or the stages of ops by name.
    folder
        Folder for the stages and their manifest, written whole or not at all. None: they are only checked.
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
    from mtpp.api.inputs.python_models import runnable_model
    from mtpp.api.inputs.stage_plan import plan_files
    from mtpp.api.inputs.user_assignment import brought_along

    asked = Splitting.of(check=check, inputs=inputs, force=force, seed=seed, imports=imports)
    if folder is None and not asked.check:
        raise InputError("is missing", parameter="folder", remedy="give one, or ‹check› without one")
    planned = Planned.of(from_format=from_format, dims=dims, max_input_size=max_input_size)
    target = None if folder is None else path_text(folder, "folder")
    with runnable_model(model, planned.from_format, int(planned.max_input_size)) as found, brought_along(plan, "plan"):
        return split_files(plan_files(found, plan, planned), target, asked, listener(observer))


def split_files(
    files: PlanFiles, folder: str | None, asked: Splitting, observer: Observer, emitting: Emitting = NOT_EMITTED
) -> SplitResult:
    """Split a model; write the stages, all or nothing, and check them if asked to."""
    from mtpp.api.emit import check_form_of_graphs, check_forms, forms_text, request_of
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.api.inputs.stage_plan import read_planned_model
    from mtpp.formats.io.new_folder import check_folder
    from mtpp.formats.results.stage_manifest import OURS

    if folder is not None:
        check_folder(folder, OURS, force=asked.force)
    check_forms(emitting.form)
    if isinstance(files.model, str) and names_language_model(files.model):
        problem = "layers of a language model are not written as files"
        raise InputError(problem, source=files.model, remedy="give ‹form› alone: an engine cuts the model itself")
    try:
        planned = read_planned_model(files, observer)
        check_form_of_graphs(emitting)
        text = forms_text(request_of(planned), emitting.form) if emitting.form else None
        return SplitResult(_split(planned, folder, asked, observer), text)
    except KeyboardInterrupt:
        raise Interrupted("the split was interrupted") from None


def _split(model: PlannedModel, target: str | None, asked: Splitting, observer: Observer) -> WrittenStages:
    from mtpp.api.splitting.stage_files import onnx_stages, program_stages
    from mtpp.formats.torch_export import ProgramReading

    write = program_stages if isinstance(model.reading, ProgramReading) else onnx_stages
    with observer.steps() as steps, unwinding(), _place(target, force=asked.force) as folder:
        return replace(write(model, asked, folder, observer, steps.show), folder=target)


@contextmanager
def _place(target: str | None, *, force: bool) -> Iterator[Path]:
    """Give the stages a folder that becomes the target when all of them are written; without one a temporary one."""
    from mtpp.formats.io.new_folder import new_folder
    from mtpp.formats.results.stage_manifest import OURS

    if target is None:
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
        with new_folder(target, OURS, force=force) as draft:
            yield draft
