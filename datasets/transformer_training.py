"""Transformers to be trained, layer by layer: decoders as GPT has them, split over devices as Megatron-LM does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mtpp.datasets.sizes import check_least
from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.machine.presets import load_device
from mtpp.training.model import Configuration, Edge, Layer, LayerId, TrainingModel

DEGREES = (1, 2, 4, 8)
"""Degrees of tensor parallelism: those that divide the attention heads get configurations."""

SYSTEM = "a100"

ELEMENT_BYTES = 2
"""Parameters, activations and gradients are of 16 bits."""

STATE_BYTES = 2 * ELEMENT_BYTES + ELEMENT_BYTES + 12
"""Of each parameter: two versions (PipeDream-2BW), a gradient, and Adam's copy and two moments of 32 bits each."""

BACKWARD = 2
"""A backward pass takes so many times what the forward pass takes."""

_MOST_LAYERS = 10_000


def transformer_training(
    layers: int,
    *,
    hidden: int = 2048,
    heads: int = 16,
    sequence: int = 1024,
    vocabulary: int = 51_200,
    micro_batch_size: int = 1,
    system: Device | None = None,
) -> TrainingModel:
    """Return a decoder of *layers* equal layers between an embedding and a head, with roofline times in ps.

    Parameters
    ----------
    hidden, heads, sequence, vocabulary
        Width h, attention heads a (a divisor of it), tokens s of a sample, rows V of the embedding.
    micro_batch_size
        b: samples of a micro-batch.
    system
        Peak rate and memory bandwidth of a device, and the bandwidth between devices that share a layer; by default the
        preset :data:`SYSTEM`.

    Raises
    ------
    InputError
        If a number is below 1, or *heads* does not divide *hidden*.

    Notes
    -----
    A layer has 12h² + 13h parameters and takes 24bsh² + 4bs²h FLOPs forward (Narayanan et al. 2021, "Efficient
    Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", appendix). A pass takes what its FLOPs take
    at peak, or its parameters and activations at the memory's bandwidth, whichever is longer. With t devices, matrices
    and heads are split; each pass exchanges the activations among them twice, 2 · (t-1)/t of their size each time (a
    ring). Of each micro-batch a layer keeps bsh · (10 + 24/t + 5as/(ht)) bytes, or its input of 2bsh with
    recomputation, which makes the rest again (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
    Transformer Models", section 4). The head's logits are of 32 bits. :data:`STATE_BYTES` and what is made again for
    one micro-batch are there all the time, as in Tarnawski et al. (2021), section 3.5. Real times are longer than those
    of peak rates.
    """
    sizes = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "sequence": sequence,
        "vocabulary": vocabulary,
        "micro_batch_size": micro_batch_size,
    }
    for what, value in sizes.items():
        check_least(f"for {what}", value, 1)
    if layers > _MOST_LAYERS:
        raise InputError(f"{layers:,} layers are too many", remedy=f"stay below {_MOST_LAYERS:,}")
    if hidden % heads:
        raise InputError(f"{heads} heads cannot share a hidden size of {hidden}", remedy="choose a divisor")
    system = system or load_device(SYSTEM)
    shape = _Shape(hidden, heads, sequence, vocabulary, micro_batch_size, system)
    kinds = [
        ("embedding", shape.embedding),
        *((f"layer {i}", shape.layer) for i in range(layers)),
        ("head", shape.head),
    ]
    names = [name for name, _ in kinds]
    return TrainingModel(
        f"gpt-l{layers}-h{hidden}-a{heads}-s{sequence}-b{micro_batch_size}",
        "ps",
        [
            Layer(name, name, shape.configurations(parts, names[max(i - 1, 0) : i], names[i + 1 : i + 2]))
            for i, (name, parts) in enumerate(kinds)
        ],
        [Edge(source, target, shape.tensor_bytes) for source, target in pairwise(names)],
        metadata={"generator": "transformer-training", **sizes, "system": system.name},
    )


@dataclass(frozen=True)
class _Parts:
    """What one of t devices does for a layer: elements of parameters, and FLOPs and bytes of a forward pass.

    *exchanges* is how many times a forward pass exchanges the layer's output among the t devices; *kept* are bytes of
    activations. Layers that may compute them again say so.
    """

    parameters: int
    flops: int
    kept: int
    exchanges: int
    recomputable: bool = False


@dataclass(frozen=True)
class _Shape:
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    micro_batch_size: int
    system: Device

    @property
    def tokens(self) -> int:
        return self.micro_batch_size * self.sequence

    @property
    def tensor_bytes(self) -> int:
        return self.tokens * self.hidden * ELEMENT_BYTES

    def embedding(self, t: int) -> _Parts:
        positions = self.sequence * self.hidden
        return _Parts(-(-self.vocabulary // t) * self.hidden + positions, 0, self.tensor_bytes, 1)

    def layer(self, t: int) -> _Parts:
        h, s, tokens = self.hidden, self.sequence, self.tokens
        split = 12 * h * h + 7 * h  # biases behind split outputs are split, those behind sums and the norms are not
        kept = 10 * tokens * h + -(-(24 * tokens * h + 5 * self.heads * s * tokens) // t)
        return _Parts(-(-split // t) + 6 * h, -(-(24 * h + 4 * s) * tokens * h // t), kept, 2, recomputable=True)

    def head(self, t: int) -> _Parts:
        rows = -(-self.vocabulary // t)
        logits = 2 * ELEMENT_BYTES * self.tokens * rows
        return _Parts(rows * self.hidden, 2 * self.tokens * self.hidden * rows, 2 * self.tensor_bytes + logits, 1)

    def configurations(
        self, parts: Callable[[int], _Parts], before: Sequence[LayerId], after: Sequence[LayerId]
    ) -> dict[int, list[Configuration]]:
        found = {}
        for t in DEGREES:
            if self.heads % t:
                continue
            one = parts(t)
            found[t] = [self._configuration("vanilla", one, t, before, after)]
            if one.recomputable:
                found[t].append(self._configuration("recompute", one, t, before, after, again=True))
        return found

    def _configuration(
        self,
        name: str,
        parts: _Parts,
        t: int,
        before: Sequence[LayerId],
        after: Sequence[LayerId],
        *,
        again: bool = False,
    ) -> Configuration:
        passes = 1 + BACKWARD + again
        traffic = parts.parameters * ELEMENT_BYTES + parts.kept
        exchanged = -(-2 * (t - 1) * self.tensor_bytes // t)
        forward_and_backward = (2 + again) * parts.exchanges
        stays = parts.kept - self.tensor_bytes if again else 0
        return Configuration(
            id=name,
            time_per_sample=passes * self.system.modelled_work_ps(parts.flops, traffic)
            + forward_and_backward * self.system.link.streaming_ps(exchanged),
            parameter_bytes=parts.parameters * ELEMENT_BYTES,
            memory_a=self.tensor_bytes if again else parts.kept,
            memory_b=parts.parameters * STATE_BYTES + stays,
            forward_sync_bytes=dict.fromkeys(before, self.tensor_bytes) if t > 1 else {},
            backward_sync_bytes=dict.fromkeys(after, self.tensor_bytes) if t > 1 else {},
            recomputes=again,
        )
