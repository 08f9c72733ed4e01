"""Sizes that sliding windows leave: of convolutions, of poolings, and of transposed convolutions."""

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
    """Return the spatial sizes of the output of a convolution."""
    found = windows(node, sizes, kernel)
    if any(window.room < 0 for window in found):
        raise _no_place(kernel, sizes)
    return tuple(one.room // one.stride + 1 for one in found)


def pooled_sizes(node: NodeView, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Return the spatial sizes of the output of a pooling, as ONNX Runtime and PyTorch compute them.

    With ``ceil_mode`` the last window may leave the padded axis, but has to start before its trailing padding. One that
    is larger than the axis by less than a stride stands there once: quotients are rounded towards zero. Padding chosen
    by ``auto_pad`` is that of a window without gaps, and below zero where strides leave elements out.
    """
    up, mode = node.integer("ceil_mode", 0), node.text("auto_pad", "NOTSET")
    pads = node.integers("pads") or [0] * (2 * len(sizes))
    result = []
    for axis, window in enumerate(windows(node, sizes, kernel)):
        size, padding, stride = window.size, window.padding, window.stride
        head = pads[axis] if mode == "NOTSET" else 0
        if mode.startswith("SAME"):
            padding = (-(-size // stride) - 1) * stride + kernel[axis] - size
            head = max(0, padding + (1 if mode == "SAME_LOWER" else 0)) // 2
        room = size + padding - window.extent
        steps = -(-room // stride) if up or room < 0 else room // stride
        if up and steps * stride >= size + head:
            steps -= 1
        result.append(steps + 1)
    if min(result, default=1) < 1:
        raise _no_place(kernel, sizes)
    return tuple(result)


def transposed_sizes(node: NodeView, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
    """Return the spatial sizes of the output of a transposed convolution.

    With ``auto_pad`` of SAME an element becomes no more than the stride, whatever padding is added to the output.
    """
    rank = len(sizes)
    wanted = node.integers("output_shape")
    added = node.integers("output_padding") or [0] * rank
    found = windows(node, sizes, kernel)
    if len(added) != rank or (wanted and len(wanted) not in (rank, rank + 2)):
        raise MalformedNode(f"the output of {node.kind} is not said for {rank} spatial axes")
    if wanted:
        result = tuple(wanted[-rank:])
    else:
        same = node.text("auto_pad", "NOTSET").startswith("SAME")
        whole = [(one.size - 1) * one.stride + one.extent + more for one, more in zip(found, added, strict=True)]
        result = tuple(
            min(size, one.size * one.stride) if same else size - one.padding
            for size, one in zip(whole, found, strict=True)
        )
    if min(result, default=1) < 1:
        raise MalformedNode(f"padding leaves nothing of {'×'.join(map(str, sizes))}")
    return result


def _no_place(kernel: Sequence[int], sizes: Sequence[int]) -> MalformedNode:
    return MalformedNode(f"the window {'×'.join(map(str, kernel))} does not fit into {'×'.join(map(str, sizes))}")
