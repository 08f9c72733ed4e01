"""Degrees of tensor parallelism that a language model allows: numbers that a degree has to divide, as in engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mtpp.errors import InputError
from mtpp.language_models.language_model import DecoderLayer, LanguageModel
from mtpp.language_models.layer_work import LayerWork
from mtpp.language_models.tensor_division import Block, Division, rule_of, within
from mtpp.machine.tensor_group import MOST_DEGREE


class Undividable(InputError):
    """A number of GPUs over which a model is not divided (exit code 2)."""


def possible_degrees(model: LanguageModel, degrees: Sequence[int] | None = None) -> list[int]:
    """Return the degrees that divide a model, of those given, or else of all up to its number of heads."""
    sizes = _sizes(model)
    if degrees is None:
        heads = min((size.number for size in sizes if size.kind in _HEADS), default=1)
        degrees = range(1, min(heads, MOST_DEGREE) + 1)
    return [degree for degree in degrees if _refusal(sizes, degree) is None]


def refusal(model: LanguageModel, degree: int) -> str | None:
    """Return the reason for which engines do not divide a model over so many GPUs; None if they do."""
    return _refusal(_sizes(model), degree)


class _Size(NamedTuple):
    number: int
    kind: str


_ATTENTION, _VALUES, _KEYS = "attention heads", "heads of a recurrence", "key heads of a recurrence"
_HEADS = (_ATTENTION, _VALUES, _KEYS)
_CACHED, _GROUPS = "heads of keys and values", "groups of a state space"
_WIDTH, _SCALES, _UNKNOWN = "columns of a feed-forward network", "blocks of scales", "unknown"


def _sizes(model: LanguageModel) -> dict[_Size, str]:
    """Return the numbers that a degree has to divide, each with the first layer that has it."""
    found: dict[_Size, str] = {}
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for layer in (*model.layers, *model.mtp):
        if layer.work is not None:
            for size in (*_heads(layer.work), *_widths(layer, model.hidden, seen)):
                found.setdefault(size, layer.name)
        elif layer.part not in ("mtp", "beyond"):
            found.setdefault(_Size(0, _UNKNOWN), layer.name)
    return found


def _heads(work: LayerWork) -> Iterator[_Size]:
    for attention in (work.attention, work.cross):
        if attention is not None:
            yield _Size(attention.heads, _ATTENTION)
            if not attention.latent:
                yield _Size(attention.kv_heads, _CACHED)
    if work.recurrent is not None:
        yield _Size(work.recurrent.heads, _VALUES)
        if work.recurrent.key_heads:
            yield _Size(work.recurrent.key_heads, _KEYS)
        if work.recurrent.groups:
            yield _Size(work.recurrent.groups, _GROUPS)


def _widths(layer: DecoderLayer, hidden: int, seen: set[tuple[str, tuple[int, ...]]]) -> Iterator[_Size]:
    """Give the widths of networks and experts, by their last matrices, and numbers of blocks that have a scale.

    Parameters
    ----------
    seen
        Names and shapes that were looked at before.
    """
    for weight in layer.weights:
        shape = weight.shape
        name = within(layer, weight)
        if len(shape) < 2 or (name, shape) in seen:
            continue
        seen.add((name, shape))
        rule = rule_of(name)
        if rule.division not in (Division.ROWS, Division.COLUMNS):
            continue
        if not weight.parameters:
            if name.endswith("_scale_inv"):
                yield _Size(shape[-1 if rule.division is Division.ROWS else -2], _SCALES)
        elif rule.block is Block.NETWORK and rule.division is Division.ROWS:
            outputs = hidden * (shape[0] if len(shape) > 2 else 1)
            if outputs and weight.parameters % outputs == 0:
                yield _Size(weight.parameters // outputs, _WIDTH)


def _refusal(sizes: Mapping[_Size, str], degree: int) -> str | None:
    for (number, kind), layer in sizes.items() if degree > 1 else ():
        if kind == _UNKNOWN:
            return f"the sizes of {layer} are not known, and it is not divided over {degree} GPUs"
        alone = (kind == _CACHED and number and degree % number == 0) or (kind == _GROUPS and number == 1)
        if number % degree and not alone:
            nor = " and are no multiple of them" if kind == _CACHED and degree > number else ""
            return f"{degree} GPUs do not divide the {number:,} {kind} of {layer}{nor}; engines refuse that"
    return None
