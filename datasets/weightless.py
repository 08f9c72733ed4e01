"""Exported models without the values of weights and the exporter's traces, which no graph needs."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from collections import Counter
from typing import Any

import onnx

WEIGHTS_LOCATION = "weights-not-shipped"
"""Stands as the file of external data; no such file exists."""

LARGEST_KEPT_BYTES = 64
"""Initializers up to this size stay: shapes, axes, scales and epsilons, from which other shapes follow."""

_SCOPES_KEY = "pkg.torch.onnx.name_scopes"


def remove_weights(model: onnx.ModelProto) -> None:
    """Turn every initializer above :data:`LARGEST_KEPT_BYTES` into external data that is nowhere, in place.

    Offsets and lengths are those of a file with all of them one after the other.
    """
    offset = 0
    for tensor in model.graph.initializer:
        length = _byte_count(tensor)
        if length <= LARGEST_KEPT_BYTES:
            continue
        shape, data_type, name = list(tensor.dims), tensor.data_type, tensor.name
        tensor.Clear()
        tensor.name, tensor.data_type = name, data_type
        tensor.dims.extend(shape)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS_LOCATION), ("offset", offset), ("length", length)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        offset += length


def name_after_modules(model: onnx.ModelProto) -> None:
    """Call each node after the module it came from and its operator, as in ``layer1.0.conv1/Conv``, in place.

    The module is the one that owns the weight that the node reads (a convolution that has taken in the
    normalisation behind it remains the convolution), else the one that PyTorch's exporter noted in the node's metadata,
    else that of the node before. Where a module has several nodes of one operator, all but the first get a number.
    """
    weights = {tensor.name for tensor in model.graph.initializer if tensor.name.endswith(".weight")}
    module_of: dict[str, str] = {}
    given: Counter[str] = Counter()
    for node in model.graph.node:
        owners = [name.removesuffix(".weight") for name in node.input if name in weights]
        noted = _noted_module(node)
        before = module_of.get(node.input[0], "") if node.input else ""
        module = owners[0] if owners else before if noted is None else noted
        module_of.update(dict.fromkeys(node.output, module))
        name = f"{module}/{node.op_type}" if module else node.op_type
        given[name] += 1
        node.name = name if given[name] == 1 else f"{name}_{given[name]}"


def _noted_module(node: onnx.NodeProto) -> str | None:
    scopes = {entry.key: entry.value for entry in node.metadata_props}.get(_SCOPES_KEY)
    if not scopes:
        return None
    # The list ends in the name of the traced call itself; what stands before it are the modules around it, and
    # placeholders of the exporter that begin with an underscore.
    modules: list[str] = [scope for scope in ast.literal_eval(scopes)[:-1] if not scope.startswith("_")]
    return modules[-1] if modules else ""


def remove_traces(model: onnx.ModelProto) -> None:
    """Clear metadata (stack traces among it) and doc strings at every level of the model, in place."""
    _clear(model)


def _clear(message: Any) -> None:
    for descriptor, value in message.ListFields():
        if descriptor.name in ("metadata_props", "doc_string"):
            message.ClearField(descriptor.name)
        elif descriptor.message_type is not None:
            for child in (value,) if hasattr(value, "ListFields") else value:
                _clear(child)


def _byte_count(tensor: onnx.TensorProto) -> int:
    elements = 1
    for size in tensor.dims:
        elements *= size
    return elements * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


_WHEN = (1980, 1, 1, 0, 0, 0)


def without_traces(archive: bytes, name: str) -> bytes:
    """Return an archive of ``torch.export.save`` without stack traces, compressed; PyTorch loads it as before.

    Parameters
    ----------
    name
        Of the folder within.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in sorted(old.namelist()):
            inner = entry.partition("/")[2]
            data = old.read(entry)
            if inner.startswith("models/"):
                program = json.loads(data)
                _clean(program)
                data = json.dumps(program, separators=(",", ":")).encode()
            new.writestr(zipfile.ZipInfo(f"{name}/{inner}", _WHEN), data, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _clean(value: Any) -> None:
    """Take stack traces out of a document."""
    if isinstance(value, dict):
        value.pop("stack_trace", None)
        for one in value.values():
            _clean(one)
    elif isinstance(value, list):
        for one in value:
            _clean(one)
