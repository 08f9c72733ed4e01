"""Sizes that are tried for what a size stands for: common ones, and those that weights and fixed sizes suggest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx

from mtpp.formats.modelled.size_roles import Role

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
