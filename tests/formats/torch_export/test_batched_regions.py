"""Regions of torch.vmap: hidden axes of batches count, also nested, and a region is one op."""

from __future__ import annotations

from typing import Any

import exported_programs as written

from mtpp.formats.torch_export import read_program
from mtpp.machine.presets import load_device

_AT = "torch._functorch.predispatch."


def _ends(name: str, made: list[str], *values: Any) -> dict[str, Any]:
    return written.node(f"{_AT}{name}", made, **{str(index): value for index, value in enumerate(values)})


def _read(nodes: list[dict[str, Any]], types: dict[str, Any], outputs: list[str]) -> Any:
    data = written.archive(written.program(types, nodes, outputs=outputs))
    return read_program(data, source="p", system=load_device(), name="p")


def test_nested_batches_multiply() -> None:
    """A tensor inside two regions has as many copies as both batches have elements together; outside, all are told."""
    nodes = [
        written.node("relu", ["before"], self="x"),
        _ends("_vmap_increment_nesting", [], {"as_int": 3}, {"as_string": "error"}),
        _ends("_add_batch_dim", ["a"], "before", {"as_int": 0}, {"as_int": 1}),
        _ends("_vmap_increment_nesting", [], {"as_int": 5}, {"as_string": "error"}),
        _ends("_add_batch_dim", ["b"], "a", {"as_int": 0}, {"as_int": 2}),
        written.node("exp", ["inner"], self="b"),
        _ends("_remove_batch_dim", ["c"], "inner", {"as_int": 2}, {"as_int": 5}, {"as_int": 0}),
        _ends("_vmap_decrement_nesting", []),
        _ends("_remove_batch_dim", ["d"], "c", {"as_int": 1}, {"as_int": 3}, {"as_int": 0}),
        _ends("_vmap_decrement_nesting", []),
        written.node("exp", ["after"], self="d"),
    ]
    types = {
        "x": written.tensor(3, 5, 7), "before": written.tensor(3, 5, 7), "a": written.tensor(5, 7),
        "b": written.tensor(7), "inner": written.tensor(7), "c": written.tensor(5, 7), "d": written.tensor(3, 5, 7),
        "after": written.tensor(3, 5, 7),
    }  # fmt: skip
    graph = _read(nodes, types, ["after"])
    assert len(graph.op_names) == 3
    made = dict(zip(graph.tensor_names, graph.tensor_bytes, strict=True))
    assert {int(made[name]) for name in ("before", "a", "b", "inner", "c", "d", "after")} == {4 * 3 * 5 * 7}
    region, after = (int(graph.work[place]) for place in (1, 2))
    assert region == after
