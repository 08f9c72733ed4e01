"""Dependencies between the stages of a folder, and the length of the queues between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import SIZE_LIMIT
from mtpp.formats.results.stage_manifest import FILE_NAME, MODEL_INPUT, Described, StageManifest, read_manifest
from mtpp.runtime.pipeline.memory import Layout

_PLAIN_TYPES = frozenset(
    ["bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
)
"""Types that both numpy and ONNX Runtime have a name for."""

TEXT = "string"
"""The type of texts in manifests and models."""

_MOST_AXES = 32
"""Of an array of any version of numpy."""


@dataclass(frozen=True)
class Wiring:
    """How the stages of a folder are connected; stages are called by their position among those that run an op.

    Attributes
    ----------
    layouts
        Of what each stage hands on.
    inputs, outputs
        Of what goes into the whole model and comes out of its stages.
    producers, consumers
        Of each stage, in order.
    slots
        Batches that each stage's outputs have room for.
    """

    folder: Path
    manifest: StageManifest
    layouts: tuple[Layout, ...]
    inputs: Layout
    outputs: Layout
    producers: tuple[tuple[int, ...], ...]
    consumers: tuple[tuple[int, ...], ...]
    slots: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of stages that run an op."""
        return len(self.manifest.stages)

    def label(self, position: int) -> str:
        """Return what people call a stage."""
        return f"stage {self.manifest.stages[position].index}"

    def results(self, position: int) -> tuple[str, ...]:
        """Return the outputs of the whole model that a stage makes."""
        return tuple(tensor.name for tensor in self.manifest.stages[position].outputs if tensor.result)


def read_wiring(
    folder: Path, queue_depth: int, *, whole: bool = True, texts: Mapping[str, str] | None = None
) -> Wiring:
    """Read a folder of stages.

    Parameters
    ----------
    queue_depth
        Batches that may wait between two stages, the one that is being read included.
    whole
        Whether there are to be inputs for the model that was split as well, which may have some that no stage reads.
    texts
        numpy's types, as wide as their texts, of the inputs that hold some.

    Raises
    ------
    InputError
        If the manifest is not right (:func:`~mtpp.formats.results.stage_manifest.read_manifest`), there is no stage, or
        a tensor is of a type or a size that cannot be laid out.

    Notes
    -----
    A tensor that goes past `d` stages on its way is needed `d` batches later than one that the next stage reads, so its
    producer has as many slots more: a bypass must not slow down the pipeline.
    """
    manifest = read_manifest(folder)
    if not manifest.stages:
        raise InputError(
            "no stage runs an op", source=str(folder / FILE_NAME), remedy="partition a model that has some"
        )
    position = {stage.index: i for i, stage in enumerate(manifest.stages)}
    producers = tuple(
        tuple(sorted({position[tensor.source] for tensor in stage.inputs if tensor.source != MODEL_INPUT}))
        for stage in manifest.stages
    )
    consumers = tuple(
        tuple(sorted({position[reader] for tensor in stage.outputs for reader in tensor.readers}))
        for stage in manifest.stages
    )
    read = {tensor.name for stage in manifest.stages for tensor in stage.inputs if tensor.source == MODEL_INPUT}
    given = texts or {}
    direct = {output for output, _ in manifest.direct}
    return Wiring(
        folder,
        manifest,
        layouts=tuple(_layout(folder, stage.outputs) for stage in manifest.stages),
        inputs=_layout(
            folder,
            (one for one in manifest.inputs if one.name in read or (whole and (_is_plain(one) or one.name in given))),
            given,
        ),
        outputs=_layout(folder, (tensor for tensor in manifest.tensors_out if tensor.name not in direct)),
        producers=producers,
        consumers=consumers,
        slots=tuple(queue_depth + distance for distance in _longest_ways(consumers)),
    )


def _is_plain(tensor: Described) -> bool:
    """Whether an input that no stage reads, but the whole model expects, can be made up."""
    return tensor.dtype in _PLAIN_TYPES and None not in tensor.shape


def _layout(folder: Path, tensors: Iterable[Described], texts: Mapping[str, str] | None = None) -> Layout:
    return Layout.of(
        [(tensor.name, *_concrete(folder, tensor, texts or {}, is_input=texts is not None)) for tensor in tensors]
    )


def not_handed_on(manifest: StageManifest) -> list[tuple[str, str]]:
    """Return the tensors that a run would have no memory for, each with why; texts are given to it as to a check."""
    read = {one.name for stage in manifest.stages for one in stage.inputs if one.source == MODEL_INPUT}
    tensors = [one for one in manifest.inputs if one.name in read and (one.dtype != TEXT or None in one.shape)]
    tensors += [one for stage in manifest.stages for one in stage.outputs]
    found = [(one.name, _fault_of(one)) for one in tensors]
    return [(name, fault[0]) for name, fault in found if fault is not None]


def _fault_of(tensor: Described) -> tuple[str, str] | None:
    """Return why no memory can be set aside for a tensor, and what to do; None if it can."""
    if tensor.dtype not in _PLAIN_TYPES:
        return f"{tensor.dtype!r} cannot go through shared memory", "cut the model where tensors of plain numbers cross"
    if None in tensor.shape:
        return (
            "its size is not known, so no memory can be set aside for it",
            "of an input, split with ‹dims› NAME=VALUE; else it depends on data: cut the model where none such crosses",
        )
    return None


def _concrete(
    folder: Path, tensor: Described, texts: Mapping[str, str], *, is_input: bool
) -> tuple[str, tuple[int, ...]]:
    """Return numpy's name of a tensor's type, and its shape."""
    source = str(folder / FILE_NAME)
    where = f"tensor {tensor.name!r}"
    if tensor.name in texts and tensor.dtype == TEXT and None not in tensor.shape:
        return texts[tensor.name], tuple(size for size in tensor.shape if size is not None)
    if tensor.dtype == TEXT and is_input:
        raise InputError("no texts can be made up", source=source, where=where, remedy="give some: ‹inputs› FILE.npz")
    if (fault := _fault_of(tensor)) is not None:
        raise InputError(fault[0], source=source, where=where, remedy=fault[1])
    shape = tuple(size for size in tensor.shape if size is not None)
    if len(shape) > _MOST_AXES or prod(shape) * np.dtype(tensor.dtype).itemsize >= SIZE_LIMIT:
        raise InputError("no memory can hold it", source=source, where=where, remedy="split the model again")
    return tensor.dtype, shape


def _longest_ways(consumers: tuple[tuple[int, ...], ...]) -> list[int]:
    """Return for each stage the most steps on any way to a stage that reads from it; 1 for a stage without readers.

    O(k · links): stages only hand on to later ones.
    """
    longest = []
    for start, readers in enumerate(consumers):
        steps = {start: 0}
        for i in range(start, len(consumers)):
            for reader in consumers[i] if i in steps else ():
                steps[reader] = max(steps.get(reader, 0), steps[i] + 1)
        longest.append(max((steps[reader] for reader in readers), default=1))
    return longest
