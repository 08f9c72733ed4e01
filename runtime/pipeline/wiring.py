"""Dependencies between the stages of a folder, and the length of the queues between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import SIZE_LIMIT
from mtpp.formats.results.stage_manifest import FILE_NAME, MODEL_INPUT, TEXT, Described, StageManifest, read_manifest
from mtpp.runtime.element_types import element_type, stored_bytes
from mtpp.runtime.pipeline.memory import Layout

_CUT_ELSEWHERE = "cut the model where tensors of numbers cross"

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
    def is_open(self) -> bool:
        """Whether a tensor that a stage makes has a size that only a run tells."""
        return any(None in region.shape for layout in self.layouts for region in layout.regions)

    def with_rooms(self, rooms: Mapping[str, int]) -> Wiring:
        """Return it with bytes set aside for tensors of open size, by name."""
        return replace(
            self,
            layouts=tuple(layout.with_rooms(rooms) for layout in self.layouts),
            outputs=self.outputs.with_rooms(rooms),
        )

    @property
    def spare(self) -> tuple[str, ...]:
        """Inputs of the whole model that have no place: no stage reads them."""
        placed = {region.name for region in self.inputs.regions}
        return tuple(tensor.name for tensor in self.manifest.inputs if tensor.name not in placed)

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
    folder: Path, queue_depth: int, *, whole: bool = True, given: Mapping[str, Array] | None = None
) -> Wiring:
    """Read a folder of stages.

    Parameters
    ----------
    queue_depth
        Batches that may wait between two stages, the one that is being read included.
    whole
        Whether there are to be inputs for the model that was split as well, which may have some that no stage reads.
    given
        Contents of inputs that are given some, by name.

    Raises
    ------
    InputError
        If the manifest is not right (:func:`~mtpp.formats.results.stage_manifest.read_manifest`), there is no stage, or
        a tensor is of a type or a size that cannot be laid out.

    Notes
    -----
    A tensor that goes past `d` stages on its way is needed `d` batches later than one that the next stage reads, so its
    producer has as many slots more: a bypass must not slow down the pipeline. Tensors whose sizes only a run tells have
    no room yet (:meth:`Wiring.with_rooms`).
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
    direct = {output for output, _ in manifest.direct}
    source = str(folder / FILE_NAME)
    return Wiring(
        folder,
        manifest,
        layouts=tuple(_layout(stage.outputs, source) for stage in manifest.stages),
        inputs=_inputs_layout(manifest, given or {}, source, whole=whole),
        outputs=_layout((tensor for tensor in manifest.tensors_out if tensor.name not in direct), source),
        producers=producers,
        consumers=consumers,
        slots=tuple(queue_depth + distance for distance in _longest_ways(consumers)),
    )


def not_handed_on(manifest: StageManifest) -> list[tuple[str, str]]:
    """Return the tensors that a run would have no memory for, each with why; texts are given to it as to a check."""
    tensors: list[Described] = [one for one in manifest.inputs if one.name in _read(manifest) and one.dtype != TEXT]
    tensors += [one for stage in manifest.stages for one in stage.outputs]
    return [(one.name, _fault_of(one)) for one in tensors if element_type(one.dtype) is None]


def _read(manifest: StageManifest) -> set[str]:
    return {tensor.name for stage in manifest.stages for tensor in stage.inputs if tensor.source == MODEL_INPUT}


def _fault_of(tensor: Described) -> str:
    return f"{tensor.dtype!r} cannot go through shared memory"


def _inputs_layout(manifest: StageManifest, given: Mapping[str, Array], source: str, *, whole: bool) -> Layout:
    """Lay out the inputs; a size that nobody knows is 1, as in a check."""
    read = _read(manifest)
    found = []
    for one in manifest.inputs:
        is_read = one.name in read
        if one.name in given and (one.dtype == TEXT or element_type(one.dtype) is not None) and (is_read or whole):
            own = given[one.name]
            found.append((one.name, own.dtype.str if one.dtype == TEXT else one.dtype, own.shape))
        elif (is_read or whole) and element_type(one.dtype) is not None:
            shape = tuple(1 if size is None else size for size in one.shape)
            _check_size(one, shape, source)
            found.append((one.name, one.dtype, shape))
        elif is_read:
            text = one.dtype == TEXT
            raise InputError(
                "no texts can be made up" if text else _fault_of(one),
                source=source,
                where=f"tensor {one.name!r}",
                remedy="give some: ‹inputs› FILE.npz" if text else _CUT_ELSEWHERE,
            )
    return Layout.of(found)


def _layout(tensors: Iterable[Described], source: str) -> Layout:
    found = []
    for one in tensors:
        if element_type(one.dtype) is None:
            raise InputError(_fault_of(one), source=source, where=f"tensor {one.name!r}", remedy=_CUT_ELSEWHERE)
        _check_size(one, tuple(1 if size is None else size for size in one.shape), source)
        found.append((one.name, one.dtype, one.shape))
    return Layout.of(found)


def _check_size(tensor: Described, shape: tuple[int, ...], source: str) -> None:
    if len(shape) > _MOST_AXES or stored_bytes(tensor.dtype, prod(shape)) >= SIZE_LIMIT:
        where = f"tensor {tensor.name!r}"
        raise InputError("no memory can hold it", source=source, where=where, remedy="split the model again")


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
