"""Builder of models to be trained: layers of stated shapes, with roofline times for some degrees of parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mtpp.inference.system import System
from mtpp.training.model import Configuration, Edge, Layer, SampleCosts, TrainingModel
from mtpp.units import PICOSECONDS, ceil_ratio

ELEMENT_BYTES = 4
"""Parameters and activations are float32."""

TENSOR_PARALLEL_BANDWIDTH = 300 * 10**9
"""Bytes a second between devices that share a layer: NVSwitch (Tarnawski et al. 2021, section 5)."""

DEGREES = (1, 2, 4, 8)
"""Degrees of tensor parallelism that layers have configurations for."""

RUNS, RUNS_RECOMPUTING = 3, 4
"""Forward and backward pass take as much as three forward passes; recomputation is one more."""

PLAIN, RECOMPUTING = "vanilla", "activation recomp"
"""The configurations of each layer for each degree, by their names in Piper's files."""


@dataclass(frozen=True)
class Work:
    """What a layer does in the forward pass of one micro-batch, on one device; all counts are of elements.

    Attributes
    ----------
    flops
        Operations.
    touched
        Elements read and written: inputs, parameters in use, results on the way, output.
    params
        Parameters that it holds.
    kept
        What is kept for the backward pass beside the inputs: results on the way.
    reduced
        Elements summed over the t devices that share the layer, forward and as many backward.
    divisible
        Whether t devices can share it; otherwise each does all of it.
    """

    flops: int
    touched: int
    params: int
    kept: int
    reduced: int
    divisible: bool = True


@dataclass
class TrainingNetwork:
    """Layers in the order of their making, whose outputs have so many elements for one micro-batch.

    Times on *system* are in picoseconds, by the roofline: three times the forward pass, four times with recomputation,
    divided by t, and what the devices tell each other: a ring moves 2 · (t - 1) / t of what is summed. Memory is that
    of PipeDream-2BW with two versions of the parameters: without recomputation a layer keeps its inputs and what is on
    the way for each micro-batch in flight; with it only the inputs, and once what is on the way, as in Piper's files.
    Where t > 1, tensors from and to other stages have to reach all t devices.

    Attributes
    ----------
    micro_batch_size
        Samples of the micro-batch, for models that have costs by size: a layer has no recomputation then, for what is
        made again would depend on the size. Its time is that of both passes, each rounded up, as is its cost for so
        many samples on one device. None: costs of one size alone.
    """

    system: System
    degrees: Sequence[int] = DEGREES
    micro_batch_size: int | None = None
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def add(self, name: str, inputs: Sequence[int], output: int, work: Work, *, read: int = 0) -> int:
        """Add a layer and return its number.

        Parameters
        ----------
        inputs
            Layers whose outputs it needs, all different.
        output
            Elements that it makes.
        read
            Elements of the model's own input that it reads.
        """
        number = len(self.layers)
        kept_inputs = (read + sum(self.sizes[u] for u in inputs)) * ELEMENT_BYTES
        recomputes = (False, True) if self.micro_batch_size is None else (False,)
        configurations = {
            t: [self._configuration(inputs, work, kept_inputs, t, recompute) for recompute in recomputes]
            for t in self.degrees
            if t == 1 or work.divisible
        }
        self.layers.append(Layer(number, name, configurations))
        self.sizes.append(output)
        self.edges += [Edge(u, number, self.sizes[u] * ELEMENT_BYTES) for u in inputs]
        return number

    def model(self, name: str) -> TrainingModel:
        """Return what has been made, checked; only now is it known who reads what each layer makes."""
        readers: list[list[int]] = [[] for _ in self.layers]
        for edge in self.edges:
            readers[int(edge.source)].append(int(edge.target))
        layers = []
        for v, layer in enumerate(self.layers):
            by_degree = {
                t: [self._handing_back(v, one, t, readers[v]) for one in here]
                for t, here in layer.configurations.items()
            }
            layers.append(Layer(v, layer.name, by_degree))
        return TrainingModel(name, "ps", layers, self.edges, micro_batch_size=self.micro_batch_size)

    def _configuration(
        self, inputs: Sequence[int], work: Work, kept_inputs: int, t: int, recompute: bool
    ) -> Configuration:
        runs = RUNS_RECOMPUTING if recompute else RUNS
        time = self._time(work, runs, t)
        forward, backward = self._time(work, 1, t), self._time(work, runs - 1, t)
        if self.micro_batch_size is not None:
            time = forward + backward
        # Sums are over in the forward pass, in the backward pass, and in the forward pass done again.
        moved = (runs - 1) * 2 * (t - 1) * work.reduced * ELEMENT_BYTES
        time += ceil_ratio(moved * PICOSECONDS["s"], t * TENSOR_PARALLEL_BANDWIDTH)
        params = -(-work.params * ELEMENT_BYTES // t)
        kept = -(-work.kept * ELEMENT_BYTES // t)
        memory_a = kept_inputs + (0 if recompute else kept)
        sizes = {}
        if self.micro_batch_size is not None and t == 1:
            sizes[self.micro_batch_size] = SampleCosts(forward, backward, memory_a)
        return Configuration(
            id=RECOMPUTING if recompute else PLAIN,
            time_per_sample=time,
            parameter_bytes=params,
            memory_a=memory_a,
            memory_b=2 * params + (kept if recompute else 0),
            forward_sync_bytes={u: self.sizes[u] * ELEMENT_BYTES if t > 1 else 0 for u in inputs},
            recomputes=recompute,
            micro_batches=sizes,
        )

    def _time(self, work: Work, runs: int, t: int) -> int:
        """Return the picoseconds of so many forward passes of a layer, divided over t devices."""
        return self.system.modelled_work_ps(-(-runs * work.flops // t), -(-runs * work.touched * ELEMENT_BYTES // t))

    def _handing_back(self, number: int, one: Configuration, t: int, readers: Sequence[int]) -> Configuration:
        size = self.sizes[number] * ELEMENT_BYTES if t > 1 else 0
        return replace(one, backward_sync_bytes=dict.fromkeys(readers, size))
