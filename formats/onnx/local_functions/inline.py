"""Model-local functions replaced by their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
import onnx.inliner

from mtpp.errors import InputError
from mtpp.formats.onnx.local_functions.attributes import FunctionKey, bind_attributes, called_key, function_key

MOST_NODES = 1_000_000
"""Nodes that inlining may produce: functions that call each other twice grow exponentially."""


def inline_functions(model: onnx.ModelProto, source: str) -> onnx.ModelProto:
    """Return the model with every call of a model-local function replaced by its body, to any depth."""
    if not model.functions:
        return model
    _check_calls(model, source)
    model = bind_attributes(model, source)
    try:
        inlined = onnx.inliner.inline_local_functions(model)
        if _still_calls(inlined, model):
            # A function written for another opset needs its ops converted first.
            inlined = onnx.inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:  # the C++ inliner raises RuntimeError, ValueError and types of its own
        raise InputError(
            f"its functions cannot be inlined: {error}", source=source, where="functions", remedy="export it without"
        ) from None
    return inlined


def _all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(attribute.g.node)
            for graph in attribute.graphs:
                yield from _all_nodes(graph.node)


def _still_calls(inlined: onnx.ModelProto, model: onnx.ModelProto) -> bool:
    local = {function_key(function) for function in model.functions}
    return any(called_key(node) in local for node in _all_nodes(inlined.graph.node))


def _check_calls(model: onnx.ModelProto, source: str) -> None:
    bodies = {function_key(function): function.node for function in model.functions}
    calls = {key: [called_key(node) for node in _all_nodes(nodes)] for key, nodes in bodies.items()}
    sizes: dict[FunctionKey, int] = {}
    open_keys: list[FunctionKey] = []

    def expanded(key: FunctionKey) -> int:
        if key in sizes:
            return sizes[key]
        if key in open_keys:
            circle = " -> ".join(name for _, name, _ in [*open_keys[open_keys.index(key) :], key])
            raise InputError(f"functions call each other in a circle: {circle}", source=source, where="functions")
        if len(open_keys) > _DEEPEST_CALLS:
            raise InputError(f"functions nest deeper than {_DEEPEST_CALLS} calls", source=source, where="functions")
        open_keys.append(key)
        sizes[key] = sum(expanded(callee) if callee in bodies else 1 for callee in calls[key])
        open_keys.pop()
        return sizes[key]

    total = 0
    for node in _all_nodes(model.graph.node):
        key = called_key(node)
        total += expanded(key) if key in bodies else 1
    if total > MOST_NODES:
        raise InputError(
            f"inlining its functions gives {total} nodes, more than {MOST_NODES}", source=source, where="functions"
        )


_DEEPEST_CALLS = 200
