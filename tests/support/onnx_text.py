"""Parts of ONNX models in ONNX's own text form."""

from __future__ import annotations

import onnx
import onnx.parser


def nodes_of(text: str) -> list[onnx.NodeProto]:
    """Return the nodes of a text such as ``y = Relu(x) z = Neg(y)``."""
    return list(onnx.parser.parse_graph(f"g () => () {{ {text} }}").node)
