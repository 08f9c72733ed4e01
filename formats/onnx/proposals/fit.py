"""Fit of sizes to a model: faults that shape inference lets pass, and what does not come out even."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(slots=True)
class Fit:
    """What a walk with some sizes met; see :class:`mtpp.formats.onnx.walk.Walk`.

    Attributes
    ----------
    done
        Nodes of the main graph that were begun.
    strict
        Whether a node that only shapes declared in the file help over is a fault.
    excuses
        Such nodes, and branches that cannot run with these sizes.
    contradicted
        Tensors for which the file declares another shape.
    uneven
        Windows that leave elements over, in the order in which they were met.
    """

    strict: bool = True
    done: int = 0
    excuses: int = 0
    contradicted: int = 0
    uneven: list[Window] = field(default_factory=list)

    @property
    def score(self) -> tuple[int, int, int]:
        """What is compared between sizes that fit: the smaller, the better."""
        return self.excuses, self.contradicted, len(self.uneven)

    def begun(self) -> None:
        """Count a node of the main graph."""
        self.done += 1

    def node(self, node: NodeView) -> None:
        """Look at a node with its outputs.

        Raises
        ------
        MalformedNode
            If it cannot run, which its shape rule did not see.
        """
        if node.kind in _POOLS and not node.output().count:
            raise MalformedNode("it leaves nothing")
        self.uneven += [window for window in _windows(node) if not window.is_exact]
        if node.kind == "Reshape" and node.input(0).count != node.output().count:
            raise MalformedNode(f"{node.input(0).count} elements become {node.output().count}")
        if node.kind == "Gather":
            _check_rows(node)
        if node.kind in ("Gemm", "MatMul"):
            _check_product(node)

    def declared(self, said: TensorType | None, found: TensorType) -> None:
        """Compare what the file declares of a tensor with what was found."""
        if said is not None and said.shape != found.shape:
            self.contradicted += 1

    def rescued(self, problem: str) -> None:
        """Count a node that only shapes declared in the file help over.

        Raises
        ------
        MalformedNode
            If that is a fault.
        """
        self.excuses += 1
        if self.strict:
            raise MalformedNode(problem)

    def left_out(self) -> None:
        """Count a branch that cannot run."""
        self.excuses += 1


def _windows(node: NodeView) -> list[Window]:
    weight = _WEIGHTS.get(node.kind)
    if weight is not None:
        kernel = node.input(weight).shape[2:]
    elif node.kind in _POOLS:
        kernel = tuple(node.integers("kernel_shape") or ())
    else:
        return []
    return windows(node, node.input(0).shape[2:], kernel)


def _check_product(node: NodeView) -> None:
    """Refuse operands that do not go together: not every version of onnx does."""
    a, b = node.input(0).shape, node.input(1).shape
    if not a or not b:
        return
    inner = a[0] if node.integer("transA", 0) else a[-1]
    rows = b[-1] if len(b) == 1 or node.integer("transB", 0) else b[-2]
    if inner != rows:
        raise MalformedNode(f"rows of {inner} meet columns of {rows}")


def _check_rows(node: NodeView) -> None:
    """Refuse constant indices beyond the table: positions of more tokens than it has rows."""
    indices = node.value(1)
    if indices is None or not indices.size:
        return
    table = node.input(0)
    rows = table.shape[node.integer("axis", 0)]
    if int(indices.max()) >= rows or int(indices.min()) < -rows:
        raise MalformedNode(f"index {int(indices.max())} of {rows} rows")
