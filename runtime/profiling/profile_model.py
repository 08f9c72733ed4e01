"""From a model's file to its graph with measured costs: the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.host.capacity import machine
from mtpp.host.statistics import Quartiles
from mtpp.runtime.guarded import guarded
from mtpp.runtime.profiling.executable import Executable, fill, fill_inputs, prepare
from mtpp.runtime.profiling.measured_model import MeasuredModel, measure_model
from mtpp.runtime.profiling.profile_memory import MemoryNeed, memory_need, refuse_what_does_not_fit
from mtpp.runtime.profiling.profiled_graph import MeasuredOps, MeasuredProfile, profiled_graph
from mtpp.runtime.profiling.timing import ProfileRequest
from mtpp.runtime.session import onnxruntime, require_onnxruntime

if TYPE_CHECKING:
    import onnx

    from mtpp.formats.io.source import Source
    from mtpp.formats.onnx import Reading
    from mtpp.formats.onnx.stages import Split
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device

_ABSENT = "absent-weights"


def profile_guarded(
    source: Source, request: ProfileRequest, progress: Callable[[int, int], None] = lambda done, total: None
) -> MeasuredProfile:
    """Measure an ONNX model as :func:`profile_model` does, in a process of its own that may crash (RuntimeCrashed)."""
    require_onnxruntime()
    arguments = {"source": source, "request": request}
    found = guarded(f"{__name__}:profile_model", arguments, source.display, progress, listener="progress")
    assert isinstance(found, MeasuredProfile)
    return found


def profile_model(
    source: Source, request: ProfileRequest, progress: Callable[[int, int], None] = lambda done, total: None
) -> MeasuredProfile:
    """Measure an ONNX model on this machine.

    Notes
    -----
    Memory: :class:`mtpp.runtime.profiling.profile_memory.MemoryNeed`. Time: two sessions, ``warm_up + repeats`` runs of
    each.
    """
    from mtpp.formats.modelled.open_sizes import UnknownSize
    from mtpp.formats.onnx.reader import only_branches
    from mtpp.formats.onnx.value_ranges import ranges_of

    folder = Path() if source.path is None else source.path.parent
    executable = prepare(source.data, folder, source.display, dims=request.dims, arrays=request.arrays)

    def read(data: bytes, system: Device) -> Reading:
        from mtpp.formats.onnx import read_with_nodes

        return read_with_nodes(
            source.path,
            data,
            source=source.display,
            dims=executable.dims,
            system=system,
            name=source.stem,
            propose_sizes=False,
        )

    reading: Reading | None = None
    with suppress(UnknownSize):  # a run tells it
        reading = read(source.data, request.system)
        executable.limits = ranges_of(reading.model.graph, reading.scope, only_branches(reading))
        if only_branches(reading):
            executable.leave_sizes_open()
    need = memory_need(executable, reading.graph if reading else None, 1 + request.choices.beside)
    limit, chunks = request.memory_bytes, 1
    if reading is not None and limit is not None and need.total > limit:
        labels = chunks_within(reading.graph, need, limit)
        chunks = max(labels, default=0) + 1
        if chunks > 1:
            measured = measure_in_chunks(executable, source.data, reading, labels, request, progress)
            return _profile(source, executable, measured, request, chunks)
    refuse_what_does_not_fit(need, limit, source.display)
    fill(executable, request.seed)
    room_for_two = limit is None or need.total + need.session <= limit
    measured = measure_model(
        executable,
        source.data,
        read,
        reading,
        request.choices,
        request.system,
        room_for_two=room_for_two,
        progress=progress,
    )
    return _profile(source, executable, measured, request, chunks)


def _profile(
    source: Source, executable: Executable, measured: MeasuredModel, request: ProfileRequest, chunks: int
) -> MeasuredProfile:
    choices = request.choices
    metadata = {
        "model_sha256": source.sha256,
        "machine": machine(),
        "onnxruntime": str(onnxruntime().__version__),
        "threads": choices.threads,
        "warm_up": choices.warm_up,
        "repeats": choices.repeats,
        "optimise": choices.optimise,
        "beside": choices.beside,
        "pieces": chunks,
        "seed": request.seed,
        "random_weight_bytes": executable.random_weight_bytes,
        "random_inputs": list(executable.made_up),
        "interleaved": measured.interleaved,
    }
    if executable.proposed:
        metadata["proposed_dims"] = list(executable.proposed)
    graph = profiled_graph(measured.reading.graph, measured.ops, measured.sizes, metadata)
    modelled = replace(measured.reading.graph, tensor_bytes=graph.tensor_bytes)
    return MeasuredProfile(graph, modelled, measured.ops, executable.random_weight_bytes, tuple(executable.made_up))


def chunks_within(graph: CostGraph, need: MemoryNeed, limit: int) -> list[int]:
    """Return the chunk of each op: as few as fit into *limit* bytes each; all in chunk 0 where that cannot be.

    Notes
    -----
    O(n).
    """
    room = limit - need.kept_for_chunks
    sizes = graph.read_bytes.tolist()
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

    Chunks are runs of ops in the graph's order, each cut out as a model of its own. What one hands on to later ones
    stays in memory; weights are there only while their chunk is.

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

    def read(model: bytes, system: Device) -> Reading:
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
