"""Groups of ops that the program that runs the stages cannot be without each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mtpp.formats.modelled.kept_together import groups_of
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model


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
