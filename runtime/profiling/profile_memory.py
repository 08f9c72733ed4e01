"""Memory that running a model will take, estimated before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtpp.errors import InputError
from mtpp.units import format_bytes

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.runtime.profiling.executable import Executable

_COPIES_OF_FILE = 2
"""The model parsed, and serialized for ONNX Runtime."""

_COPIES_OF_WEIGHTS = 2
"""ONNX Runtime keeps weights as they are while it packs matrices and kernels for its own use."""


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes that profiling takes, about.

    Attributes
    ----------
    weights
        Of the model.
    activations
        The most that are alive at once.
    file
        Weights stored in the model's file itself.
    made_up
        Weights whose files are absent.
    sessions
        That are open at the same time, at least.
    """

    weights: int
    activations: int
    file: int
    made_up: int
    sessions: int = 1

    @property
    def session(self) -> int:
        """What one more session takes."""
        return _COPIES_OF_WEIGHTS * self.weights + self.activations

    @property
    def total(self) -> int:
        """What profiling takes at least."""
        return _COPIES_OF_FILE * self.file + self.made_up + self.sessions * self.session

    @property
    def kept_for_chunks(self) -> int:
        """What stays in memory while the model is measured chunk by chunk."""
        return (_COPIES_OF_FILE + 1) * self.file + self.activations

    def of_chunk(self, weights: int) -> int:
        """Return what a chunk with so many weights takes besides."""
        stored = _COPIES_OF_FILE * min(weights, self.file)
        made_up = min(weights, self.made_up)
        return stored + made_up + self.sessions * (_COPIES_OF_WEIGHTS * weights + self.activations)


def memory_need(executable: Executable, graph: CostGraph | None, sessions: int = 1) -> MemoryNeed:
    """Estimate what profiling takes; without a graph, activations are not known beforehand and count as nothing."""
    from mtpp.formats.onnx.external_data import all_tensors, external_place

    inline = executable.model.ByteSize()
    weights = executable.initializer_bytes
    absent = 0
    for tensor in all_tensors(executable.model.graph):
        place = external_place(tensor, executable.folder, executable.source)
        if place is not None and not place.is_there:
            from mtpp.formats.onnx.tensor_type import TensorType

            absent += TensorType(tensor.data_type, tuple(tensor.dims)).bytes
    if graph is not None:  # weights that the file computes
        weights = max(weights, int(graph.metadata.get("computed_bytes", 0)))
    return MemoryNeed(weights, 0 if graph is None else most_alive(graph), inline, absent, sessions)


def most_alive(graph: CostGraph) -> int:
    """Return the bytes of the tensors that are alive at once, at most, as the ops run in the graph's order."""
    from mtpp.inference.instance import Instance
    from mtpp.inference.working_memory import peaks_in_order
    from mtpp.machine.machine import Machine
    from mtpp.machine.presets import load_device

    instance = Instance.build(graph, Machine.uniform(1, load_device()))
    return int(peaks_in_order(instance, np.zeros(graph.op_count, dtype=np.int32), 1)[0])


def refuse_what_does_not_fit(need: MemoryNeed, limit: int | None, source: str) -> None:
    """Raise InputError if profiling takes more memory than there is.

    Parameters
    ----------
    limit
        In bytes; None where nothing tells what is free.
    """
    if limit is None or need.total <= limit:
        return
    raise InputError(
        f"running it takes about {format_bytes(need.total)} ({format_bytes(need.weights)} of weights, kept twice while "
        f"ONNX Runtime packs them, {format_bytes(need.activations)} of activations; "
        f"{need.sessions} at the same time), and there are "
        f"{format_bytes(limit)}",
        source=source,
        remedy="profile it on a larger machine, or a part of it; ‹memory_limit› overrides what is free",
    )
