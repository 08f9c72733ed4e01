"""From a model's file to its graph with measured costs: the steps in order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.runtime.guarded import guarded
from mtpp.runtime.profiling.chunked_profiling import chunks_within, measure_in_chunks
from mtpp.runtime.profiling.executable import Executable, fill, prepare
from mtpp.runtime.profiling.machine import machine
from mtpp.runtime.profiling.measured_model import MeasuredModel, measure_model
from mtpp.runtime.profiling.profile_memory import memory_need, refuse_what_does_not_fit
from mtpp.runtime.profiling.profile_request import ProfileRequest
from mtpp.runtime.profiling.profiled_graph import MeasuredProfile, profiled_graph
from mtpp.runtime.session import onnxruntime, require_onnxruntime

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.formats.onnx import Reading
    from mtpp.inference.system import System


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
    from mtpp.formats.onnx.left_out import only_branches
    from mtpp.formats.onnx.value_ranges import ranges_of

    folder = Path() if source.path is None else source.path.parent
    executable = prepare(source.data, folder, source.display, dims=request.dims, arrays=request.arrays)

    def read(data: bytes, system: System) -> Reading:
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
