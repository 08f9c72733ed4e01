"""Split of a model into one per stage of a plan, checked to compute the same: ONNX models and PyTorch programs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.output import ShownResult
from mtpp.api.splitting.request import SplitRequest
from mtpp.errors import InputError, Interrupted
from mtpp.host.interrupts import unwinding

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.stage_plan import PlannedModel
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.formats.results.split import WrittenStages
    from mtpp.formats.results.stage_manifest import StageManifest
    from mtpp.views.terminal import Medium


__all__ = ["SplitRequest", "SplitResult", "split", "split_files"]


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
    model: str | os.PathLike[str] | Model,
    plan: Any,
    folder: str | os.PathLike[str] | None = None,
    *,
    check: bool = False,
    force: bool = False,
    inputs: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    seed: int = 0,
    dims: SizeTerms | str | None = None,
    max_input_size: int | str | None = None,
    observer: Observer | None = None,
) -> SplitResult:
    """Write one model per stage of a plan: ONNX models of an ONNX model, exported programs of a PyTorch program.

    The stages are for the sizes that the plan was made for. External weights are copied once, and shared by the stages.
    Each stage reads what earlier ones made: see ``manifest.json``.

    Parameters
    ----------
    model
        Path of the model that the plan is about, or one as read.
    plan
        A plan: a path, bytes, a parsed document, an object that has one, or the stages of ops by name.
    folder
        Folder for the stages and their manifest, written whole or not at all. None: they are only checked.
    check
        Whether to run whole and split on several sets of inputs and compare; needs ``mtpp[run]``, of PyTorch programs
        ``mtpp[torch]``, as cutting them does.
    force
        Whether to replace the stages that an earlier split wrote to that folder.
    inputs
        Contents of inputs for the check by name, or a ``.npz`` file with them; others are random.
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
    from mtpp.api.parameters import flag, path_text, whole
    from mtpp.ranges import MOST_SEED

    seed = whole(seed, "seed", least=0, most=MOST_SEED)
    wanted = flag(check, "check")
    if folder is None and not wanted:
        raise InputError("is missing", parameter="folder", remedy="give one, or ‹check› without one")
    request = SplitRequest(
        plan_files(model, plan, dims, max_input_size),
        None if folder is None else path_text(folder, "folder"),
        force=flag(force, "force"),
        check_seed=seed if wanted else None,
        inputs=_inputs_of_check(inputs, wanted=wanted),
    )
    with brought_along(plan, "plan"):
        return split_files(request, listener(observer))


def _inputs_of_check(inputs: Any, *, wanted: bool) -> str | dict[str, Any] | None:
    from mtpp.api.options.kinds import Contents

    found: str | dict[str, Any] | None = None if inputs is None else Contents("an archive").read(inputs, "inputs")
    if found is not None and not wanted:
        raise InputError("are for a check", parameter="inputs", remedy="give ‹check› too, or leave them out")
    return found


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
    from mtpp.formats.results.stage_manifest import OURS

    if request.folder is not None:
        check_folder(request.folder, OURS, force=request.force)
    check_forms(request.forms)
    try:
        planned = read_planned_model(request.files, observer)
        text = forms_text(request_of(planned), request.forms) if request.forms else None
        return SplitResult(_split(planned, request, observer), text)
    except KeyboardInterrupt:
        raise Interrupted("the split was interrupted") from None


def _split(model: PlannedModel, request: SplitRequest, observer: Observer) -> WrittenStages:
    from mtpp.api.splitting.stage_files import onnx_stages, program_stages
    from mtpp.formats.torch_export import ProgramReading

    write = program_stages if isinstance(model.reading, ProgramReading) else onnx_stages
    with observer.steps() as steps, unwinding(), _place(request) as folder:
        return write(model, request, folder, observer, steps.show)


@contextmanager
def _place(request: SplitRequest) -> Iterator[Path]:
    from mtpp.formats.io.new_folder import new_folder
    from mtpp.formats.results.stage_manifest import OURS

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
