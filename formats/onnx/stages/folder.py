"""A folder of stages: all of it appears at once, or nothing does."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx

from mtpp.errors import InputError
from mtpp.formats.onnx.loading import LARGEST_MESSAGE_BYTES
from mtpp.formats.onnx.stages.splitting import Split
from mtpp.formats.onnx.stages.validity import fault_of
from mtpp.formats.results.stage_manifest import FILE_NAME, Stage, StageManifest, manifest_text
from mtpp.host.interrupts import held

_OURS = re.compile(rf"{re.escape(FILE_NAME)}|stage-\d+\.onnx|weights-\d+\.bin")


def check_folder(target: str | Path, *, force: bool = False) -> None:
    """Check that a folder of stages can be written to *target*, before the work.

    Parameters
    ----------
    force
        Whether stages that were written there earlier may be replaced.

    Raises
    ------
    InputError
        If it is no name of a folder, its parent is missing or not writable, if it is a file, or holds something:
        anything but the stages of an earlier run is never replaced.
    """
    path, display = _resolved(target), str(target)
    if not display:
        raise InputError("names no folder", source="-o ''")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {str(path.parent)!r}", source=display, remedy="make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError("cannot be written: permission denied", source=display, remedy="choose another place")
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError("is a file", source=display, remedy="give the name of a folder")
    others = sorted(entry.name for entry in path.iterdir() if not _OURS.fullmatch(entry.name) or entry.is_dir())
    if others:
        raise InputError(
            f"holds other files, such as {others[0]!r}", source=display, remedy="give a new or empty folder"
        )
    if any(path.iterdir()) and not force:
        raise InputError("holds stages already", source=display, remedy="choose another folder, or ‹force›")


@contextmanager
def new_folder(target: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give an empty folder beside *target*, and put it there when the block ends well; else leave nothing behind.

    Raises
    ------
    InputError
        As :func:`check_folder`, and if the disk is full or refuses.
    """
    check_folder(target, force=force)
    path = _resolved(target)
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        draft.mkdir()
        yield draft
        _flush_folder(draft)
        check_folder(target, force=force)  # it may have been filled meanwhile
        with held():
            _replace(path, draft)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", source=str(target), remedy="choose another place"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _resolved(target: str | Path) -> Path:
    return Path(os.path.realpath(target))


def _replace(path: Path, draft: Path) -> None:
    old = None
    if path.exists() and any(path.iterdir()):
        old = draft.with_suffix(".old")
        path.rename(old)
    try:
        draft.rename(path)  # over an empty folder as well
    except BaseException:
        if old is not None:
            old.rename(path)
        raise
    _flush_folder(path.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_split(
    folder: Path, split: Split, predicted: Mapping[int, tuple[int, int]], about: Mapping[str, Any], display: str
) -> tuple[StageManifest, str | None]:
    """Write the stages, the data that they share and the manifest into an empty folder.

    Parameters
    ----------
    predicted
        Cost and work of each stage, in ticks.
    about
        Fields of the manifest that say what was split: ``name``, ``sha256``, ``ops``, ``k``, ``time_unit``,
        ``ticks_per_unit``, ``bottleneck``, ``work``.
    display
        What messages call the model.

    Returns
    -------
    The manifest, and what ``onnx.checker`` finds wrong with the whole model if it does with a stage.

    Raises
    ------
    InputError
        If a stage is above 2 GiB, or no valid model although the whole one is.
    OSError
        If a file cannot be written.
    """
    digits = len(str(max(stage.index for stage in split.stages)))
    whole_fault: str | None = None
    stages = []
    for wires in split.stages:
        model = split.build(wires)
        fault = fault_of(model)
        if fault is not None and whole_fault is None:
            whole_fault = split.whole_fault()
            if whole_fault is None:
                raise InputError(f"stage {wires.index} would be no valid model: {fault}", source=display)
        name = f"stage-{wires.index:0{digits}}.onnx"
        _write(folder / name, _serialized(model, wires.index, display))
        cost, work = predicted[wires.index]
        stages.append(Stage(wires.index, name, wires.ops, cost, work, wires.inputs, wires.outputs))
    split.data_files.copy(folder)
    manifest = StageManifest(
        **about, inputs=split.inputs, outputs=split.outputs, stages=tuple(stages), direct=split.direct
    )
    _write(folder / FILE_NAME, manifest_text(manifest).encode())
    return manifest, whole_fault


def _serialized(model: onnx.ModelProto, index: int, display: str) -> bytes:
    if model.ByteSize() > LARGEST_MESSAGE_BYTES:
        raise InputError(
            f"stage {index} would be above 2 GiB, more than ONNX Runtime can load",
            source=display,
            remedy="store the weights as external data (onnx.save_model(…, save_as_external_data=True))",
        )
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
