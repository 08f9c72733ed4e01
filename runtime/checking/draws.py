"""Inputs that whole and split models are compared on: several draws, leaning to different sides."""

from __future__ import annotations

from collections.abc import Collection

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.results.stage_manifest import Described, StageManifest
from mtpp.runtime.element_types import as_declared
from mtpp.runtime.random_values import Leaning
from mtpp.units import PICOSECONDS

_LEANINGS = (Leaning.NONE, Leaning.NONE, Leaning.HIGH, Leaning.LOW, Leaning.NONE)

_COUNTS = ((10**9, 5), (2 * 10**10, 3))
"""Work of a model, in picoseconds as modelled, up to which so many draws are compared; two beyond."""

_UNTIMED, _FEWEST = 3, 2

_BYTES = 1 << 30
"""Of the tensors that live between stages, over all draws."""

_EXPLORED = 16
"""Draws that are tried for branches that the first ones do not reach."""


def leaning_of(number: int) -> Leaning:
    """Return the side that a draw leans to."""
    return _LEANINGS[number % len(_LEANINGS)]


def draw_count(manifest: StageManifest, given: Collection[str]) -> int:
    """Return the number of draws; one where all inputs are given."""
    if all(one.name in given for one in manifest.inputs):
        return 1
    unit = PICOSECONDS.get(manifest.time_unit)
    count = _UNTIMED
    if unit is not None:
        work = manifest.work * unit / manifest.ticks_per_unit
        count = next((count for most, count in _COUNTS if work <= most), _FEWEST)
    live = max((sum(one.bytes or 0 for one in (*stage.inputs, *stage.outputs)) for stage in manifest.stages), default=0)
    return max(1, min(count, _BYTES // max(1, live)))


def explored_count(manifest: StageManifest, given: Collection[str]) -> int:
    """Return the number of draws to try where ways through the model depend on data."""
    count = draw_count(manifest, given)
    return count if count < len(_LEANINGS) else _EXPLORED


def spare_numbers(manifest: StageManifest, given: Collection[str], taken: Collection[int]) -> list[int]:
    """Return the numbers of draws that take the place of those that a model cannot be run on; none if all is given."""
    if all(one.name in given for one in manifest.inputs):
        return []
    return [number for number in range(_EXPLORED) if number not in taken]


def explored_limits(tensor: Described, number: int) -> tuple[int, int] | None:
    """Return the limits of an input in a draw: those of the first are kept, a single number then makes room for others.

    A number that picks a way through the model is known by the constant that it is compared with; the other ways are
    taken by other ones.
    """
    limits = tensor.limits
    if tensor.fixed is not None or limits is None or limits[0] != limits[1] or number < len(_LEANINGS):
        return limits
    only = limits[0] + (number - len(_LEANINGS)) // 2 * (1 if number % 2 else -1)
    return max(0, only), max(0, only)


def check_names(manifest: StageManifest, given: Collection[str]) -> None:
    """Raise InputError if contents are given of what is no input of the whole model."""
    known = [one.name for one in manifest.inputs]
    unknown = [name for name in given if name not in known]
    if unknown:
        remedy = f"it has: {', '.join(known) or 'none'}"
        raise InputError(f"the model has no input {unknown[0]!r}", parameter="inputs", remedy=remedy)


def fitting(value: Described, array: Array) -> Array:
    """Return given contents of an input; raise InputError where the stages are for another type, shape or number."""
    text = array.dtype.kind in "OSU"
    fits = len(array.shape) == len(value.shape) and all(
        size is None or size == own for size, own in zip(value.shape, array.shape, strict=True)
    )
    own = array if text and value.dtype == "string" else as_declared(array, value.dtype)
    if not fits or own is None:
        wanted = "×".join("?" if size is None else str(size) for size in value.shape)
        raise InputError(
            f"input {value.name!r} holds {'string' if text else array.dtype} {'×'.join(map(str, array.shape))}, the "
            f"stages take {value.dtype} {wanted}",
            parameter="inputs",
            remedy="give what the stages take, or plan for these sizes",
        )
    if value.fixed is not None and int(array) != value.fixed:
        raise InputError(
            f"input {value.name!r} is {int(array)}, and the stages are made for {value.fixed}: sizes follow from it",
            parameter="inputs",
            remedy="give that number, or plan with ‹dim› for the one that you give",
        )
    return own
