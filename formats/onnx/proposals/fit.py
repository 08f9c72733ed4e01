"""Fit of sizes to a model: faults that shape inference lets pass, and what does not come out even."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from operator import mul

from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.shape_rules.window_sizes import Window, windows
from mtpp.formats.onnx.tensor_type import TensorType

_WEIGHTS = {
    "Conv": 1,
    "ConvInteger": 1,
    "QLinearConv": 3,
    "com.microsoft:FusedConv": 1,
    "com.microsoft.nchwc:Conv": 1,
}
"""Input with the weights of a convolution that slides over axes 2 and on."""

_POOLS = frozenset(
    ("AveragePool", "LpPool", "MaxPool", "com.microsoft.nchwc:AveragePool", "com.microsoft.nchwc:MaxPool")
)

_PRODUCTS = ("Gemm", "MatMul")
_BROADCASTING = ("Add", "Div", "Mul", "Sub")


@dataclass(slots=True)
class Fit:
    """What a walk with some sizes met; see :class:`mtpp.formats.onnx.walking.walk.Walk`.

    Attributes
    ----------
    done
        Nodes of the main graph that were begun.
    counts
        Elements that the last of them has, and those that it needs; None where no number says that.
    strict
        Whether a node that only shapes declared in the file help over is a fault.
    excuses
        Such nodes, rows made of what belongs to no one row, and branches that cannot run with these sizes.
    contradicted
        Tensors for which the file declares another shape, and those of one element along an axis of which a weight that
        they are added to has more.
    declared_sizes
        Sizes that the file declares where estimates contradict them.
    uneven
        Windows that leave elements over, in the order in which they were met.
    """

    strict: bool = True
    done: int = 0
    counts: tuple[int, int] | None = None
    excuses: int = 0
    contradicted: int = 0
    declared_sizes: list[int] = field(default_factory=list)
    uneven: list[Window] = field(default_factory=list)

    @property
    def score(self) -> tuple[int, int, int]:
        """What is compared between sizes that fit: the smaller, the better."""
        return self.excuses, self.contradicted, len(self.uneven)

    def begun(self, node: NodeView) -> None:
        """Count a node of the main graph, and what it has and needs."""
        self.done += 1
        try:
            self.counts = _counts(node)
        except (IndexError, ValueError):
            self.counts = None

    def node(self, node: NodeView, stored: Sequence[bool]) -> None:
        """Look at a node with its outputs.

        Parameters
        ----------
        stored
            Which of its inputs depend on none of the model's.
        """
        if node.kind in _POOLS and not node.output().count:
            raise MalformedNode("it leaves nothing")
        self.uneven += [window for window in _windows(node) if not window.is_exact]
        if node.kind == "Slice" and node.input(0).rank == node.output().rank:
            pairs = zip(node.output().shape, node.input(0).shape, strict=True)
            self.overruled([part for part, size in pairs if part > size])
        if node.kind == "Reshape" and node.input(0).count != node.output().count:
            raise MalformedNode(f"{node.input(0).count} elements become {node.output().count}")
        if node.kind == "Reshape" and _mixes_rows(node):
            self.rescued(f"{node.input(0).count} elements become {node.output().shape[0]} rows")
        if node.kind in _BROADCASTING and _is_stretched(node, stored):
            self.contradicted += 1

    def declared(self, said: TensorType | None, found: TensorType) -> None:
        """Compare what the file declares of a tensor with what was found."""
        if said is not None and said.shape != found.shape:
            self.contradicted += 1

    def rescued(self, problem: str) -> None:
        """Count a node that only shapes declared in the file help over."""
        self.excuses += 1
        if self.strict:
            raise MalformedNode(problem)

    def left_out(self) -> None:
        """Count a branch that cannot run."""
        self.excuses += 1

    def overruled(self, sizes: Sequence[int]) -> None:
        """Count estimates that declared sizes contradict: those are other, or larger than what they are a part of."""
        self.contradicted += len(sizes)
        self.declared_sizes += sizes


def _windows(node: NodeView) -> list[Window]:
    weight = _WEIGHTS.get(node.kind)
    if weight is not None:
        kernel = node.input(weight).shape[2:]
    elif node.kind in _POOLS:
        kernel = tuple(node.integers("kernel_shape") or ())
    else:
        return []
    return windows(node, node.input(0).shape[2:], kernel)


def _counts(node: NodeView) -> tuple[int, int] | None:
    """Return how many elements a node has and needs: those of a row of a product, or of a new shape."""
    if node.kind in _PRODUCTS:
        return _inner_sizes(node)
    shape = node.value(1) if node.kind == "Reshape" else None
    if shape is None:
        return None
    old = node.input(0)
    new = [old.shape[axis] if size == 0 else int(size) for axis, size in enumerate(shape.reshape(-1))]
    return old.count, prod(size for size in new if size != -1)


def _mixes_rows(node: NodeView) -> bool:
    """Say whether a tensor becomes rows for a batch, and other ones than it has: a picture twice as large as meant."""
    shape = node.value(1)
    if shape is None or shape.size != 2 or int(shape.reshape(-1)[0]) != -1:
        return False
    old, (rows, length) = node.input(0).shape, node.output().shape
    if not old or rows == old[0] or not length or not old[-1] or old[-1] % length == 0:
        return False
    return length not in accumulate(reversed(old), mul)


def _inner_sizes(node: NodeView) -> tuple[int, int] | None:
    a, b = node.input(0).shape, node.input(1).shape
    if not a or not b:
        return None
    inner = a[0] if node.integer("transA", 0) else a[-1]
    return inner, b[-1] if len(b) == 1 or node.integer("transB", 0) else b[-2]


def _is_stretched(node: NodeView, stored: Sequence[bool]) -> bool:
    """Say whether a tensor is repeated along an axis because a weight has more there: a table of positions, say."""
    shapes = [kind.shape if isinstance(kind, TensorType) else () for kind in node.inputs]
    weights = [shape for shape, one in zip(shapes, stored, strict=True) if one]
    tensors = [shape for shape, one in zip(shapes, stored, strict=True) if not one]
    return any(
        size == 1 and axis <= len(weight) and weight[-axis] > 1
        for shape in tensors
        for axis, size in enumerate(reversed(shape), start=1)
        for weight in weights
    )
