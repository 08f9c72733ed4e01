"""Tensors that take working memory while ops run: those of the graph, and its inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.inference.weights import NO_WEIGHTS, Weights

NO_PRODUCER = -1
"""Stands for the op that makes an input of the graph: no stage has it."""


class Interface(NamedTuple):
    """Tensors that a graph exchanges with whoever runs it.

    Attributes
    ----------
    inputs
        Bytes and readers of each input; one lives in a stage from its first use there to its last.
    results
        Tensors that are results, int32, ascending; the stage that makes one keeps it to its end.
    """

    inputs: Weights
    results: Int32Array

    def without(self, place: Int32Array, tensor_place: Int32Array) -> Interface:
        """Return the interface of a graph without some ops and tensors.

        Parameters
        ----------
        place, tensor_place
            New number of each op and of each tensor, int32; below 0 if it is left out.
        """
        new = place.tolist()
        readers = [[new[v] for v in row if new[v] >= 0] for row in self.inputs.reader_lists()]
        kept = [i for i, row in enumerate(readers) if row]
        sizes, names = self.inputs.bytes.tolist(), self.inputs.names
        inputs = Weights.of([names[i] for i in kept], [sizes[i] for i in kept], [readers[i] for i in kept])
        results = tensor_place[self.results]
        return Interface(inputs, np.sort(results[results >= 0]))


NO_INTERFACE = Interface(NO_WEIGHTS, np.zeros(0, dtype=np.int32))
"""Where working memory does not depend on inputs and results."""


class LiveTensors(NamedTuple):
    """Tensors of a graph, and after them its inputs.

    Attributes
    ----------
    sizes
        Bytes of each, int64.
    pins, tensor_of_pin
        Ops that make or read them, and the tensor that each of these pins is one of, int32, ascending.
    producer
        Op that makes each, int32; :data:`NO_PRODUCER` for inputs.
    consumers
        Number of ops that read each, int32; one more for results, which are read outside of all stages.
    results
        Tensors that are results, int32.
    """

    sizes: Int64Array
    pins: Int32Array
    tensor_of_pin: Int32Array
    producer: Int32Array
    consumers: Int32Array
    results: Int32Array


def live_tensors(sizes: Int64Array, pins: Int32Array, pin_offsets: Int64Array, interface: Interface) -> LiveTensors:
    """Lay out the tensors of a graph with its inputs; O(pins).

    Parameters
    ----------
    sizes, pins, pin_offsets
        Bytes of each tensor, and the ops that touch it, CSR, producer first.
    """
    inputs = interface.inputs
    read, count = np.diff(inputs.offsets), len(inputs.names)
    consumers = np.concatenate([np.diff(pin_offsets) - 1, read]).astype(np.int32)
    consumers[interface.results] += 1
    lengths = np.concatenate([np.diff(pin_offsets), read])
    return LiveTensors(
        np.concatenate([sizes, inputs.bytes]),
        np.concatenate([pins, inputs.readers]),
        np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        np.concatenate([pins[pin_offsets[:-1]], np.full(count, NO_PRODUCER, dtype=np.int32)]),
        consumers,
        interface.results,
    )
