"""Open sizes of a model as variables: what each stands for, which are varied together, and which follow from others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import onnx
from onnx import TensorProto

from mtpp.formats.modelled.size_roles import InputShape, Role, is_state, roles_of
from mtpp.formats.onnx.dimensions import NAMELESS, OpenTensor
from mtpp.formats.onnx.proposals.candidates import (
    Setting,
    channels_of_weights,
    pictures,
    sizes_in_weights,
    tiers_of,
)
from mtpp.formats.onnx.tensor_type import Dim, PartialType, partial_type
from mtpp.formats.onnx.topology import check_and_sort, reads

Sizes = dict[str, int]

_SIDES = (Role.HEIGHT, Role.WIDTH)
_APART = frozenset((Role.DATA, Role.OTHER))
"""Roles that say nothing of whether two sizes are the same."""

_WHOLE = frozenset(
    (
        TensorProto.BOOL, TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT16,
        TensorProto.UINT32, TensorProto.UINT64,
    )
)  # fmt: skip
"""Element types that are no pictures and no sound; bytes may be pictures."""


class Follow(Enum):
    """Sizes that follow from others: by name, as ``past + 1`` does, by what they count, or none."""

    NAMES = auto()
    ROLES = auto()
    NOTHING = auto()


@dataclass
class Variable:
    """An open size.

    Attributes
    ----------
    limits
        The size to try first of one that depends on data: the largest, where there is one.
    origin
        The node that makes such a one.
    """

    key: str
    places: list[tuple[str, int]]
    role: Role
    limits: tuple[int, ...] = ()
    origin: str = ""

    @property
    def is_named(self) -> bool:
        """Whether the model has a name for it, so that all its places have one size."""
        return self.key not in {f"{tensor}:{axis}" for tensor, axis in self.places}


class Variables:
    """The sizes that a model and its reader leave open.

    Parameters
    ----------
    graph, parameters
        The main graph, and the names of its initializers.
    given
        Sizes that are not open: the reader's, by key.
    follow
        Which sizes follow from others.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        parameters: Collection[str],
        given: Mapping[str, int],
        follow: Follow = Follow.NAMES,
    ) -> None:
        self._graph, self._given, self._follow = graph, given, follow
        self._tokens: int | None = None
        self._known: dict[str, Variable] = {}
        listed = (value.type.tensor_type.shape.dim for value in (*graph.input, *graph.output, *graph.value_info))
        self._names = {dim.dim_param for dims in listed for dim in dims} - NAMELESS
        self._inputs: dict[str, InputShape] = {}
        used = {name for node in graph.node for name in reads(node)}
        for value in graph.input:
            kind = partial_type(value.type)
            if value.name in parameters or not isinstance(kind, PartialType) or kind.dims is None:
                continue
            one = InputShape(value.name, kind.dtype not in _WHOLE, kind.dims)
            self._inputs[value.name] = one
            for axis, (dim, role) in enumerate(zip(kind.dims, roles_of(one), strict=True)):
                if value.name in used and not isinstance(dim, int):
                    self._add(value.name, axis, dim, role)
                if role is Role.TOKENS and self._tokens is None:
                    self._tokens = given.get(f"{value.name}:{axis}", given.get(dim) if isinstance(dim, str) else None)
        self._setting = Setting(
            dense=any(_grows(value) for value in graph.output),
            streamed=any(is_state(one) for one in self._inputs.values()),
            cached=any(one.role is Role.PAST for one in self),
            weights=sizes_in_weights(graph),
            channels=channels_of_weights(graph, self._inputs),
        )

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def enter(self, error: OpenTensor) -> list[str]:
        """Enter the open axes of a tensor whose size depends on data; return their keys."""
        before = len(self._known)
        for axis, dim in enumerate(error.known.dims or ()):
            if not isinstance(dim, int):
                limits = (max(1, error.likely[axis]),) if axis in error.likely else ()
                self._add(error.tensor, axis, dim, Role.DATA, limits, f"from {error.where}")
        return list(self._known)[before:]

    def _add(
        self, tensor: str, axis: int, dim: Dim, role: Role, limits: tuple[int, ...] = (), origin: str = ""
    ) -> None:
        place = f"{tensor}:{axis}"
        key = dim if isinstance(dim, str) and dim in self._names else place  # bodies name sizes for themselves
        if place in self._given or (isinstance(dim, str) and dim in self._given):
            return
        self._known.setdefault(key, Variable(key, [], role, limits, origin)).places.append((tensor, axis))

    def groups(self, among: Collection[str] | None = None) -> Iterator[tuple[Variable, ...]]:
        """Yield variables that are varied together, if one of them is *among* some keys; those of batches last.

        They are the sides of pictures, and nameless ones of one role.
        """
        chosen = [one for one in self if not self.follows(one)]
        chosen.sort(key=lambda one: one.role is Role.BATCH)
        done: set[str] = set()
        for one in chosen:
            if one.key in done or not (among is None or one.key in among):
                continue
            if one.role in _SIDES:
                alike = [other for other in chosen if other.role in _SIDES]
            elif one.is_named or one.role in _APART:
                alike = [one]
            else:
                alike = [other for other in chosen if other.role is one.role and not other.is_named]
            done.update(other.key for other in alike)
            yield tuple(alike)

    def groups_and_members(self, among: Collection[str] | None = None) -> Iterator[tuple[Variable, ...]]:
        """Yield the same groups, and then the variables of each of them by themselves."""
        groups = list(self.groups(among))
        yield from groups
        yield from ((one,) for group in groups if len(group) > 1 for one in group)

    def tiers(self, group: Sequence[Variable]) -> Iterator[list[Sizes]]:
        """Yield sizes of a group in the order in which they are tried, a tier at a time."""
        if group[0].role in _SIDES:
            height, width = (self._fixed_side(group, side) for side in _SIDES)
            for tier in pictures(height, width, self._setting):
                yield [{one.key: pair[one.role is Role.WIDTH] for one in group} for pair in tier]
            return
        for sizes in tiers_of(group[0].role, self._setting, group[0].limits):
            yield [{one.key: size for one in group} for size in dict.fromkeys(sizes)]

    def _fixed_side(self, group: Sequence[Variable], side: Role) -> int | None:
        """Return the size of a side of the pictures that a group is about; None if it is open."""
        if any(one.role is side for one in group):
            return None
        for name in {tensor: None for one in group for tensor, _ in one.places}:
            shape = self._inputs[name]
            for axis, (dim, role) in enumerate(zip(shape.dims, roles_of(shape), strict=True)):
                size = self._given.get(f"{name}:{axis}", self._given.get(str(dim), dim))
                if role is side and isinstance(size, int):
                    return size
        return None

    def first(self, group: Sequence[Variable]) -> Sizes:
        """Return the sizes of a group that are tried first."""
        return next(tier[0] for tier in self.tiers(group) if tier)

    def defaults(self) -> Sizes:
        """Return the size of each variable that is tried first."""
        sizes: Sizes = {}
        for group in self.groups():
            sizes |= self.first(group)
        return self.completed(sizes)

    def completed(self, sizes: Mapping[str, int]) -> Sizes:
        """Return sizes in the order of the variables, with those that follow from others."""
        found = {**self._given, **sizes}
        past = self._size_of(Role.PAST, sizes)
        for one in self:
            told = self._sum(one, found)
            if told is not None:
                found[one.key] = told
            elif one.role is Role.TOTAL and past is not None and self._follow is not Follow.NOTHING:
                found[one.key] = past + (self._size_of(Role.TOKENS, sizes) or self._tokens or 1)
        return {one.key: found[one.key] for one in self if one.key in found}

    def _size_of(self, role: Role, sizes: Mapping[str, int]) -> int | None:
        return next((sizes[one.key] for one in self if one.role is role and one.key in sizes), None)

    def follows(self, one: Variable) -> bool:
        """Say whether a size is the sum of others: by its name, or as all tokens of a model with cached ones."""
        others = {*self._known, *self._given} - {one.key}
        return self._sum(one, dict.fromkeys(others, 1)) is not None or (
            one.role is Role.TOTAL and self._setting.cached and self._follow is not Follow.NOTHING
        )

    def _sum(self, one: Variable, sizes: Mapping[str, int]) -> int | None:
        return _sum_of(one.key, sizes) if self._follow is Follow.NAMES else None

    def names_sums(self) -> bool:
        """Say whether the name of a size is a sum of others."""
        others = {*self._known, *self._given}
        return any(_sum_of(one.key, dict.fromkeys(others - {one.key}, 1)) is not None for one in self)

    def affecting(self, done: int) -> set[str] | None:
        """Return the keys that the last of *done* nodes depends on; None where it depends on none of them."""
        nodes = check_and_sort(self._graph, None, "")
        if not 0 < done <= len(nodes):
            return None
        wanted = set(nodes[done - 1].reads)
        for placed in reversed(nodes[: done - 1]):
            if wanted & set(placed.node.output):
                wanted.update(placed.reads)
        found = {one.key for one in self if any(tensor in wanted for tensor, _ in one.places)}
        return found or None


def _grows(value: onnx.ValueInfoProto) -> bool:
    """Say whether an output has open axes beside the batch, as pictures have."""
    kind = partial_type(value.type)
    dims = kind.dims if isinstance(kind, PartialType) else None
    return dims is not None and len(dims) > 2 and any(not isinstance(dim, int) for dim in dims[1:])


def _sum_of(text: str, sizes: Mapping[str, int]) -> int | None:
    """Return the value of a name such as ``past_length + 1``, a sum of sizes and numbers; None if it is none."""
    terms = [term.strip() for term in text.split("+")]
    if len(terms) < 2:
        return None
    values: Iterable[int | None] = [int(term) if re.fullmatch(r"\d{1,9}", term) else sizes.get(term) for term in terms]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(terms) else None
