"""Plans of models that can be split have no cut where no stage file can be made."""

from __future__ import annotations

from pathlib import Path

import onnx
from exported_programs import FLOAT, INT64, archive, node, program, symbol, tensor
from onnx import TensorProto, helper
from onnx_text import built, nodes_of

import mtpp

WIDE = 64


def optional_model(folder: Path) -> Path:
    """Write a model whose If returns an optional that three ops read."""
    branches = (f"{kind} () => (o) {{ a = {kind}(x) o = Optional(a) }}" for kind in ("Relu", "Neg"))
    nodes = nodes_of(
        "o = If(c) <then_branch = {}, else_branch = {}> t0 = OptionalGetElement(o) t1 = OptionalGetElement(o) "
        "m0 = MatMul(t0, t0) m1 = MatMul(t1, t1) y = Add(m0, m1)".format(*branches)
    )
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [WIDE, WIDE]))
    for branch in nodes[0].attribute:
        branch.g.output[0].type.CopyFrom(kind)
    inputs = {"x": [WIDE, WIDE], "c": (TensorProto.BOOL, [])}
    path = folder / "optional.onnx"
    onnx.save(built(nodes, inputs, {"y": [WIDE, WIDE]}, ir_version=10), path)
    return path


def sized_by_data(folder: Path) -> Path:
    """Write a program that picks rows by a mask, between two ops whose sizes are fixed."""
    count = symbol("u0")
    document = program(
        {
            "x": tensor(WIDE, WIDE),
            "p_w": tensor(WIDE, WIDE),
            "a": tensor(WIDE, WIDE),
            "picked": tensor(count, 2, dtype=INT64),
            "rows": tensor(count, dtype=FLOAT),
            "y": tensor(),
        },
        [
            node("mm", ["a"], self="x", mat2="p_w"),
            node("nonzero", ["picked"], self="a"),
            node("relu", ["rows"], self="picked"),
            node("sum", ["y"], self="rows"),
        ],
        stored={"p_w": "parameter"},
        outputs=["y"],
    )
    path = folder / "picked.pt2"
    path.write_bytes(archive(document))
    return path


def test_optionals_do_not_cross(tmp_path: Path) -> None:
    """Makers and readers of an optional share a stage, and the plan says so; the engine ignored, they may not."""
    model = mtpp.read(optional_model(tmp_path))
    plan = mtpp.partition(model, 3)
    readers = {plan.assignment[name] for name in model.graph.op_names if "If" in name or "Optional" in name}
    assert len(readers) == 1
    assert "3 ops around optionals kept together: no stage can be cut there" in plan.assumptions
    assert mtpp.split(model, plan, check=True).passed
    assert mtpp.verify(plan, model=model).passed
    free = mtpp.partition(model, 3, ignore_engine=True)
    assert free.bottleneck <= plan.bottleneck
    assert "3 ops around optionals cut freely: such stages cannot be written" in free.assumptions


def test_sizes_of_data_do_not_cross(tmp_path: Path) -> None:
    """Ops between which a tensor goes whose size only a run tells share a stage of an exported program."""
    model = mtpp.read(sized_by_data(tmp_path), dims="auto")
    plan = mtpp.partition(model, 4)
    stages = [plan.assignment[name] for name in ("picked", "rows", "y")]
    assert len(set(stages)) == 1
    assert any("sizes that depend on data kept together" in text for text in plan.assumptions)


def test_models_without_such_tensors_are_cut_anywhere() -> None:
    """Nothing is assumed of a model of plain tensors."""
    plan = mtpp.partition(mtpp.datasets.sample_path("resnet50"), 4)
    assert not any("together" in text for text in plan.assumptions)
