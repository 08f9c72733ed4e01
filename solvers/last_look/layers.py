"""Layers of a plan: each is in one stage, and edges lead to the same stage or a later one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtpp.errors import InconsistentResult
from mtpp.training.model import TrainingModel


def look_at_layers(model: TrainingModel, stages: Sequence[Iterable[int]], *, ordered: bool) -> None:
    """Check that stages, given by the positions of their layers, have each layer once, and with *ordered* its order."""
    place: dict[int, int] = {}
    for s, stage in enumerate(stages):
        for layer in stage:
            if place.setdefault(layer, s) != s or not 0 <= layer < len(model.layers):
                raise InconsistentResult(f"the plan has layer {layer} in stages {place[layer]} and {s}")
    if len(place) != len(model.layers):
        raise InconsistentResult(f"the plan has {len(place)} layers, and the model {len(model.layers)}")
    if sum(1 for stage in stages for _ in stage) != len(place):
        raise InconsistentResult("the plan has a layer twice in a stage")
    for u, v in model.ends if ordered else ():
        if place[u] > place[v]:
            names = model.layers[v].name, model.layers[u].name
            raise InconsistentResult(
                f"the plan has {names[0]!r} in stage {place[v]}, before {names[1]!r} in stage {place[u]} that it needs"
            )


def look_at_memory(needed: Sequence[int], limits: Sequence[int | None], what: str) -> None:
    """Check that each of some stages or devices needs no less than nothing, and no more than it has."""
    for at, (need, limit) in enumerate(zip(needed, limits, strict=True)):
        if need < 0 or (limit is not None and need > limit):
            raise InconsistentResult(f"{what} {at} of the plan needs {need} bytes, and has {limit}")


def look_at_equal(said: Sequence[object], summed: Sequence[object], what: str, text: str) -> None:
    """Check that what a plan says of some stages or devices is what its layers sum up to.

    Parameters
    ----------
    what, text
        Which things, and what is said of one, with braces in place of the value.
    """
    if len(said) != len(summed):
        raise InconsistentResult(f"the plan tells of {what}s {list(said)}, and its layers of {list(summed)}")
    for at, (ours, theirs) in enumerate(zip(said, summed, strict=True)):
        if ours != theirs:
            raise InconsistentResult(
                f"{what} {at} of the plan {text.format(ours)}, and summed up from its layers {theirs}"
            )


def look_at_least_memory(bound: int | None, found: int | None, limit: int | None) -> None:
    """Check what is said where no plan fits: a plan with more memory needs more than there is, and than no plan.

    Parameters
    ----------
    bound, found
        Bytes that no plan's fullest device is below, and those of the plan that needs least; None if unknown.
    limit
        Of the largest device; None if memory has no limit.
    """
    if bound is not None and found is not None and bound > found:
        raise InconsistentResult(f"no plan is said to fit into {bound - 1} bytes, and one was found that takes {found}")
    if limit is not None and found is not None and found <= limit:
        raise InconsistentResult(f"no plan is said to fit into {limit} bytes, and one was found that takes {found}")
