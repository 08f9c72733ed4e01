"""From a model and a plan to a folder of stages: what ``mtpp split`` does, in order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.host.interrupts import unwinding

if TYPE_CHECKING:
    from mtpp.cli.split_plan import PlannedModel
    from mtpp.cli.terminal.console import Console
    from mtpp.formats.onnx.stages import Split
    from mtpp.formats.results.stage_manifest import StageManifest
    from mtpp.runtime.checking.split_check import SplitCheck


@dataclass(frozen=True)
class SplitResult:
    """What was made of a model.

    Attributes
    ----------
    file_bytes
        Size of each stage's file.
    shared_bytes
        Size of each file of weights that the stages share, by name; None where it is absent beside the model as well.
    calls_kept, calls_inlined
        Calls of local functions that are still calls, and those that were replaced by their bodies.
    check
        None if none was asked for.
    """

    model: PlannedModel
    manifest: StageManifest
    file_bytes: list[int]
    shared_bytes: dict[str, int | None]
    calls_kept: int
    calls_inlined: int
    check: SplitCheck | None


def split_planned(
    model: PlannedModel, output: str | None, console: Console, *, force: bool, check_seed: int | None
) -> SplitResult:
    """Split a model; write the stages to *output*, all or nothing, and check them if asked to.

    Parameters
    ----------
    output
        The folder; None to write to a temporary one and only check.
    check_seed
        Of the random inputs of a check; None for no check.

    Raises
    ------
    InputError
        If the model cannot be split or the folder not be written, or one of the models cannot be run.
    """
    from mtpp.formats.onnx.stages import split_model
    from mtpp.formats.onnx.stages.folder import write_split

    source, plan = model.source, model.plan
    with console.steps() as progress, unwinding(), _place(output, force=force) as folder:
        progress.show("cutting")
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
            console.warn(f"{source.display}: no valid model for onnx.checker, neither whole nor split: {fault}")
        shared, calls = _shared(split, folder), (split.calls_kept, split.calls_inlined)
        del split  # and the weights with it
        result = None
        if check_seed is not None:
            result = _checked(model, manifest, folder, check_seed, console, progress.show)
        return SplitResult(
            model,
            manifest,
            [(folder / stage.file).stat().st_size for stage in manifest.stages],
            shared,
            *calls,
            result,
        )


@contextmanager
def _place(output: str | None, *, force: bool) -> Iterator[Path]:
    from mtpp.formats.onnx.stages.folder import new_folder

    if output is None:
        try:
            with tempfile.TemporaryDirectory(prefix="mtpp-split-") as folder:
                yield Path(folder)
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror or error}",
                source=tempfile.gettempdir(),
                remedy="set TMPDIR to a folder with room for the stages, or give -o FOLDER",
            ) from None
    else:
        with new_folder(output, force=force) as draft:
            yield draft


def _shared(split: Split, folder: Path) -> dict[str, int | None]:
    files = {name: (folder / name).stat().st_size for name in split.data_files.files}
    return {**files, **dict.fromkeys(split.data_files.absent)}


def _checked(
    model: PlannedModel,
    manifest: StageManifest,
    folder: Path,
    seed: int,
    console: Console,
    show: Callable[[str], None],
) -> SplitCheck:
    from mtpp.runtime.checking.split_check import check_split

    def tell(text: str) -> None:
        console.note(text)
        show(text)

    source = model.source
    found = check_split(source.data, model.folder, manifest, folder, display=source.display, seed=seed, tell=tell)
    if found.absent:
        weights = "weight is" if found.absent == 1 else "weights are"
        console.warn(f"{found.absent:,} {weights} absent: checked with random ones")
    if found.random:
        console.warn(f"{found.random[0]} draws random numbers: only types and shapes of the outputs were compared")
    for output in found.outputs:
        if not output.finite and not found.random:
            console.warn(f"output {output.name!r} has no finite value: that it is the same says little")
    return found
