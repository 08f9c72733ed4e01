"""Exported programs written by hand, as PyTorch 2.13 saves them: a zip file with the program's text."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

FLOAT, INT64 = 7, 5


def symbol(name: str, hint: int | None = None) -> dict[str, Any]:
    """Return a symbolic size."""
    text = f"Symbol('{name}', positive=True, integer=True)"
    return {"as_expr": {"expr_str": text, "hint": None if hint is None else {"as_int": hint}}}


def tensor(*sizes: Any, dtype: int = FLOAT) -> dict[str, Any]:
    """Return the type of a tensor; sizes are whole numbers or expressions."""
    listed = [{"as_int": size} if isinstance(size, int) else size for size in sizes]
    return {"dtype": dtype, "sizes": listed, "strides": [], "device": {"type": "cpu", "index": None}}


def ref(*names: str) -> dict[str, Any]:
    """Return an operand that is a tensor, or a list of them."""
    return {"as_tensor": {"name": names[0]}} if len(names) == 1 else {"as_tensors": [{"name": one} for one in names]}


def node(target: str, made: Sequence[str], module: str | None = None, **operands: Any) -> dict[str, Any]:
    """Return a node of an ATen operator; operands are tensors by name, or what the file has."""
    metadata = {} if module is None else {"nn_module_stack": f"L__self__,,M;L__self__{module},{module},torch.nn.X"}
    return {
        "target": target if "." in target.removeprefix("torch.ops.") else f"torch.ops.aten.{target}.default",
        "inputs": [
            {"name": key, "arg": ref(value) if isinstance(value, str) else value, "kind": 1}
            for key, value in operands.items()
        ],
        "outputs": [ref(*made)] if made else [],
        "metadata": metadata,
        "name": made[0] if made else target,
    }


def program(
    types: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    *,
    inputs: Sequence[str] = ("x",),
    stored: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    ranges: Mapping[str, Any] | None = None,
    whole: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the document of a program; *stored* has the kind of each parameter and buffer by its tensor."""
    specs: list[dict[str, Any]] = [
        {kind: {"arg": {"name": name}, f"{kind}_name": name.replace("_", ".")}} for name, kind in (stored or {}).items()
    ]
    specs += [{"user_input": {"arg": ref(name)}} for name in inputs]
    graph = {
        "inputs": [ref(name) for name in (*(stored or {}), *inputs)],
        "outputs": [ref(name) for name in outputs],
        "nodes": list(nodes),
        "tensor_values": dict(types),
        "sym_int_values": dict(whole or {}),
    }
    return {
        "graph_module": {"graph": graph, "signature": {"input_specs": specs, "output_specs": []}},
        "schema_version": {"major": 8, "minor": 20},
        "range_constraints": dict(ranges or {}),
        "torch_version": "2.13.0",
    }


def archive(document: Any, more: Mapping[str, bytes] | None = None, *, root: str = "m/") -> bytes:
    """Return the file of a program, with further files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(f"{root}archive_format", "pt2")
        if document is not None:
            zipped.writestr(f"{root}models/model.json", json.dumps(document))
        for name, data in (more or {}).items():
            zipped.writestr(name, data)
    return written.getvalue()
