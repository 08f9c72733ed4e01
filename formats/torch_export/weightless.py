"""Archive of an exported program without its weights, the same bytes wherever and whenever it was exported."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from mtpp.formats.torch_export.archive import CONSTANTS, STORAGE, WEIGHTS

_ROOT, _NAME = "program", "model"
_UNIX = 3

_FILES = {WEIGHTS: "weight_", CONSTANTS: "tensor_"}
"""Folders and the beginnings of names in them, as PyTorch has them."""

_MODULES = "nn_module_stack"


def weightless_archive(text: bytes, storages: Mapping[str, int]) -> bytes:
    """Return a file that is read as what ``torch.export.save`` writes of the same program.

    Parameters
    ----------
    text
        The program as PyTorch serialises it, in JSON.
    storages
        Numbers of the places that parameters, buffers and constants are stored in, by their names in the model: tied
        ones have one number. Names that are missing are stored nowhere else.

    Returns
    -------
    A zip file with the program and descriptions of its weights, on the device ``meta``. PyTorch loads it: every weight
    then is a tensor without values. Stack traces, guards and the modules that classes were defined in are left out, so
    that programs that compute the same from parameters of the same names have the same bytes.

    Notes
    -----
    O(size of the program) time and memory.
    """
    program = json.loads(text)
    program["guards_code"] = []
    for node in _nodes(program):
        node["metadata"] = _kept(node.get("metadata"))
    stored = _stored(program, storages)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:

        def put(name: str, content: bytes) -> None:
            entry = zipfile.ZipInfo(f"{_ROOT}/{name}")
            entry.create_system = _UNIX
            archive.writestr(entry, content)

        put(f"models/{_NAME}.json", _compact(program))
        for folder, config in stored.items():
            put(f"data/{folder}/{_NAME}_{folder}_config.json", _compact({"config": config}))
            for path in dict.fromkeys(entry["path_name"] for entry in config.values()):
                put(f"data/{folder}/{path}", b"")
    return written.getvalue()


def _compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _nodes(program: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all nodes, those of graphs within graphs included."""
    waiting: list[Any] = [program["graph_module"]]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            nodes = value.get("nodes")
            if isinstance(nodes, list):
                yield from (node for node in nodes if isinstance(node, dict))
            waiting += [one for one in value.values() if isinstance(one, dict | list)]
        elif isinstance(value, list):
            waiting += [one for one in value if isinstance(one, dict | list)]


def _kept(metadata: Any) -> dict[str, str]:
    """Return of a node's metadata the modules that it came from, with the bare names of their classes."""
    stack = metadata.get(_MODULES) if isinstance(metadata, dict) else None
    if not isinstance(stack, str):
        return {}
    entries = (entry.rpartition(",") for entry in stack.split(";"))
    return {_MODULES: ";".join(f"{place}{comma}{kind.rpartition('.')[2]}" for place, comma, kind in entries)}


def _stored(program: Mapping[str, Any], storages: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Return the descriptions of weights and constants by folder and name."""
    module = program["graph_module"]
    types = module["graph"]["tensor_values"]
    configs: dict[str, dict[str, Any]] = {WEIGHTS: {}, CONSTANTS: {}}
    numbers: dict[Any, int] = {}
    for spec in module["signature"]["input_specs"]:
        ((kind, value),) = spec.items()
        target = value.get(f"{kind}_name")
        if target is None or value["arg"]["name"] not in types:
            continue
        meta = {**types[value["arg"]["name"]], "device": {"type": "meta", "index": None}}
        folder = WEIGHTS if kind == "parameter" or (kind == "buffer" and value.get("persistent", True)) else CONSTANTS
        storage = numbers.setdefault(storages.get(target, target), len(numbers))
        configs[folder][target] = {
            "path_name": f"{_FILES[folder]}{storage}",
            "is_param": kind == "parameter",
            "use_pickle": False,
            "tensor_meta": meta,
            STORAGE: storage,
        }
    return configs
