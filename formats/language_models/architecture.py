"""An architecture: kinds of layers, tensors of each, and the tensors around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.mixers import Mixer
from mtpp.formats.language_models.patterns import LISTED, WINDOWS, Pattern, everywhere
from mtpp.formats.language_models.tensors import (
    Block,
    ExpertStack,
    Projection,
    Shapes,
    SourceProjection,
    linear,
    norm,
    norms_of,
)
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.layer_work import Experts, LayerWork

_ATTENTION = ("full", "shared", "mla")
_LAYER_NORMS = norms_of("input_layernorm", "post_attention_layernorm")
_FINAL_NORM = norms_of("norm")
_ALL_FULL = everywhere()


@dataclass(frozen=True)
class Architecture:
    """A row of the table of architectures.

    Attributes
    ----------
    name
        Its ``model_type``.
    mixers
        Attention or recurrence by kind of layer. Kinds with a window take that of ``full``.
    feed_forward, norms
        The rest of a layer.
    pattern
        Kind of each layer where ``layer_types`` does not list them.
    also
        Further ``model_type``s that it reads.
    gguf
        Names in GGUF files.
    keys
        Names of keys by their canonical names, where those of the architecture are its own.
    defaults
        Values of keys that configurations leave out.
    derived
        Values that follow from several keys.
    root, stack
        Path of the modules, and of the layers within.
    embedding, head, head_bias
        Names of both, and whether the head has a bias.
    rest
        Tensors beside embedding, layers and head.
    tied
        Whether head and embedding are one tensor unless the configuration says otherwise.
    encoder
        Layers of an encoder.
    """

    name: str
    mixers: Mapping[str, Mixer]
    feed_forward: Block
    norms: Block = _LAYER_NORMS
    pattern: Pattern = _ALL_FULL
    also: tuple[str, ...] = ()
    gguf: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Configuration], Any]] = field(default_factory=dict)
    root: str = "model"
    stack: str = "layers"
    embedding: str = "embed_tokens"
    head: str = "lm_head"
    head_bias: bool = False
    rest: Block = _FINAL_NORM
    tied: bool = False
    encoder: Architecture | None = None

    def configured(self, values: Mapping[str, Any], source: str) -> Configuration:
        """Return the configuration that a file's keys stand for."""
        plain = Configuration(values, source, self.keys, self.defaults)
        given = {self.keys.get(key, key): derive(plain) for key, derive in self.derived.items()}
        return Configuration({**values, **given}, source, self.keys, self.defaults)

    def kinds(self, c: Configuration) -> list[str]:
        """Return the kind of each layer; one with a window that the configuration leaves void is full."""
        found = self.own_kinds(c)
        shared = c.whole("num_kv_shared_layers") if "shared" in self.mixers else 0
        if shared >= len(found) > 0:
            problem = f"num_kv_shared_layers: {shared:,} layers read caches of others, and there are {len(found):,}"
            raise InputError(problem, source=c.source, remedy="correct it")
        return found[: len(found) - shared] + ["shared"] * shared

    def own_kinds(self, c: Configuration) -> list[str]:
        """Return the kind of each layer, whether it keeps a cache of its own or not."""
        listed = c.texts("layer_types", c.layers)
        found = []
        for layer in range(c.layers):
            word = self.pattern(c, layer) if listed is None else listed[layer]
            kind = self._known(LISTED.get(word, word), c)
            found.append("full" if kind in WINDOWS and WINDOWS[kind] not in c else kind)
        return found

    def _known(self, kind: str, c: Configuration) -> str:
        if kind in self.mixers or (kind in WINDOWS and "full" in self.mixers):
            return kind
        recurrent = next((name for name in self.mixers if name not in _ATTENTION), None)
        if kind == "recurrent" and recurrent is not None:
            return recurrent
        if kind == "full":
            return next(iter(self.mixers))
        raise InputError(f"the kind {kind[:40]!r} is unknown", source=c.source, where="layer_types")

    def layer(self, c: Configuration, layer: int, kind: str) -> Shapes:
        """Return the tensors of a layer."""
        shapes = self._mixer(kind).tensors(c, layer)
        shapes |= self.feed_forward(c, layer) | self.norms(c, layer)
        stacks = [shape for shape in shapes.values() if isinstance(shape, ExpertStack)]
        chosen = c.whole("num_experts_per_tok")
        if stacks and chosen > stacks[0][0] and "num_experts_per_tok" not in c.assumed:
            problem = f"a token has {chosen:,} of {stacks[0][0]:,} experts"
            raise InputError(problem, source=c.source, where="num_experts_per_tok", remedy="correct it")
        return shapes

    def cache(self, c: Configuration, layer: int, kind: str) -> LayerCache:
        """Return the cache of a layer."""
        return replace(self._mixer(kind).cache(c, layer), window=self._window(c, kind))

    def work(self, c: Configuration, layer: int, kind: str, own_kind: str, shapes: Shapes) -> LayerWork:
        """Return the arithmetic of a layer.

        Parameters
        ----------
        own_kind
            Its kind if it kept a cache: the window of a layer that reads another's is that of this kind.
        shapes
            Its tensors.
        """
        work = self._mixer(kind).work(c, layer)
        if work.attention is not None:
            work = replace(work, attention=replace(work.attention, window=self._window(c, own_kind)))
        listed = shapes.values()
        work = replace(work, projections=_weights(listed, Projection), source=_weights(listed, SourceProjection))
        stacks = [shape for shape in listed if isinstance(shape, ExpertStack)]
        if not stacks:
            return work
        count, chosen = stacks[0][0], c.size("num_experts_per_tok")
        return replace(work, experts=Experts(count, min(count, chosen), _weights(stacks, ExpertStack) // count))

    def _window(self, c: Configuration, kind: str) -> int | None:
        return c.size(WINDOWS[kind]) if kind in WINDOWS else None

    def _mixer(self, kind: str) -> Mixer:
        return self.mixers[kind] if kind in self.mixers else self.mixers["full"]

    def extra_of_mtp(self, c: Configuration) -> Shapes:
        """Return the tensors that a layer for a further token has besides a layer's: projection and norms."""
        shapes = linear("eh_proj", c.hidden, 2 * c.hidden)
        for name in ("enorm", "hnorm", "shared_head.norm"):
            shapes |= norm(name, c.hidden)
        return shapes


def _weights(shapes: Iterable[tuple[int, ...]], kind: type) -> int:
    """Count the elements of shapes of a kind."""
    return sum(prod(shape) for shape in shapes if isinstance(shape, kind))
