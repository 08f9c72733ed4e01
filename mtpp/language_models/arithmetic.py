"""FLOPs of a layer and bytes that it moves, at prefill and at decode; a multiply-add is two FLOPs.

Norms, softmax, rotations and activations are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mtpp.language_models.cache import DEFAULT_TYPE, cache_bytes
from mtpp.language_models.language_model import DecoderLayer, LanguageModel
from mtpp.language_models.layer_work import Attention

_EXACT = 2**4096


@dataclass(frozen=True)
class Step:
    """Work of one step of a part of a model.

    Attributes
    ----------
    projections
        FLOPs of projections, those of experts included.
    attention
        FLOPs of products of queries, keys and values.
    expansion
        FLOPs that expand a latent cache to keys and values, where they are not among the projections.
    recurrence
        FLOPs of recurrences and convolutions.
    weight_bytes
        Bytes of weights that are read; of experts the expected share.
    read_bytes, written_bytes
        Bytes of caches and states.
    """

    projections: int = 0
    attention: int = 0
    expansion: int = 0
    recurrence: int = 0
    weight_bytes: Fraction = Fraction(0)
    read_bytes: int = 0
    written_bytes: int = 0

    @property
    def flops(self) -> int:
        """FLOPs of all kinds."""
        return self.projections + self.attention + self.expansion + self.recurrence

    @property
    def bytes(self) -> Fraction:
        """Bytes of weights, caches and states."""
        return self.weight_bytes + self.read_bytes + self.written_bytes


def prefill(
    layer: DecoderLayer,
    tokens: int,
    *,
    sequences: int = 1,
    past: int = 0,
    source: int = 0,
    square: bool = False,
    kv_dtype: str = DEFAULT_TYPE,
) -> Step | None:
    """Return the work of a layer on a prompt, or on a chunk of one.

    Parameters
    ----------
    layer
        A layer of an encoder works on the tokens of the source, each of which attends to all.
    tokens
        Tokens of each sequence in this step.
    past
        Tokens that are in the cache before.
    source
        Tokens of the encoder; keys and values of them are computed in the step that has no past.
    square
        Whether pairs of tokens count as a full square, as kernels without masks compute them.
    kv_dtype
        Type of an element of the cache.

    Returns
    -------
    Step or None
        None where the sizes of the layer are not known.
    """
    work, cache = layer.work, layer.cache
    if work is None:
        return None
    if layer.part == "encoder":
        tokens, past, square = source, 0, True
    projections, attention, read = 2 * tokens * work.of_token, 0, 0
    written = cache_bytes(tokens * cache.per_token, kv_dtype)
    if work.attention is not None:
        one = work.attention
        pairs = tokens * (past + tokens) if square else attended(tokens, past, one.window)
        attention += _products(one) * pairs
        read += cache_bytes(_within(past, one.window) * one.cached, kv_dtype)
    expansion = 2 * past * work.attention.expansion if work.attention is not None else 0
    if work.cross is not None:
        attention += _products(work.cross) * tokens * source
        if past:
            read += cache_bytes(source * work.cross.cached, kv_dtype)
        else:
            projections += 2 * source * work.source
            written += cache_bytes(source * cache.per_source_token, kv_dtype)
    return Step(
        sequences * projections,
        sequences * attention,
        sequences * expansion,
        sequences * tokens * work.recurrence,
        read_weights(layer, sequences * tokens),
        sequences * (read + cache.bytes_of_states),
        sequences * (written + cache.bytes_of_states),
    )


def decode(
    layer: DecoderLayer,
    sequences: int,
    context: int,
    *,
    source: int = 0,
    absorbed: bool = True,
    kv_dtype: str = DEFAULT_TYPE,
) -> Step | None:
    """Return the work of a layer on one further token of each sequence; an encoder has none.

    Parameters
    ----------
    context
        Tokens in the cache, the new one included.
    source
        Tokens of the encoder.
    absorbed
        Whether a latent cache is attended to as it is; otherwise it is expanded to keys and values at every step.
    kv_dtype
        Type of an element of the cache.

    Returns
    -------
    Step or None
        None where the sizes of the layer are not known.
    """
    work, cache = layer.work, layer.cache
    if layer.part == "encoder":
        return Step()
    if work is None:
        return None
    projections, attention, expansion, read = work.of_token, 0, 0, 0
    if work.attention is not None:
        one = work.attention
        seen = _within(context, one.window)
        read += cache_bytes(seen * one.cached, kv_dtype)
        if one.latent and absorbed:
            attention += 2 * one.heads * (one.cached + one.latent) * seen
        else:
            attention += _products(one) * seen
            projections -= one.expansion
            expansion = 2 * one.expansion * seen
    if work.cross is not None:
        attention += _products(work.cross) * source
        read += cache_bytes(source * work.cross.cached, kv_dtype)
    # projections of the source's keys and values stay unread
    unread = Fraction(work.source * layer.bytes, work.weights) if work.source else 0
    return Step(
        2 * sequences * projections,
        sequences * attention,
        sequences * expansion,
        sequences * work.recurrence,
        read_weights(layer, sequences) - unread,
        sequences * (read + cache.bytes_of_states),
        sequences * (cache_bytes(cache.per_token, kv_dtype) + cache.bytes_of_states),
    )


def head(model: LanguageModel, rows: int) -> Step:
    """Return the work of the head on rows of logits; at prefill each sequence needs one."""
    weights = max(model.head.weights or model.embedding.weights, key=lambda weight: weight.parameters, default=None)
    if weights is None:
        return Step()
    return Step(2 * rows * weights.parameters, weight_bytes=Fraction(weights.bytes))


def embedding(model: LanguageModel, tokens: int) -> Step:
    """Return the work of the embedding: a row is read for each token."""
    weights = max(model.embedding.weights, key=lambda weight: weight.parameters, default=None)
    return Step() if weights is None else Step(weight_bytes=Fraction(tokens * weights.bytes, weights.shape[0]))


def attended(tokens: int, past: int = 0, window: int | None = None) -> int:
    """Return the pairs of tokens and earlier ones, themselves included, of a chunk behind a past."""
    return _pairs(past + tokens, window) - _pairs(past, window)


@lru_cache(maxsize=1024)
def distinct_experts(count: int, chosen: int, tokens: int) -> Fraction:
    """Return the expected number of experts that tokens choose, uniformly and independently.

    Real choices are skewed: an upper estimate of the mean. Exact while the denominator has at most 4,096 bits, off by
    less than 2**-4000 beyond.
    """
    power, base = Fraction(1), 1 - Fraction(chosen, count)
    while tokens:
        if tokens % 2:
            power = _short(power * base)
        base, tokens = _short(base * base), tokens // 2
    return count * (1 - power)


def read_weights(layer: DecoderLayer, tokens: int) -> Fraction:
    """Return the bytes of weights that a step on tokens reads: all once, of experts the expected ones."""
    if layer.work is None or layer.work.experts is None:
        return Fraction(layer.bytes)
    experts = layer.work.experts
    share = distinct_experts(experts.count, experts.chosen, tokens) / experts.count
    return layer.bytes - layer.expert_bytes * (1 - share)


def _pairs(tokens: int, window: int | None) -> int:
    inner = _within(tokens, window)
    return inner * (inner + 1) // 2 + (tokens - inner) * inner


def _within(tokens: int, window: int | None) -> int:
    return tokens if window is None else min(tokens, window)


def _products(attention: Attention) -> int:
    """FLOPs of a pair of tokens, keys and values expanded."""
    return 2 * attention.heads * (attention.key_width + attention.value_width)


def _short(number: Fraction) -> Fraction:
    return number if number.denominator <= _EXACT else Fraction(number.numerator * _EXACT // number.denominator, _EXACT)
