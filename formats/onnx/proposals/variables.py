"""Open sizes of a model as variables: what each stands for, which are varied together, and which follow from others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import onnx
from onnx import TensorProto

from mtpp.formats.modelled.size_roles import InputShape, Role, is_state, roles_of
from mtpp.formats.onnx.dimensions import NAMELESS, OpenTensor
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

PHOTOGRAPHS = (224, 256, 299, 384, 512, 640, 320, 416, 448, 518, 608, 768, 1024, 192, 128, 112, 96)
"""Sides of square pictures, those that networks are trained on first."""

SCENES = (640, 512, 256, 320, 384, 416, 608, 768, 800, 1024, 224, 299, 128)
"""The same where the result is as large as the picture: detectors, segmentation."""

LINES = (64, 48, 32, 40, 24)
"""Heights of lines of text, four times as wide."""

TINY = (32, 28, 64, 16, 8)
"""Sides of the pictures of small data sets."""

WIDE = 4
_LOW = 128
"""Pictures of a fixed height below that are lines."""

_TOKENS = (128, 64, 32, 16, 256, 512, 77, 50, 8, 4, 2, 1)
_PAST = (128, 64, 32, 16, 8, 1)
_WAVE = (16000, 8000, 4096, 1024, 512, 32000, 48000, 80000, 160000, 2048, 480, 320, 256, 160, 128)
_CHUNKS = (512, 1024, 480, 320, 256, 160, 1600, 1536, 2048, 4096, 8000, 16000, 128, 80)
_FRAMES = (100, 128, 3000, 1000, 500, 200, 64, 32, 16, 8, 4, 1)
_DEPTHS = (16, 8, 32, 64, 4, 1)
_SMALL = (1, 2, 4, 8)
_COUNTS = (2, 3, 4, 5, 8, 16)
_ANY = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)

_SMALLEST_TOLD, _LARGEST_TOLD = 2, 8192
_MOST_TOLD = 8

Tiers = Sequence[Sequence[int]]
"""Sizes in the order in which they are tried; the next tier only where none of one before fits."""


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


@dataclass(frozen=True)
class Setting:
    """What decides between common sizes.

    Attributes
    ----------
    dense
        Whether a result grows with the picture.
    streamed
        Whether a state goes from run to run, so that a wave comes in chunks.
    cached
        Whether keys and values of earlier tokens are inputs: then a run adds one token.
    weights
        Sizes of the axes of weights, the most frequent ones first.
    channels
        Input channels of the first convolutions, rows of the first matrices.
    """

    dense: bool
    streamed: bool
    cached: bool
    weights: tuple[int, ...]
    channels: tuple[int, ...]


def tiers_of(role: Role, setting: Setting, limits: Sequence[int] = ()) -> Tiers:
    """Return the sizes to try for one size that is no side of a picture.

    Parameters
    ----------
    limits
        Of a size that depends on data: the largest that it can have, or what it is likely to be.
    """
    if role is Role.DATA:
        return [[*limits, 1], _COUNTS]
    if role is Role.TOKENS:
        first = (1,) if setting.cached else ()
        return [[*first, *_TOKENS], setting.weights, setting.channels]
    common: dict[Role, Sequence[int]] = {
        Role.BATCH: _SMALL,
        Role.CHANNELS: (*setting.channels, 3, 1, 4),
        Role.DEPTH: _DEPTHS,
        Role.FRAMES: _FRAMES,
        Role.PAST: _PAST,
        Role.SAMPLES: _CHUNKS if setting.streamed else _WAVE,
        Role.TOTAL: _TOKENS,
    }
    if role in common:
        return [common[role], setting.weights, setting.channels]
    return [(*setting.channels, *setting.weights, *_ANY)]


def pictures(height: int | None, width: int | None, setting: Setting) -> Sequence[Sequence[tuple[int, int]]]:
    """Return heights with widths to try.

    Parameters
    ----------
    height, width
        Where one of them is fixed; None where it is open.
    """
    sides = SCENES if setting.dense else PHOTOGRAPHS
    if height is not None:
        first = height if height >= _LOW else WIDE * height
        widths = [first, height, *(side for side in (*sides, *TINY) if side not in (first, height))]
        return [[(height, size) for size in widths], [(height, size) for size in setting.weights]]
    if width is not None:
        heights = [width, *(side for side in (*sides, *LINES, *TINY) if side != width)]
        return [[(size, width) for size in dict.fromkeys(heights)], [(size, width) for size in setting.weights]]
    return [
        [(side, side) for side in sides],
        [(low, WIDE * low) for low in LINES],
        [(side, side) for side in TINY],
        [(side, side) for side in setting.weights],
    ]


def sizes_in_weights(graph: onnx.GraphProto) -> tuple[int, ...]:
    """Return sizes of axes of what is added to, multiplied with or cut out of tensors, the most frequent ones first.

    Tables of positions are such weights: their rows are as many as there can be tokens. Those of last axes come at the
    end: as a rule they are as long as an embedded token.
    """
    stored = {tensor.name: tensor.dims for tensor in graph.initializer}
    rows: Counter[int] = Counter()
    features: Counter[int] = Counter()
    for node in graph.node:
        if node.op_type in _ADDED:
            for name in node.input:
                dims = [*stored.get(name, ())]
                rows.update(size for size in dims[:-1] if _SMALLEST_TOLD <= size <= _LARGEST_TOLD)
                features.update(size for size in dims[-1:] if _SMALLEST_TOLD <= size <= _LARGEST_TOLD)
    return tuple(dict.fromkeys(size for found in (rows, features) for size, _ in found.most_common(_MOST_TOLD)))


_ADDED = frozenset(("Add", "Concat", "Gather", "Mul", "Slice", "Sub", "Where"))
_PASSING = frozenset(("Cast", "Clip", "Div", "Identity", "Mul", "Sub", "Add", "Relu", "BatchNormalization"))
_CONVOLUTIONS = frozenset(("Conv", "FusedConv"))
_PRODUCTS = frozenset(("FusedMatMul", "Gemm", "MatMul"))


def channels_of_weights(graph: onnx.GraphProto, inputs: Iterable[str]) -> tuple[int, ...]:
    """Return how many channels or features the first convolution or product takes that each input reaches."""
    stored = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    reached, found = set(inputs), []
    for node in graph.node:
        if node.op_type == "Transpose" and node.input[0] in stored:
            perm = next((list(one.ints) for one in node.attribute if one.name == "perm"), None)
            dims = stored[node.input[0]]
            stored[node.output[0]] = dims[::-1] if perm is None else [dims[axis] for axis in perm if axis < len(dims)]
        if not node.input or node.input[0] not in reached:
            continue
        if node.op_type in _PASSING:
            reached.update(node.output[:1])
        weight = stored.get(node.input[1]) if len(node.input) > 1 else None
        if weight is None or len(weight) < 2:
            continue
        if node.op_type in _CONVOLUTIONS:
            groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
            found.append(weight[1] * groups)
        elif node.op_type in _PRODUCTS:
            turned = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            found.append(weight[-1] if turned else weight[-2])
    return tuple(dict.fromkeys(found))
