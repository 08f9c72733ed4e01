"""Files of the stages that a program was split into: an exported program each, and their manifest."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.io.new_folder import write_file
from mtpp.formats.results.stage_manifest import FILE_NAME, StageManifest, manifest_text
from mtpp.formats.results.stage_records import PlannedStage
from mtpp.runtime.pytorch.library import first_line, pytorch
from mtpp.runtime.pytorch.loading import CPU, META
from mtpp.runtime.pytorch.stage_modules import SplitProgram, StageModule

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def write_program_stages(
    folder: Path,
    split: SplitProgram,
    predicted: Mapping[int, PlannedStage],
    about: Mapping[str, Any],
    source: str,
) -> StageManifest:
    """Export the stages and write them, with their manifest, into an empty folder.

    Parameters
    ----------
    predicted
        Figures of each stage.
    about
        Fields of the manifest that say what was split.
    source
        What messages call the program.
    """
    digits = len(str(max(stage.index for stage in split.stages)))
    stages = []
    for stage in split.stages:
        name = f"stage-{stage.index:0{digits}}.pt2"
        write_file(folder / name, _saved(_exported(stage, source)))
        planned = predicted[stage.index]
        stages.append(planned.stage(stage.index, name, stage.ops, stage.inputs, stage.outputs))
    manifest = StageManifest(
        **about, inputs=split.inputs, outputs=split.results, stages=tuple(stages), direct=split.direct
    )
    write_file(folder / FILE_NAME, manifest_text(manifest, folder).encode())
    return manifest


def _exported(stage: StageModule, source: str) -> ExportedProgram:
    torch = pytorch()
    held = [*stage.module.parameters(), *stage.module.buffers()]
    device = META if any(one.device.type == META for one in held) else CPU
    inputs = tuple(
        torch.zeros([size or 0 for size in one.shape], dtype=getattr(torch, one.dtype), device=device)
        for one in stage.inputs
    )
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            exported: ExportedProgram = torch.export.export(stage.module, inputs)
        except Exception as error:  # whatever its tracer stumbles over
            raise InputError(
                f"PyTorch cannot export stage {stage.index}: {first_line(error)}",
                source=source,
                remedy="cut it elsewhere: ‹together› keeps ops beside each other",
            ) from None
    return exported


def _saved(exported: ExportedProgram) -> bytes:
    """Return a program as a file, without sample inputs and traces of where it was made."""
    exported._example_inputs = None
    for module in exported.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            node.meta.pop("stack_trace", None)
    written = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytorch().export.save(exported, written)
    return written.getvalue()
