"""Sizes of symbolic dimensions that figures rest on, as tables tell them: those that were given, those proposed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

_LISTED = 16


def told_sizes(dims: Mapping[str, int], proposed: Collection[str] = ()) -> list[str]:
    """Return what to say of sizes, for people; nothing if there are none.

    Parameters
    ----------
    proposed
        Names of those that nobody gave.
    """
    texts = []
    for what, own in (("dims", False), ("dims proposed:", True)):
        listed = ", ".join(f"{name} = {size}" for name, size in dims.items() if (name in proposed) is own)
        if listed:
            texts.append(f"{what} {listed}")
    return texts


class Sized(Protocol):
    """A model, or a row of a table about one, with the sizes that it was read for."""

    @property
    def dims(self) -> Mapping[str, int]:
        """Sizes by name."""

    @property
    def proposed_dims(self) -> Collection[str]:
        """Names of those that nobody gave."""


def sizes_of_models(models: Iterable[Sized]) -> list[str]:
    """Return what to say of the sizes of several models: each size once, however many have it."""
    given: dict[str, None] = {}
    proposed: dict[str, None] = {}
    for model in models:
        for name, size in model.dims.items():
            (proposed if name in model.proposed_dims else given)[f"{name} = {size}"] = None
    return [
        f"{what} {_listed(list(sizes))}" for what, sizes in (("dims", given), ("dims proposed:", proposed)) if sizes
    ]


def _listed(texts: list[str]) -> str:
    more = f", … {len(texts) - _LISTED} more" if len(texts) > _LISTED else ""
    return ", ".join(texts[:_LISTED]) + more
