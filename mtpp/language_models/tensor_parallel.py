"""Tensor parallelism: the share of a language model that each GPU of a stage holds and computes, and what it sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, prod

from mtpp.language_models.cache import LayerCache
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part, Weight
from mtpp.language_models.layer_work import Attention, LayerWork
from mtpp.language_models.tensor_degrees import Undividable, possible_degrees, refusal
from mtpp.language_models.tensor_division import (
    Block,
    Division,
    Rule,
    holds_experts,
    is_known,
    rule_of,
    summed_block,
    within,
)
from mtpp.machine.tensor_group import all_reduced_bytes

_ONE = Fraction(1)


def divided(model: LanguageModel, degree: int) -> LanguageModel:
    """Return the share of a model that each of so many GPUs holds: weights, caches and arithmetic.

    Parameters
    ----------
    degree
        1 returns the model as it is.

    Raises
    ------
    Undividable
        If the degree does not divide heads, groups, widths of networks or blocks of scales, or sizes of a layer are not
        known.

    Notes
    -----
    O(tensors of the model). Bytes of each weight are rounded up: all shares together are never less than the whole.
    """
    if degree == 1:
        return model
    reason = refusal(model, degree)
    if reason is not None:
        listed = ", ".join(map(str, possible_degrees(model)))
        raise Undividable(reason, parameter="tensor_parallel", remedy=f"use one of {listed}")
    shares = _Shares(degree, model.hidden)
    return replace(
        model,
        layers=tuple(map(shares.layer, model.layers)),
        mtp=tuple(map(shares.layer, model.mtp)),
        embedding=_vocabulary(model.embedding, degree),
        head=_vocabulary(model.head, degree),
        other=_other(model.other, degree),
        types={},
    )


def unknown_matrices(model: LanguageModel) -> list[str]:
    """Return the names of matrices that are whole on each GPU because the table of divisions does not have them."""
    return [
        weight.name
        for layer in model.layers
        for weight in layer.weights
        if len(weight.shape) > 1 and weight.parameters and not is_known(within(layer, weight))
    ]


def all_reduces(layer: DecoderLayer) -> int:
    """Return the number of sums over the GPUs in a layer: one for each block that ends with a divided projection.

    Attention, attention to an encoder, a recurrence and a feed-forward network are blocks; experts, shared ones
    included, are one.
    """
    if layer.work is None:
        return 0
    path, at = layer.name, len(layer.name) + 1
    names = {
        weight.name[at:] if weight.name.startswith(path) else weight.name
        for weight in layer.weights
        if len(weight.shape) > 1
    }
    return len({block for name in names if (block := summed_block(name))})


def sent_in_layer(layer: DecoderLayer, hidden_bytes: int, degree: int) -> Fraction:
    """Return the bytes that each GPU sends in a layer, given those of the hidden states of a step."""
    return all_reduces(layer) * all_reduced_bytes(hidden_bytes, degree)


@dataclass
class _Fractions:
    """Share of each GPU in the weights, the cache and the heads of a layer."""

    work: LayerWork
    held: LayerCache
    degree: int
    hidden: int

    def of(self, rule: Rule) -> Fraction:
        """Return the fraction of a weight."""
        attention = self.work.cross if rule.block is Block.CROSS else self.work.attention
        if rule.division is Division.KEYS:
            return self.keys(attention)
        if rule.division is Division.FUSED and attention is not None:
            queries = attention.heads * attention.key_width
            keys, share = self.keys(attention), Fraction(1, self.degree)
            return (queries * share + attention.cached * keys) / (queries + attention.cached)
        if rule.division is Division.GROUPED:
            return self._of_channels(projected=rule.multiplied)
        return Fraction(1, self.degree)

    def keys(self, attention: Attention | None) -> Fraction:
        """Return the fraction of keys and values: one head at least; of a recurrence as of all else."""
        if attention is None or attention.latent:
            return Fraction(1, self.degree)
        return Fraction(max(1, attention.kv_heads // self.degree), attention.kv_heads)

    def _of_channels(self, *, projected: bool) -> Fraction:
        """Return the fraction of the channels of a convolution, or of the projection to them, gates and steps."""
        recurrent = self.work.recurrent
        if recurrent is None or not recurrent.groups or not self.held.columns:
            return Fraction(1, self.degree)
        grouped = recurrent.groups * recurrent.group_width
        channels = self.held.convolution // self.held.columns
        rows = 2 * channels - grouped + recurrent.heads if projected else channels
        own = max(1, recurrent.groups // self.degree) * recurrent.group_width
        return (Fraction(rows - grouped, self.degree) + own) / rows

    def heads(self, attention: Attention | None) -> Attention | None:
        """Return the attention of one GPU; a latent cache is whole on each."""
        if attention is None:
            return None
        cached = attention.cached if attention.latent else ceil(attention.cached * self.keys(attention))
        return replace(attention, heads=attention.heads // self.degree, cached=cached)

    def arithmetic(self, projections: int, source: int) -> LayerWork:
        """Return the arithmetic of one GPU, given the weights that the others have of projections."""
        work, degree = self.work, self.degree
        return replace(
            work,
            projections=max(work.projections - projections, -(-work.projections // degree)),
            source=max(work.source - source, -(-work.source // degree)),
            experts=work.experts and replace(work.experts, weights=-(-work.experts.weights // degree)),
            attention=self.heads(work.attention),
            cross=self.heads(work.cross),
            recurrence=-(-work.recurrence // degree),
        )

    def cache(self) -> LayerCache:
        """Return the cache of one GPU."""
        held, attention = self.held, self.work.attention
        latent = attention is not None and bool(attention.latent)
        return replace(
            held,
            per_token=ceil(held.per_token * (_ONE if latent else self.keys(attention))),
            per_source_token=ceil(held.per_source_token * self.keys(self.work.cross)),
            state=ceil(Fraction(held.state, self.degree)),
            convolution=ceil(held.convolution * self._of_channels(projected=False)),
        )


class _Shares:
    """Shares of layers; weights of equal names and sizes, in layers of equal sizes, are looked at once."""

    def __init__(self, degree: int, hidden: int) -> None:
        self._degree, self._hidden = degree, hidden
        self._of_kind: dict[tuple[LayerWork, LayerCache], tuple[_Fractions, dict[_Key, tuple[Weight, str]]]] = {}

    def layer(self, layer: DecoderLayer) -> DecoderLayer:
        """Return the share of a layer; one for further tokens whose sizes are not known is whole on each GPU."""
        if layer.work is None:
            return layer
        kind = layer.work, layer.cache
        if kind not in self._of_kind:
            self._of_kind[kind] = _Fractions(layer.work, layer.cache, self._degree, self._hidden), {}
        fractions, known = self._of_kind[kind]
        weights: list[Weight] = []
        removed = dict.fromkeys(_USES, 0)
        expert_bytes = 0
        for weight in layer.weights:
            key = within(layer, weight), weight.shape, weight.parameters, weight.bytes
            if key not in known:
                known[key] = _weight(weight, key[0], fractions), _use(weight, key[0], layer.work)
            share, use = known[key]
            weights.append(Weight(weight.name, share.shape, share.parameters, share.bytes))
            removed[use] += weight.parameters - share.parameters
            if use == _EXPERT:
                expert_bytes += share.bytes
        work = fractions.arithmetic(removed[_PROJECTION], removed[_SOURCE])
        return replace(layer, weights=tuple(weights), cache=fractions.cache(), work=work, expert_bytes=expert_bytes)


_Key = tuple[str, tuple[int, ...], int, int]

_EXPERT, _PROJECTION, _SOURCE, _NONE = _USES = ("expert", "projection", "projection of the source", "none")


def _use(weight: Weight, name: str, work: LayerWork) -> str:
    """Return the kind of arithmetic that a weight takes part in."""
    rule = rule_of(name)
    if work.experts is not None and holds_experts(name, weight.shape, work.experts.count):
        return _EXPERT
    if not rule.multiplied or len(weight.shape) < 2:
        return _NONE
    return _SOURCE if rule.division is Division.KEYS and rule.block is Block.CROSS else _PROJECTION


_ALONG_INPUTS = ("absmax", "nested_absmax", "g_idx", "weight_g_idx")
"""Vectors beside a row-parallel projection that are divided with its inputs."""


def _weight(weight: Weight, name: str, fractions: _Fractions) -> Weight:
    """Return the share of a weight; a scale of a whole tensor, or of its outputs where inputs are divided, is whole."""
    rule, shape = rule_of(name), weight.shape
    if rule.division is Division.COPIED or prod(shape) <= 1:
        return weight
    if rule.division is Division.ROWS and not weight.parameters:
        vector = len(shape) == 1 and name.rpartition(".")[2] not in _ALONG_INPUTS
        if vector or (len(shape) > 1 and shape[-1] == 1):
            return weight
    if rule.division is Division.VOCABULARY:
        return _of_rows(weight, fractions.degree)
    return _scaled(weight, _axis(shape, rule, fractions.hidden), fractions.of(rule))


def _axis(shape: Sequence[int], rule: Rule, hidden: int) -> int:
    """Return the axis that is divided; some checkpoints have inputs before outputs, told by the width of a token."""
    first = 1 if len(shape) > 2 and rule.block is Block.NETWORK else 0
    if len(shape) < first + 2:
        return len(shape) - 1
    outputs, inputs = first, len(shape) - 1 if len(shape) <= first + 2 else first + 1
    by_inputs = rule.division is Division.ROWS
    divided_axis, other = (inputs, outputs) if by_inputs else (outputs, inputs)
    return other if shape[divided_axis] == hidden != shape[other] else divided_axis


def _scaled(weight: Weight, axis: int, fraction: Fraction) -> Weight:
    shape = (*weight.shape[:axis], ceil(weight.shape[axis] * fraction), *weight.shape[axis + 1 :])
    above, below = fraction.numerator, fraction.denominator
    return Weight(weight.name, shape, -(-weight.parameters * above // below), -(-weight.bytes * above // below))


def _of_rows(weight: Weight, degree: int) -> Weight:
    rows = weight.shape[0]
    return _scaled(weight, 0, Fraction(-(-rows // degree), rows))


def _vocabulary(part: Part, degree: int) -> Part:
    """Return the share of an embedding or a head: so many rows, of biases and scales as well."""
    rows = max((weight.shape[0] for weight in part.weights if weight.shape), default=0)
    return Part(
        tuple(
            _of_rows(weight, degree) if weight.shape and weight.shape[0] == rows > 1 else weight
            for weight in part.weights
        )
    )


def _other(part: Part, degree: int) -> Part:
    """Return weights beside the layers: tables of a vocabulary are divided, towers and norms are whole on each GPU."""
    return Part(
        tuple(
            _of_rows(weight, degree)
            if len(weight.shape) == 2 and rule_of(weight.name).division is Division.VOCABULARY
            else weight
            for weight in part.weights
        )
    )
