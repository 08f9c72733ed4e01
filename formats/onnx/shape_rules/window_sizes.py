"""Sizes that sliding windows leave: one rule for the convolutions and poolings that onnx has no shape rule for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpp.formats.onnx.node_view import MalformedNode, NodeView


@dataclass(frozen=True, slots=True)
class Window:
    """A window that slides along one axis.

    Attributes
    ----------
    size
        Of the axis, without its padding.
    padding
        At both ends together.
    extent
        Elements from the first to the last one under the window: its gaps included.
    """

    size: int
    padding: int
    extent: int
    stride: int

    @property
    def room(self) -> int:
        """Steps of one element that the window can take; below zero where it does not fit."""
        return self.size + self.padding - self.extent

    @property
    def is_exact(self) -> bool:
        """Whether no element is left over, and none is missing.

        The last window ends where the padded axis does, or padding makes the axis its size divided by the stride.
        """
        if self.room < 0:
            return False
        if self.room % self.stride == 0:
            return True
        return self.size % self.stride == 0 and self.padding >= self.extent - self.stride


def windows(node: NodeView, sizes: Sequence[int], kernel: Sequence[int]) -> list[Window]:
    """Return the windows of a convolution or pooling, one for each spatial axis.

    Parameters
    ----------
    sizes
        Of the spatial axes of its input.
    kernel
        Elements under the window along each of them.

    Raises
    ------
    MalformedNode
        If the attributes are not those of so many axes.
    """
    rank = len(sizes)
    strides = node.integers("strides") or [1] * rank
    dilations = node.integers("dilations") or [1] * rank
    pads = node.integers("pads") or [0] * (2 * rank)
    if not (len(kernel) == len(strides) == len(dilations) == rank and len(pads) == 2 * rank) or min(strides) < 1:
        raise MalformedNode(f"the windows of {node.kind} do not fit {rank} spatial axes")
    extents = [(k - 1) * gap + 1 for k, gap in zip(kernel, dilations, strict=True)]
    mode = node.text("auto_pad", "NOTSET")
    padding = [pads[i] + pads[rank + i] for i in range(rank)]
    if mode == "VALID":
        padding = [0] * rank
    elif mode.startswith("SAME"):
        steps = [-(-size // stride) - 1 for size, stride in zip(sizes, strides, strict=True)]
        padding = [
            max(0, step * stride + extent - size)
            for step, stride, extent, size in zip(steps, strides, extents, sizes, strict=True)
        ]
    return [Window(*one) for one in zip(sizes, padding, extents, strides, strict=True)]


def output_sizes(node: NodeView, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Return the spatial sizes of the output of a convolution or pooling.

    Raises
    ------
    MalformedNode
        If a window does not fit, or the attributes are not those of so many axes.
    """
    found = windows(node, sizes, kernel)
    if any(window.room < 0 for window in found):
        raise MalformedNode(f"the window {list(kernel)} does not fit into {list(sizes)}")
    up = node.integer("ceil_mode", 0)
    return tuple((-(-one.room // one.stride) if up else one.room // one.stride) + 1 for one in found)
