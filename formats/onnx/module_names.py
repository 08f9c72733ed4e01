"""Module of the original program that each op came from, as far as the exporter kept it.

Three kinds of evidence, the first that an op has counts:

1. ``metadata_props`` of a node, as ``torch.onnx.export(dynamo=True)`` writes them: ``pkg.torch.onnx.name_scopes``, a
   Python list of the paths of the modules around it and of the node's own name last
   (``['', 'layers.2', 'layers.2.mlp', 'linear_8']``), or ``namespace``, the same as ``/``-separated ``path: class``.
2. Its name, as the TorchScript exporter wrote it: ``/layer1/layer1.0/conv1/Conv``. A part that begins with the part
   before it repeats it (the child of a ``Sequential``); a second call of a module is called ``relu_1``. Or as this
   project's samples are called: the path, a slash, and the type of the operator (``layer1.0.conv1/Conv_2``).
3. The names of its weights: ``layers.2.mlp.up_proj.weight`` belongs to ``layers.2.mlp.up_proj``, if no other op reads
   it. Exporters keep one of several equal weights, so a name that two ops read may be that of any module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import onnx

from mtpp.formats.modelled.naming import common_module
from mtpp.formats.onnx.reader import Reading
from mtpp.formats.onnx.topology import parameter_names, reads

_SCOPES = "pkg.torch.onnx.name_scopes"
_NAMESPACE = "namespace"
_LONGEST = 10_000
_PATH = re.compile(r"[A-Za-z_0-9]+(?:\.[A-Za-z_0-9]+)*")
_SECOND_CALL = re.compile(r"(.+)_\d+")


def module_names(reading: Reading) -> dict[str, str]:
    """Return the path of the module of each op that the file says it of; ``""`` is the whole model.

    Notes
    -----
    O(nodes) time and memory.
    """
    nodes = [reading.model.graph.node[position] for position in reading.positions]
    paths = [_of_metadata(node) for node in nodes]
    if not any(paths):
        paths = _without_second_calls([_of_name(node) for node in nodes])
    if not any(paths):
        paths = _of_weights(reading)
    return {name: path for name, path in zip(reading.graph.op_names, paths, strict=True) if path is not None}


def _checked(path: str) -> str | None:
    return path if not path or _PATH.fullmatch(path) else None


def _of_metadata(node: onnx.NodeProto) -> str | None:
    properties = {entry.key: entry.value for entry in node.metadata_props if len(entry.value) <= _LONGEST}
    if _SCOPES in properties:
        try:
            scopes = ast.literal_eval(properties[_SCOPES])
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
        if isinstance(scopes, list) and len(scopes) > 1 and isinstance(scopes[-2], str):
            return _checked(scopes[-2])
        return None
    parts = [part.partition(":")[0].strip() for part in properties.get(_NAMESPACE, "").split("/")]
    return _checked(parts[-2]) if len(parts) > 1 else None


def _of_name(node: onnx.NodeProto) -> str | None:
    scope, slash, last = node.name.rpartition("/")
    if scope and not scope.startswith("/"):
        is_type = last.partition("_")[0] == node.op_type
        return _checked(scope) if is_type and "/" not in scope else None
    if not slash:
        return None
    path: list[str] = []
    for part in scope.split("/")[1:]:
        if path and part.startswith(f"{path[-1]}."):
            path.pop()
        path.append(part)
    return _checked(".".join(path))


def _without_second_calls(paths: list[str | None]) -> list[str | None]:
    """Take ``relu_1`` for ``relu`` where both are."""
    known = set(paths)
    found = [_SECOND_CALL.fullmatch(path or "") for path in paths]
    return [match[1] if match and match[1] in known else path for path, match in zip(paths, found, strict=True)]


def _of_weights(reading: Reading) -> list[str | None]:
    """Follow each weight, also through folded nodes (a transposed one), to the one op that reads it."""
    ops = {position: v for v, position in enumerate(reading.positions)}
    readers: dict[str, int | None] = {}  # None: several

    def note(name: str, reader: int | None) -> None:
        if readers.setdefault(name, reader) != reader:
            readers[name] = None

    for result in reading.model.graph.output:
        note(result.name, None)
    for position in range(len(reading.model.graph.node) - 1, -1, -1):
        node = reading.model.graph.node[position]
        if position in ops:
            found: Iterable[int | None] = (ops[position],)
        else:
            found = {readers[output] for output in node.output if output in readers}
        for reader in found:
            for name in reads(node):
                note(name, reader)
    modules: list[list[str]] = [[] for _ in ops]
    for weight in sorted(parameter_names(reading.model.graph)):
        module = _checked(weight.rpartition(".")[0])
        reader = readers.get(weight)
        if module and reader is not None:
            modules[reader].append(module)
    return [common_module(paths) for paths in modules]
