"""Memory of the layers of a language model as a function of context and sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from mtpp.errors import InputError
from mtpp.language_models.cache import TYPE_BITS, LayerCache
from mtpp.language_models.language_model import LanguageModel
from mtpp.language_models.layer_graph import LayerGraph, layer_graph
from mtpp.language_models.serving_load import DECODE, PREFILL, ServingLoad

NO_CACHE = LayerCache()


class Shared(NamedTuple):
    """Weight that several ops read, by their numbers: a stage holds it once."""

    bytes: int
    readers: tuple[int, ...]


class Passing(NamedTuple):
    """Tensor of working memory, or tensors inside one op.

    Attributes
    ----------
    per_token, per_sequence
        Bytes for each token of a step, and for each of its sequences.
    maker
        Op that makes it; -1 for tensors inside an op.
    readers
        Ascending.
    """

    per_token: int
    per_sequence: int
    maker: int
    readers: tuple[int, ...]


@dataclass(frozen=True)
class LayerMemory:
    """Memory of a chain of layers on one kind of stages.

    Attributes
    ----------
    weights
        Bytes of each op that no other one reads.
    caches
        Of each op.
    kv_dtype
        Type of an element of the cache.
    whole_prompts
        Whether a step works on all tokens of a sequence, as in a prefill, or on one.
    """

    weights: tuple[int, ...]
    caches: tuple[LayerCache, ...]
    shared: tuple[Shared, ...]
    passing: tuple[Passing, ...]
    kv_dtype: str
    whole_prompts: bool

    def cache_bytes(self, context: int) -> list[int]:
        """Return the bytes of caches and states of one sequence, of each op; an encoder reads as many tokens."""
        return [cache.bytes(context, self.kv_dtype, context) for cache in self.caches]

    def passing_bytes(self, context: int, batch: int) -> list[int]:
        """Return the bytes of each tensor of working memory in a step on *batch* sequences."""
        tokens = context if self.whole_prompts else 1
        return [batch * (tokens * one.per_token + one.per_sequence) for one in self.passing]

    def document(self, degree: int) -> dict[str, Any]:
        """Return the columns that a plan's ``capacity`` has of stages on so many GPUs."""
        return {
            "degree": degree,
            "phase": PREFILL if self.whole_prompts else DECODE,
            "weights": list(self.weights),
            "caches": [[one.per_token, one.window, one.per_source_token, one.bytes_of_states] for one in self.caches],
            "bits_of_32_elements": int(TYPE_BITS[self.kv_dtype] * 32),
            "shared": [[one.bytes, list(one.readers)] for one in self.shared],
            "passing": [[one.per_token, one.per_sequence, one.maker, list(one.readers)] for one in self.passing],
        }


def layer_memory(model: LanguageModel, load: ServingLoad) -> LayerMemory:
    """Return the memory of a model's layers, in the order of :func:`~mtpp.language_models.layer_graph.layer_graph`.

    Parameters
    ----------
    load
        Its context and batch do not matter.

    Raises
    ------
    InputError
        If the model's caches are not known.
    """
    if not model.caches_known:
        raise InputError("caches of this model are not known: its names of weights alone do not tell them")
    one = layer_graph(model, replace(load, context=1, batch=1))
    two = layer_graph(model, replace(load, context=2, batch=1)) if load.phase == PREFILL else one
    number = {op.name: i for i, op in enumerate(one.ops)}
    cache_of = {layer.name: layer.cache for layer in chain(one.model.layers, one.model.mtp) if layer.part != "encoder"}
    first, second = _passing(one, number), _passing(two, number)
    passing = []
    for (size, maker, readers), (larger, *_) in zip(first, second, strict=True):
        passing.append(Passing(larger - size, 2 * size - larger, maker, readers))
    memory = LayerMemory(
        tuple(op.param_bytes for op in one.ops),
        tuple(cache_of.get(op.name, NO_CACHE) for op in one.ops),
        tuple(Shared(row.bytes, tuple(sorted(number[name] for name in row.readers))) for row in one.weights),
        tuple(row for row in passing if row.per_token or row.per_sequence),
        load.kv_dtype,
        load.phase == PREFILL,
    )
    assert memory.cache_bytes(1) == [op.cache_bytes for op in one.ops]
    return memory


def _passing(graph: LayerGraph, number: dict[str, int]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return size, maker and readers of each tensor of working memory."""
    found = [
        (row.bytes or 0, number[row.producer], tuple(sorted(number[name] for name in row.consumers)))
        for row in graph.tensors
    ]
    return found + [(op.activation_bytes, -1, (number[op.name],)) for op in graph.ops]
