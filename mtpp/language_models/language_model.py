"""A language model: its layers, the parts around them, and disagreements of its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mtpp.language_models.cache import LayerCache
from mtpp.language_models.layer_work import LayerWork

_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim", "model_dim", "embedding_length")
"""Keys of configurations for the width of hidden states."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor of a model.

    Attributes
    ----------
    shape
        As stored; of packed weights the packed one.
    parameters
        Numbers that it stands for: more than its elements where they are packed, none of a buffer or a scale.
    bytes
        As stored.
    """

    name: str
    shape: tuple[int, ...]
    parameters: int
    bytes: int


@dataclass(frozen=True)
class Part:
    """Weights that stay together."""

    weights: Sequence[Weight] = ()

    @property
    def parameters(self) -> int:
        """Number of parameters, buffers left out."""
        return sum(weight.parameters for weight in self.weights)

    @property
    def bytes(self) -> int:
        """Bytes as stored, buffers and scales included."""
        return sum(weight.bytes for weight in self.weights)


@dataclass(frozen=True)
class DecoderLayer(Part):
    """A layer with its weights and its cache.

    Attributes
    ----------
    name
        Path of its module, such as ``model.layers.0``.
    part
        ``decoder``, ``encoder``, ``mtp``, or ``beyond`` the number of the configuration.
    kind
        ``full``, ``sliding``, ``mla``, ``mamba2`` and so on; None where nothing is known.
    work
        Sizes that its arithmetic depends on; None where they are not known.
    expert_bytes
        Bytes of experts that tokens choose, as stored; shared ones are not among them.
    """

    name: str = ""
    part: str = "decoder"
    kind: str | None = None
    cache: LayerCache = field(default_factory=LayerCache)
    work: LayerWork | None = None
    expert_bytes: int = 0


@dataclass(frozen=True)
class LanguageModel:
    """A model as its files and its configuration describe it.

    Attributes
    ----------
    source
        ``safetensors``, ``gguf`` or ``configuration``: the origin of the bytes.
    layers
        In order, layers of an encoder first.
    head
        Of a tied head nothing is stored: its weights are those of the embedding.
    mtp
        Layers that predict further tokens, and layers beyond the number of the configuration.
    types
        Bytes by type as stored.
    sizes
        Keys of the configuration by the names that the table of architectures has for them.
    notes
        Disagreements between files, configuration and convention, and assumptions.
    caches_known
        Whether caches of layers are known; names of weights alone do not tell them.
    """

    name: str
    model_type: str
    source: str
    layers: Sequence[DecoderLayer]
    embedding: Part
    head: Part
    other: Part
    tied: bool
    mtp: Sequence[DecoderLayer] = ()
    files: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    caches_known: bool = True

    @property
    def parts(self) -> list[Part]:
        """All parts, each weight once."""
        return [self.embedding, *self.layers, self.other, self.head, *self.mtp]

    @property
    def hidden(self) -> int:
        """Width of hidden states: by the configuration, or else of a row of the embedding; 0 without either."""
        named = (self.sizes.get(key) for key in _HIDDEN)
        given = next((size for size in named if isinstance(size, int) and size > 0), None)
        if given is not None:
            return given
        table = max(self.embedding.weights, key=lambda weight: weight.parameters, default=None)
        return 0 if table is None or not table.shape[0] else table.parameters // table.shape[0]

    @property
    def encoder_layers(self) -> list[DecoderLayer]:
        """Layers of an encoder in order."""
        return [layer for layer in self.layers if layer.part == "encoder"]

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """All other layers in order."""
        return [layer for layer in self.layers if layer.part != "encoder"]

    @property
    def head_parameters(self) -> int:
        """Parameters of the head; of a tied one those of the embedding, and of its bias."""
        own, shared = self.head.parameters, self.embedding.parameters
        return own + shared if self.tied and own < shared else own

    @property
    def parameters(self) -> int:
        """Parameters without those of :attr:`mtp`; tied ones count once."""
        return sum(part.parameters for part in self.parts[: len(self.layers) + 3])

    @property
    def bytes(self) -> int:
        """Bytes of everything."""
        return sum(part.bytes for part in self.parts)
