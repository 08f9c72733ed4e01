"""A model that does not fit into memory, measured chunk by chunk: one after the other is loaded, run and let go of.

Chunks are runs of ops in the graph's order, each cut out as a model of its own. What one hands on to later ones stays
in memory; weights are there only while their chunk is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.host.statistics import Quartiles
from mtpp.runtime.profiling.executable import Executable, fill, fill_inputs, prepare
from mtpp.runtime.profiling.measured_model import MeasuredModel, measure_model
from mtpp.runtime.profiling.profile_memory import MemoryNeed
from mtpp.runtime.profiling.profile_request import ProfileRequest
from mtpp.runtime.profiling.profiled_graph import MeasuredOps

if TYPE_CHECKING:
    import onnx

    from mtpp.formats.onnx import Reading
    from mtpp.formats.onnx.stages import Split
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.system import System

_ABSENT = "absent-weights"


def chunks_within(graph: CostGraph, need: MemoryNeed, limit: int) -> list[int]:
    """Return the chunk of each op: as few as fit into *limit* bytes each; all in chunk 0 where that cannot be.

    Notes
    -----
    O(n).
    """
    room = limit - need.kept_for_chunks
    sizes = graph.param_bytes.tolist()
    labels = [0] * graph.op_count
    chunk, held = 0, 0
    for op in graph.order.tolist():
        if need.of_chunk(sizes[op]) > room:
            return [0] * graph.op_count
        if need.of_chunk(held + sizes[op]) > room:
            chunk, held = chunk + 1, 0
        held += sizes[op]
        labels[op] = chunk
    return labels


def measure_in_chunks(
    executable: Executable,
    data: bytes,
    reading: Reading,
    labels: Sequence[int],
    request: ProfileRequest,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> MeasuredModel:
    """Measure a model chunk by chunk.

    Parameters
    ----------
    executable
        The whole model, with neither weights nor inputs made up.
    labels
        Chunk of each op; every edge goes to the same or a later one.
    progress
        Is told how many of how many chunks are done.

    Returns
    -------
    What was measured; a run takes what the runs of all chunks take together.
    """
    from mtpp.formats.onnx.stages import split_model

    fill_inputs(executable, request.seed)
    split = split_model(reading, data, labels, source=executable.source, folder=executable.folder)
    live: dict[str, Array] = dict(executable.feeds)
    last_reader = {tensor.name: stage.index for stage in split.stages for tensor in stage.inputs}
    measured: list[MeasuredModel] = []
    for number, stage in enumerate(split.stages):
        chunk = bytes(_with_own_places(split, split.build(stage), executable.folder).SerializeToString())
        feeds = {tensor.name: live[tensor.name] for tensor in stage.inputs}
        measured.append(_measure_chunk(executable, chunk, feeds, request))
        progress(number + 1, len(split.stages))
        live |= measured[-1].results
        for name in [name for name in live if last_reader.get(name, -1) <= stage.index]:
            del live[name]
    return _together(executable, reading, measured)


def _measure_chunk(
    whole: Executable,
    data: bytes,
    feeds: dict[str, Array],
    request: ProfileRequest,
) -> MeasuredModel:
    from mtpp.formats.onnx import read_with_nodes

    def read(model: bytes, system: System) -> Reading:
        return read_with_nodes(None, model, source=whole.source, system=system)

    chunk = prepare(data, whole.folder, whole.source, dims={}, arrays=feeds)
    fill(chunk, request.seed)
    whole.random_weight_bytes += chunk.random_weight_bytes
    return measure_model(
        chunk,
        data,
        read,
        read(data, request.system),
        request.choices,
        request.system,
        room_for_two=False,
    )


def _with_own_places(split: Split, model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Let the tensors of a chunk refer to the files of the whole model again: nothing is copied."""
    import onnx

    from mtpp.formats.onnx.external_data import all_tensors

    places = {name: path.relative_to(folder).as_posix() for name, path in split.data_files.files.items()}
    for tensor in all_tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = places.get(entry.value) or f"{_ABSENT}/{entry.value}"
    return model


def _together(executable: Executable, reading: Reading, measured: Sequence[MeasuredModel]) -> MeasuredModel:
    """Put the chunks together in the order of the whole graph."""
    place = {name: (chunk, op) for chunk in measured for op, name in enumerate(chunk.reading.graph.op_names)}
    if place.keys() != set(reading.graph.op_names):
        raise InputError("has ops that are not the same in a piece of it", source=executable.source)
    found = [place[name] for name in reading.graph.op_names]
    ops = [chunk.ops for chunk in measured]
    return MeasuredModel(
        reading,
        MeasuredOps(
            kernel=tuple(chunk.ops.kernel[op] for chunk, op in found),
            quartiles=tuple(chunk.ops.quartiles[op] for chunk, op in found),
            cost=tuple(chunk.ops.cost[op] for chunk, op in found),
            wall=_sums([one.wall for one in ops]),
            profiled_wall=_sums([one.profiled_wall for one in ops]),
            kernels=sum((one.kernels for one in ops), Fraction(0)),
            between_kernels=sum((one.between_kernels for one in ops), Fraction(0)),
        ),
        {name: size for chunk in measured for name, size in chunk.sizes.items()},
        False,
        {},
    )


def _sums(figures: Sequence[Quartiles]) -> Quartiles:
    first, second, third = (sum(column, Fraction(0)) for column in zip(*figures, strict=True))
    return first, second, third
