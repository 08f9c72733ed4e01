"""Keys of results of exported programs, also from files that say them wrongly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mtpp.formats.torch_export.result_keys import result_keys

LEAF = {"type": None, "context": None, "children_spec": []}


def dictionary(*keys: str, children: list[Any] | None = None) -> dict[str, Any]:
    """Return how PyTorch writes a dictionary of results."""
    inside = [LEAF] * len(keys) if children is None else children
    return {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": inside}


def program(spec: Any, *names: str | None) -> dict[str, Any]:
    """Return a program with results of these names, None for no tensor."""
    arguments = [{"as_none": True} if name is None else {"as_tensor": {"name": name}} for name in names]
    outputs: list[dict[str, Any]] = [{"buffer_mutation": {"arg": {"name": "b"}, "buffer_name": "b"}}]
    outputs += [{"user_output": {"arg": argument}} for argument in arguments]
    text = spec if isinstance(spec, str) else json.dumps([1, spec])
    calls = [{"fqn": "", "signature": {"out_spec": text}}]
    return {"graph_module": {"signature": {"output_specs": outputs}, "module_call_graph": calls}}


def test_paths_of_nested_results() -> None:
    """Keys and places, joined; a tensor that is returned twice has its first path, and no tensor has none."""
    pair = {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF, LEAF]}
    spec = dictionary("y", "none", "past", "again", children=[LEAF, LEAF, pair, LEAF])
    found = result_keys(program(spec, "add", None, "cat", "cat_1", "add"))
    assert found == {"add": "y", "cat": "past.0", "cat_1": "past.1"}
    assert result_keys(program(pair, "add", "cat")) == {}
    mixed = {**pair, "children_spec": [LEAF, dictionary("state")]}
    assert result_keys(program(mixed, "add", "cat")) == {"cat": "1.state"}


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"graph_module": {}},
        program("", "add"),
        program("{}", "add"),
        program("[1]", "add"),
        program("[" * 100_000, "add"),
        program({"type": "builtins.dict", "context": "[", "children_spec": [LEAF]}, "add"),
        program({"type": "builtins.dict", "context": "3", "children_spec": [LEAF]}, "add"),
        program({"type": "builtins.dict", "context": '["y", "z"]', "children_spec": [LEAF]}, "add"),
        program(dictionary("y", "z"), "add"),
    ],
)
def test_a_file_that_does_not_say_them(broken: dict[str, Any]) -> None:
    """No keys are known."""
    assert result_keys(broken) == {}
