"""Files of models by what they are: ONNX models and exported PyTorch programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mtpp.runtime.pipeline.model_file import Expected, ModelFile
from mtpp.runtime.pipeline.onnx_file import OnnxFile
from mtpp.runtime.pipeline.program_file import SUFFIX, ProgramFile


def model_of(
    path: Path,
    inputs: Sequence[Expected],
    outputs: Sequence[Expected],
    seed: int,
    *,
    whole: bool = False,
    spare: Sequence[str] = (),
    numbers: Mapping[str, int] | None = None,
) -> ModelFile:
    """Return a file as what it is, by its suffix."""
    kind = ProgramFile if path.suffix == SUFFIX else OnnxFile
    return kind(path, tuple(inputs), tuple(outputs), seed, whole, tuple(spare), numbers or {})
