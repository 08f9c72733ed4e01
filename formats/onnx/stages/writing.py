"""Files of the stages that an ONNX model was split into, with the data that they share and their manifest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from mtpp.errors import InputError
from mtpp.formats.io.new_folder import write_file
from mtpp.formats.onnx.loading import LARGEST_MESSAGE_BYTES
from mtpp.formats.onnx.stages.splitting import Split
from mtpp.formats.onnx.stages.validity import fault_of
from mtpp.formats.results.stage_manifest import FILE_NAME, StageManifest, manifest_text
from mtpp.formats.results.stage_records import PlannedStage


def write_split(
    folder: Path, split: Split, predicted: Mapping[int, PlannedStage], about: Mapping[str, Any], display: str
) -> tuple[StageManifest, str | None]:
    """Write the stages, the data that they share and the manifest into an empty folder.

    Parameters
    ----------
    predicted
        Figures of each stage.
    about
        Fields of the manifest that say what was split: ``name``, ``sha256``, ``path``, ``ops``, ``k``,
        ``time_unit``, ``ticks_per_unit``, ``bottleneck``, ``work``.
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
        write_file(folder / name, _serialized(model, wires.index, display))
        planned = predicted[wires.index]
        stages.append(planned.stage(wires.index, name, wires.ops, wires.inputs, wires.outputs))
    split.data_files.copy(folder)
    manifest = StageManifest(
        **about, inputs=split.inputs, outputs=split.outputs, stages=tuple(stages), direct=split.direct
    )
    write_file(folder / FILE_NAME, manifest_text(manifest, folder).encode())
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
