"""Local functions of random models: attributes with defaults, handed down, in branches, and absent."""

from __future__ import annotations

import onnx
from onnx import AttributeProto, helper

DOMAIN = "varied"


def _referring(node: onnx.NodeProto, name: str, to: str, kind: int = AttributeProto.FLOAT) -> onnx.NodeProto:
    attribute = node.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = name, to, kind  # type: ignore[assignment]
    return node


def local_functions(opset: int) -> list[onnx.FunctionProto]:
    """Return functions of one input that keep its size."""
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    leaky = [_referring(helper.make_node("LeakyRelu", ["a"], ["b"]), "alpha", "alpha")]
    outer = [
        _referring(helper.make_node("Leaky", ["a"], ["c"], domain=DOMAIN), "alpha", "alpha"),
        helper.make_node("Leaky", ["c"], ["d"], domain=DOMAIN),
        helper.make_node("Tanh", ["d"], ["b"]),
    ]
    maybe = [_referring(helper.make_node("Elu", ["a"], ["b"]), "alpha", "alpha")]
    default = helper.make_attribute("alpha", 0.75)
    return [
        helper.make_function(DOMAIN, "Leaky", ["a"], ["b"], leaky, opsets, attribute_protos=[default]),
        helper.make_function(
            DOMAIN, "Outer", ["a"], ["b"], outer, opsets, attribute_protos=[helper.make_attribute("alpha", 0.5)]
        ),
        helper.make_function(DOMAIN, "Maybe", ["a"], ["b"], maybe, opsets, attributes=["alpha"]),
    ]
