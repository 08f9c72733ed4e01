"""Keys that an exported program returns its tensors under, where it returns a dictionary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_DICTIONARIES = ("builtins.dict", "collections.OrderedDict")


def result_keys(program: Mapping[str, Any]) -> dict[str, str]:
    """Return the path of keys and places of each tensor that a program returns in a dictionary, such as ``past.0.key``.

    Parameters
    ----------
    program
        As the file has it.

    Returns
    -------
    Nothing where the file does not say how results are nested, or says it for another number of them.
    """
    try:
        module = program["graph_module"]
        text = module["module_call_graph"][0]["signature"]["out_spec"]
        paths = list(_paths(json.loads(text)[1], (), False))
        returned = [spec["user_output"]["arg"] for spec in module["signature"]["output_specs"] if "user_output" in spec]
        if len(paths) != len(returned):
            return {}
        found: dict[str, str] = {}
        for path, argument in zip(paths, returned, strict=True):
            if path and "as_tensor" in argument:
                found.setdefault(argument["as_tensor"]["name"], path)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        return {}
    return found


def _paths(spec: Mapping[str, Any], above: tuple[str, ...], keyed: bool) -> Iterator[str]:
    """Yield the path of each leaf; an empty one where no dictionary is above it."""
    if spec["type"] is None:
        yield ".".join(above) if keyed else ""
        return
    children = spec["children_spec"]
    keys: Any = range(len(children))
    if spec["type"] in _DICTIONARIES:
        keys, keyed = json.loads(spec["context"]), True
    for key, child in zip(keys, children, strict=True):
        yield from _paths(child, (*above, str(key)), keyed)
