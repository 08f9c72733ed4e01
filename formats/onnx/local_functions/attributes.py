"""Attributes of local functions bound: one copy of a function per set of attributes that it is called with.

An attribute that a function refers to is the call's, else the function's default, else absent. onnx's inliner (1.23)
knows nothing of defaults, nor of overloads, so that calls are bound here before it sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from mtpp.errors import InputError
from mtpp.formats.onnx.topology import captured, describe

FunctionKey = tuple[str, str, str]
Attributes = Mapping[str, onnx.AttributeProto]


def function_key(function: onnx.FunctionProto) -> FunctionKey:
    """Return what a function is found by: domain, name and overload."""
    return (standard_domain(function.domain), function.name, function.overload)


def called_key(node: onnx.NodeProto) -> FunctionKey:
    """Return the key of the function that a node calls, if there is one."""
    return (standard_domain(node.domain), node.op_type, node.overload)


def standard_domain(domain: str) -> str:
    """Return a domain with one name for the default one."""
    return "" if domain == "ai.onnx" else domain


def with_defaults(function: onnx.FunctionProto, given: Iterable[onnx.AttributeProto]) -> dict[str, onnx.AttributeProto]:
    """Return the attributes of a call by name: its own, else the function's default."""
    attributes = {default.name: default for default in function.attribute_proto}
    attributes.update((one.name, one) for one in given)
    return attributes


def bound_attribute(attribute: onnx.AttributeProto, outside: Attributes) -> onnx.AttributeProto | None:
    """Return an attribute of a node in a function with the value that it refers to; None if that is absent."""
    if not attribute.ref_attr_name:
        return attribute
    value = outside.get(attribute.ref_attr_name)
    if value is None:
        return None
    bound = onnx.AttributeProto()
    bound.CopyFrom(value)
    bound.name, bound.doc_string = attribute.name, attribute.doc_string
    return bound


def bind_attributes(model: onnx.ModelProto, source: str) -> onnx.ModelProto:
    """Return a model whose functions take no attributes and have no overloads, and compute the same.

    The model itself if that is so already.

    Notes
    -----
    As many copies of a function as it is called with different attributes, at most once per call of the inlined model.
    """
    if not any(f.attribute or f.attribute_proto or f.overload for f in model.functions):
        return model
    return _Binding(model, source).model()


class _Binding:
    def __init__(self, model: onnx.ModelProto, source: str) -> None:
        self._whole = model
        self._source = source
        self._functions = {function_key(function): function for function in model.functions}
        self._names = {(domain, name) for domain, name, _ in self._functions}
        self._copies: dict[tuple[FunctionKey, tuple[bytes, ...]], onnx.FunctionProto] = {}

    def model(self) -> onnx.ModelProto:
        bound = onnx.ModelProto()
        for field, value in self._whole.ListFields():
            if field.name in ("graph", "functions"):
                continue
            if isinstance(value, str | bytes | int | float):
                setattr(bound, field.name, value)
            else:
                getattr(bound, field.name).MergeFrom(value)
        bound.graph.CopyFrom(self._whole.graph)
        self._bind(bound.graph.node, {})
        bound.functions.extend(self._copies.values())
        return bound

    def _bind(self, nodes: Iterable[onnx.NodeProto], outside: Attributes) -> None:
        """Bind nodes in place; *outside* are the attributes of the function that they stand in."""
        for node in nodes:
            bound = [bound_attribute(attribute, outside) for attribute in node.attribute]
            attributes = [attribute for attribute in bound if attribute is not None]
            function = self._functions.get(called_key(node))
            if function is None:
                if any(attribute.ref_attr_name for attribute in node.attribute):
                    kept = [onnx.AttributeProto.FromString(one.SerializeToString()) for one in attributes]
                    del node.attribute[:]
                    node.attribute.extend(kept)
                self._bind_bodies(node.attribute, outside)
            else:
                self._refuse_captures(node, attributes)
                self._bind_bodies(attributes, outside)
                node.op_type = self._copy(function, with_defaults(function, attributes)).name
                node.overload = ""
                del node.attribute[:]

    def _bind_bodies(self, attributes: Iterable[onnx.AttributeProto], outside: Attributes) -> None:
        for attribute in attributes:
            for body in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                self._bind(body.node, outside)

    def _refuse_captures(self, node: onnx.NodeProto, attributes: Iterable[onnx.AttributeProto]) -> None:
        for attribute in attributes:
            for body in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                names = captured(body)
                if names:
                    raise InputError(
                        f"the graph that it hands to a function as {attribute.name!r} reads {names[0]!r} around it",
                        source=self._source,
                        where=describe(node),
                        remedy="hand the tensor to the function as an input",
                    )

    def _copy(self, function: onnx.FunctionProto, attributes: Attributes) -> onnx.FunctionProto:
        """Return the copy of a function for these attributes, made once."""
        values = tuple(attributes[name].SerializeToString(deterministic=True) for name in sorted(attributes))
        key = function_key(function), values
        if key not in self._copies:
            copy = onnx.FunctionProto()
            copy.CopyFrom(function)
            copy.name = self._new_name(standard_domain(function.domain), function.name)
            copy.overload = ""
            del copy.attribute[:], copy.attribute_proto[:]
            self._bind(copy.node, attributes)
            self._copies[key] = copy
        return self._copies[key]

    def _new_name(self, domain: str, name: str) -> str:
        number = len(self._names)
        while (domain, f"{name}_{number}") in self._names:
            number += 1
        self._names.add((domain, f"{name}_{number}"))
        return f"{name}_{number}"
