"""Groups of ops that share a stage: those named, those that engines keep together, blocks, and outer layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mtpp.errors import InputError
from mtpp.formats.modelled.kept_together import groups_of
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.options.search import AskedPartition
    from mtpp.formats.exporters.block_kinds import BlockKinds


def groups_together(model: Model, asked: AskedPartition) -> tuple[tuple[str, ...], ...]:
    """Return the groups of ops that have to share a stage: those named, those of engines, blocks, and outer layers."""
    together = asked.together
    if not asked.ignore_engine:
        together += engine_groups(model)
    if asked.together_blocks:
        together += block_groups(model)
    if asked.layers_only:
        together += layer_groups(model)
    return together


def layer_groups(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return the ops of a language model that engines keep beside its layers: embedding and first layer, last and head.

    Raises
    ------
    InputError
        If it is no language model.
    """
    from mtpp.language_models.layer_graph import DECODER_EMBEDDING, EMBEDDING, HEAD

    names = list(model.graph.op_names)
    if "serving" not in model.graph.metadata:
        remedy = "keep ops ‹together›, or blocks with ‹together_blocks›"
        raise InputError("is of language models", parameter="layers_only", remedy=remedy)
    places = {name: names.index(name) for name in (EMBEDDING, DECODER_EMBEDDING, HEAD) if name in names}
    return tuple(
        (names[place - 1], name) if name == HEAD else (name, names[place + 1]) for name, place in places.items()
    )


def block_groups(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return the ops of each repeated block of a model, such as ``layers.7``; blocks of one op are left out.

    Raises
    ------
    InputError
        If it is no ONNX model and no exported program, has no such blocks, or does not say its modules.
    """
    from mtpp.api.inputs.module_paths import block_kinds

    _KINDS[model] = kinds = block_kinds(model)
    return _named(model, kinds)


def told_blocks(model: Model, together: Sequence[Sequence[str]]) -> list[str]:
    """Return the kinds of blocks that a plan keeps whole, for people; nothing where nobody asked for them."""
    kinds = _KINDS.get(model)
    if kinds is None or not kinds.groups or not set(together).issuperset(_named(model, kinds)):
        return []
    return [kinds.describe()]


def _named(model: Model, kinds: BlockKinds) -> tuple[tuple[str, ...], ...]:
    names = model.graph.op_names
    return tuple(tuple(names[v] for v in block) for block in kinds.groups)


_KINDS: WeakKeyDictionary[Model, BlockKinds] = WeakKeyDictionary()
"""Kinds of models whose blocks were asked for: their files are not read again to name them."""


def engine_groups(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return the groups of op names of a model that can be split: no stage file could be cut between them."""
    return tuple(group for groups in _known(model).values() for group in groups)


def told_groups(model: Model, together: Sequence[Sequence[str]]) -> list[str]:
    """Return what a plan assumes about them, for people: that they were kept together, or that they were not."""
    kept = {tuple(group) for group in together}
    texts = []
    for reason, groups in _known(model).items():
        count = counted(sum(map(len, groups)), "op")
        if kept.issuperset(groups):
            texts.append(f"{count} around {reason} kept together: no stage can be cut there")
        else:
            texts.append(f"{count} around {reason} cut freely: such stages cannot be written")
    return texts


def _known(model: Model) -> Mapping[str, tuple[tuple[str, ...], ...]]:
    names = set(model.graph.op_names)
    found = {
        reason: tuple(group for group in groups if len(group) > 1 and names.issuperset(group))
        for reason, groups in groups_of(model.graph.metadata).items()
    }
    return {reason: groups for reason, groups in found.items() if groups}
