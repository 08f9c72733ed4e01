"""Ops of exported programs: called as their modules are, and found by the names of their nodes too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from exported_programs import archive, node, program, tensor

import mtpp
from mtpp.datasets import sample_path
from mtpp.formats.modelled.node_names import node_names
from mtpp.formats.torch_export import read_with_modules
from mtpp.machine.presets import load_device

NODES = [
    # node, operator, module, its call, name of the op
    ("linear", "linear", "up", 0, "up"),
    ("relu", "relu", "up.act", 0, "up.act"),
    ("relu_1", "relu", "up.act", 1, "up.act@1"),
    ("linear_1", "linear", "down", 0, "down.linear"),
    ("softmax", "softmax", "down", 0, "down.softmax"),
    ("linear_2", "linear", "down", 0, "down.linear_1"),
    ("relu_2", "relu", "", 0, "relu_2"),
    ("relu_3", "relu", "relu_2", 0, "relu_2_1"),
    ("relu_4", "relu", None, 0, "relu_4"),
]


def test_ops_are_called_as_their_modules() -> None:
    """The only op of a module has its path, others their kind behind it; no name is that of another op's node."""
    types = {"x": tensor(4, 4), **{name: tensor(4, 4) for name, *_ in NODES}}
    calls = []
    for (name, kind, module, call, _), read in zip(NODES, ["x", *(row[0] for row in NODES)], strict=False):
        operands = {"input": read, "weight": "x"} if kind == "linear" else {"self": read}
        one = node(kind, [name], module, **operands)
        if call:
            stack = one["metadata"]["nn_module_stack"]
            one["metadata"]["nn_module_stack"] = stack.replace(f"__{module},", f"__{module}@{call},")
        calls.append(one)
    # the module "up" holds "up.act" and has one op of its own, which is told by its kind
    expected = ["up.linear", *(row[-1] for row in NODES[1:])]
    data = archive(program(types, calls, outputs=[NODES[-1][0]]))
    graph = read_with_modules(data, source="m.pt2", system=load_device(), name="m").graph
    assert list(graph.op_names) == expected
    assert node_names(graph) == [row[0] for row in NODES]


def _with_node_names(document: Any, names: dict[str, str]) -> Any:
    """Return a document with each name of an op replaced by its node's, keys included."""
    if isinstance(document, dict):
        return {names.get(key, key): _with_node_names(value, names) for key, value in document.items()}
    if isinstance(document, list):
        return [_with_node_names(one, names) for one in document]
    return names.get(document, document) if isinstance(document, str) else document


PATH = sample_path("resnet50", "pt2")


@pytest.fixture(scope="module")
def model() -> mtpp.Model:
    """Return a program whose ops are not called as its nodes are."""
    return mtpp.read(PATH)


def _before(model: mtpp.Model, document: Any) -> Any:
    """Return a document as it was before ops were called as their modules."""
    names = dict(zip(model.graph.op_names, node_names(model.graph), strict=True))
    assert names["layer1.0.conv1"] == "conv2d_1"
    old = _with_node_names(document, names)
    assert old != document
    return old


def test_plans_with_names_of_nodes_stay_valid(model: mtpp.Model, tmp_path: Path) -> None:
    """They are verified with a file and with a model as read, and scored."""
    plan = mtpp.partition(model, 2)
    old = _before(model, plan.document())
    (tmp_path / "plan.json").write_text(json.dumps(old))
    assert mtpp.verify(tmp_path / "plan.json", model=PATH).passed
    assert mtpp.verify(old, model=model).passed
    assert mtpp.evaluate(model, old).bottleneck == plan.bottleneck


@pytest.mark.slow
def test_other_results_with_names_of_nodes_stay_valid(model: mtpp.Model, tmp_path: Path) -> None:
    """Tables and training plans are verified; a page draws the plan by its own names."""
    table = mtpp.certify(model, [2], jobs=1)
    planner = mtpp.Pfeife(micro_batches=2, schedule="1f1b")
    trained = mtpp.plan_training(PATH, planner=planner, devices=2, memory="16GiB", bandwidth="25GB/s", time_limit_s=1)
    for one in (table, trained):
        (tmp_path / "result.json").write_text(json.dumps(_before(model, one.document())))
        assert mtpp.verify(tmp_path / "result.json", model=PATH).passed
    page = mtpp.report(_before(model, mtpp.partition(model, 2).document()), model=PATH).html
    assert "no partition of this model" not in page
    assert '"conv2d_1"' in page
