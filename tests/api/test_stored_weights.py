"""Weights as files hold them: stored types, each once a stage; in plans, searches, checks and files of stages alike."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_text import built, function_of
from oracles import NEVER, brute_force_optimum
from plans_beside_models import written
from processes import run

import mtpp
from mtpp.errors import Infeasible
from mtpp.inference.weights import Weight

BODY = "b () => (o) {{ o = MatMul(h, {}) }}"

QDQ = {
    "f16": (4 * 256 * 256 * 2, 256 * 256 * 2),
    "int8": (4 * (256 * 256 + 256 * 4 + 256), 256 * 256 + 256 * 4 + 256),
    "int4": (4 * (256 * 256 // 2 + 8 * 256 * 4), 256 * 256 // 2 + 8 * 256 * 4),
    "nbits": (4 * (256 * 256 // 2 + 2048 * 4), 256 * 256 // 2 + 2048 * 4),
}
"""Bytes in the file: of the whole model of four products, and of each."""


def stored_bytes(model: onnx.ModelProto) -> int:
    """Return the bytes of all initializers, the indices of sparse ones included, and of constants among the nodes."""
    tensors = [*model.graph.initializer]
    for sparse in model.graph.sparse_initializer:
        tensors += [sparse.values, sparse.indices]
    tensors += [
        a.t for node in model.graph.node if node.op_type == "Constant" for a in node.attribute if a.name == "value"
    ]
    return sum(len(tensor.raw_data) or numpy_helper.to_array(tensor).nbytes for tensor in tensors)


def held(plan: Any) -> list[int]:
    """Return the parameters of each stage that runs an op."""
    return [row["param_bytes"] for row in json.loads(plan.to_json())["stages"] if row["ops"]]


def in_files(path: Path, plan: Any, folder: Path) -> list[int]:
    """Return the bytes that the files of stages hold."""
    result = mtpp.split(path, json.loads(plan.to_json()), folder)
    return [stored_bytes(onnx.load(folder / row["file"])) for row in result.document()["stages"]]


@pytest.mark.parametrize("name", QDQ)
def test_packed_weights_count_as_stored(name: str, shared_data: Path, tmp_path: Path) -> None:
    """Scales and zero points too; a limit that is met is met, one byte less is proven too little."""
    path = shared_data / "cases" / "qdq-memory" / f"{name}.onnx"
    whole, each = QDQ[name]
    model = mtpp.read(path)
    assert model.graph.all_bytes == sum(model.graph.param_bytes.tolist()) == whole == stored_bytes(onnx.load(path))
    assert model.graph.metadata["parameter_bytes"] == whole
    assert "assumptions" not in model.graph.metadata
    for k, limit in ((1, whole), (2, 2 * each), (4, each)):
        plan = mtpp.partition(mtpp.read(path, stage_memory=f"{limit}B"), k)
        assert sum(held(plan)) == whole
        assert in_files(path, plan, tmp_path / f"stages-{k}") == held(plan)
        (tmp_path / "plan.json").write_text(plan.to_json())
        assert mtpp.verify(tmp_path / "plan.json", path).verdict == "ok"
        with pytest.raises(Infeasible, match="proven infeasible"):
            mtpp.partition(mtpp.read(path, stage_memory=f"{limit - 1}B"), k)


def test_the_command_s_exit_code_at_a_limit(shared_data: Path) -> None:
    """0 where a file of a stage just fits, 1 where it does not."""
    path = shared_data / "cases" / "qdq-memory" / "int4.onnx"
    _, each = QDQ["int4"]
    assert run("partition", path, "-k", "4", "--stage-memory", f"{each}B").returncode == 0
    missed = run("partition", path, "-k", "4", "--stage-memory", f"{each - 1}B")
    assert (missed.returncode, "proven infeasible" in missed.stderr) == (1, True)


def tied() -> onnx.ModelProto:
    """Return a small language model whose embedding is its last product too."""
    generator = np.random.default_rng(0)
    weights = {
        "embed": generator.standard_normal((50, 16)).astype(np.float32),
        "up": generator.standard_normal((16, 64)).astype(np.float32),
        "down": generator.standard_normal((64, 16)).astype(np.float32),
        "half": np.float32(0.5),
    }
    nodes = (
        "[tokens] e = Gather(embed, ids) [up] u = MatMul(e, up) [a] ua = Mul(u, half) [down] d = MatMul(ua, down) "
        "[b] db = Mul(d, half) t = Transpose <perm = [1, 0]>(embed) [head] y = MatMul(db, t)"
    )
    return built(nodes, {"ids": (TensorProto.INT64, [1, 8])}, {"y": [1, 8, 50]}, weights)


def test_a_tied_embedding_counts_once_a_stage(tmp_path: Path) -> None:
    """A stage with both ends holds it once, two stages once each, as their files do."""
    path = tmp_path / "tied.onnx"
    path.write_bytes(tied().SerializeToString())
    model = mtpp.read(path)
    embed, matrix = 50 * 16 * 4, 16 * 64 * 4
    assert model.graph.weights.rows(model.graph.op_names) == [
        Weight("embed", embed, ["tokens", "head"]),
        Weight("half", 4, ["a", "b"]),
    ]
    assert model.graph.all_bytes == stored_bytes(tied()) == embed + 2 * matrix + 4
    one = mtpp.partition(mtpp.read(path, stage_memory=f"{embed + 2 * matrix + 4}B"), 1)
    assert held(one) == in_files(path, one, tmp_path / "one") == [embed + 2 * matrix + 4]
    two = mtpp.partition(mtpp.read(path, stage_memory=f"{embed + matrix + 4}B"), 2)
    assert held(two) == in_files(path, two, tmp_path / "two") == [embed + matrix + 4] * 2
    for name, plan in (("one", one), ("two", two)):
        (tmp_path / f"{name}.json").write_text(plan.to_json())
        assert mtpp.verify(tmp_path / f"{name}.json", path).verdict == "ok"
    with pytest.raises(Infeasible, match="proven infeasible"):
        mtpp.partition(mtpp.read(path, stage_memory=f"{embed + 2 * matrix + 3}B"), 1)
    with pytest.raises(Infeasible):
        mtpp.partition(mtpp.read(path, stage_memory=f"{embed + matrix + 3}B"), 2)


def test_a_converted_model_has_the_same_weights(tmp_path: Path) -> None:
    """A graph file is cut like the model; a plan that embeds its graph is verified alone."""
    path, graph = tmp_path / "tied.onnx", tmp_path / "graph.json"
    path.write_bytes(tied().SerializeToString())
    mtpp.convert(path, graph)
    assert json.loads(graph.read_text())["weights"][0] == {
        "name": "embed", "bytes": 3200, "readers": ["tokens", "head"],
    }  # fmt: skip
    asked: dict[str, Any] = {"stage_memory": "8KiB"}
    first, second = (json.loads(mtpp.partition(mtpp.read(one, **asked), 2).to_json()) for one in (path, graph))
    assert (first["bottleneck"], first["stages"]) == (second["bottleneck"], second["stages"])
    done = run("partition", path, "-k", "2", "--stage-memory", "8KiB", "--embed", "-o", tmp_path / "plan.json")
    assert done.returncode == 0
    assert run("verify", tmp_path / "plan.json", cwd=tmp_path).returncode == 0


def test_a_shared_scale_is_one_weight(tmp_path: Path) -> None:
    """Two int8 matrices behind the same scale and zero point, and one of them behind a Cast as well."""
    generator = np.random.default_rng(1)
    stored = {
        "p": generator.integers(-9, 9, (120, 120)).astype(np.int8),
        "q": generator.integers(-9, 9, (120, 120)).astype(np.int8),
        "s": np.float32(0.1),
        "z": np.int8(3),
    }
    nodes = (
        "wp = DequantizeLinear(p, s, z) [first] a = MatMul(x, wp) "
        "wq = DequantizeLinear(q, s, z) [second] b = MatMul(a, wq) pf = Cast <to = 1>(p) [third] y = MatMul(b, pf)"
    )
    path = tmp_path / "shared.onnx"
    path.write_bytes(built(nodes, {"x": [4, 120]}, {"y": [4, 120]}, stored).SerializeToString())
    graph = mtpp.read(path).graph
    assert graph.weights.rows(graph.op_names) == [
        Weight("p", 14400, ["first", "third"]),
        Weight("s", 4, ["first", "second"]),
        Weight("z", 1, ["first", "second"]),
    ]
    assert graph.param_bytes.tolist() == [0, 14400, 0]
    assert graph.read_bytes.tolist() == [14405, 14405, 14400]
    assert graph.all_bytes == 28805
    plan = mtpp.partition(mtpp.read(path, stage_memory="14405B"), 3)
    assert held(plan) == in_files(path, plan, tmp_path / "stages")


def test_bodies_of_the_same_name_hold_weights_of_their_own() -> None:
    """Nodes called alike, with branches that store tensors called alike; what both capture is one weight."""
    branches = []
    for _ in range(2):
        text = "g (float[4, 4] h, bool c) => (float[4, 4] y) { [same] y = If(c) <then_branch = %s, else_branch = %s> }"
        node = onnx.parser.parse_graph(text % (BODY.format("w"), BODY.format("outer"))).node[0]
        node.attribute[0].g.initializer.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "w"))
        branches.append(node)
    branches[1].output[0] = "z"
    branches[1].attribute[0].g.node[0].input[0] = branches[1].attribute[1].g.node[0].input[0] = "y"
    model = built(
        branches,
        {"h": [4, 4], "c": (TensorProto.BOOL, [])},
        {"z": [4, 4]},
        {"outer": np.ones((4, 4), np.float32)},
    )
    graph = mtpp.read(model.SerializeToString()).graph
    assert graph.weights.rows(graph.op_names) == [Weight("outer", 64, ["same", "same_2"])]
    assert graph.param_bytes.tolist() == [64, 64]
    assert graph.metadata["parameter_bytes"] == stored_bytes(model) + 2 * 64


def test_equal_tensors_of_two_names_are_two_weights(tmp_path: Path) -> None:
    """The file holds both; one that is an output of the model too is still one."""
    matrix = np.ones((8, 8), np.float32)
    nodes = "[a] p = MatMul(x, v) [b] q = MatMul(p, w) [c] y = MatMul(q, v)"
    path = tmp_path / "twins.onnx"
    model = built(nodes, {"x": [8, 8]}, {"y": [8, 8], "v": [8, 8]}, {"v": matrix, "w": matrix})
    path.write_bytes(model.SerializeToString())
    graph = mtpp.read(path).graph
    assert graph.weights.rows(graph.op_names) == [Weight("v", 256, ["a", "c"])]
    assert graph.param_bytes.tolist() == [0, 256, 0]
    plan = mtpp.partition(mtpp.read(path), 3)
    assert held(plan) == in_files(path, plan, tmp_path / "stages")


def random_layers(seed: int) -> tuple[onnx.ModelProto, list[dict[str, int]]]:
    """Return products with a few weights in a row, some packed, and what the file holds for each by name."""
    pick, width = random.Random(seed), 8
    count = pick.randint(2, 3)
    stored: dict[str, np.ndarray] = {"s": np.float32(0.5)}  # type: ignore[dict-item]
    parts: dict[str, dict[str, int]] = {}
    nodes = []
    for i in range(count):
        name, kind = f"w{i}", pick.choice(("plain", "half", "packed"))
        made = np.zeros((width, width), {"plain": np.float32, "half": np.float16, "packed": np.int8}[kind])
        stored[name] = made
        parts[f"f{i}"] = {name: made.nbytes} | ({"s": 4} if kind == "packed" else {})
        if kind == "plain":
            nodes.append(helper.make_node("Identity", [name], [f"f{i}"]))
        elif kind == "half":
            nodes.append(helper.make_node("Cast", [name], [f"f{i}"], to=TensorProto.FLOAT))
        else:
            nodes.append(helper.make_node("DequantizeLinear", [name, "s"], [f"f{i}"]))
    tensors, reads = ["x"], []
    for i in range(pick.randint(3, 6)):
        weight = pick.choice(list(parts))
        reads.append(parts[weight])
        nodes.append(helper.make_node("MatMul", [pick.choice(tensors[-2:]), weight], [f"t{i}"], name=f"op{i}"))
        tensors.append(f"t{i}")
    return built(nodes, {"x": [pick.choice((4, 400)), width]}, tensors[1:], stored), reads


@pytest.mark.filterwarnings("ignore::mtpp.MtppWarning")
def test_random_models_meet_brute_force(tmp_path: Path) -> None:
    """No bound is above the optimum, no plan below it; stages and their files hold what the model says."""
    ended = {True: 0, False: 0}
    for seed in range(40):
        model, reads = random_layers(seed)
        pick = random.Random(seed)
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        k = pick.randint(1, 3)
        limit = int(mtpp.read(path).graph.all_bytes * pick.uniform(0.4, 1.1)) + 1
        read = mtpp.read(path, stage_memory=f"{limit}B")
        best = brute_force_optimum(read.graph, read.instance(k).device, k)
        ended[best == NEVER] += 1
        if best == NEVER:
            with pytest.raises(Infeasible):
                mtpp.partition(read, k)
            continue
        plan = mtpp.partition(read, k)
        document = json.loads(plan.to_json())
        assert document["lower_bound"]["value"] <= best <= document["bottleneck"], seed
        stages: list[dict[str, int]] = [{} for _ in range(k)]
        for op, needed in enumerate(reads):
            stages[document["assignment"][f"op{op}"]] |= needed
        assert [row["param_bytes"] for row in document["stages"]] == [sum(one.values()) for one in stages], seed
        assert held(plan) == in_files(path, plan, tmp_path / f"stages-{seed}"), seed
        (tmp_path / "plan.json").write_text(plan.to_json())
        assert mtpp.verify(tmp_path / "plan.json", path).verdict == "ok", seed
    assert min(ended.values()) > 3


def test_a_tied_program_counts_its_weight_once_a_stage(tmp_path: Path) -> None:
    """A parameter under two names is one; so it is in the files of stages. Trained, it is one of each reader."""
    torch = pytest.importorskip("torch")

    class Tied(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = torch.nn.Embedding(50, 16)
            self.middle = torch.nn.Linear(16, 16, bias=False)
            self.head = torch.nn.Linear(16, 50, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, ids: Any) -> Any:
            return self.head(self.middle(self.tokens(ids)).relu())

    path = tmp_path / "tied.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(Tied().eval(), (torch.zeros(1, 8, dtype=torch.int64),)), path)
    graph = mtpp.read(path).graph
    (weight,) = graph.weights.rows(graph.op_names)
    embed, matrix = 50 * 16 * 4, 16 * 16 * 4
    assert (weight.name, weight.bytes, len(weight.readers)) == ("tokens.weight", embed, 2)
    assert graph.all_bytes == graph.metadata["parameter_bytes"] == embed + matrix
    assert list(graph.trainable_bytes) == graph.read_bytes.tolist()
    for k, limit in ((1, embed + matrix), (2, embed + matrix)):
        plan = mtpp.partition(mtpp.read(path, stage_memory=f"{limit}B"), k)
        folder = tmp_path / f"stages-{k}"
        result = mtpp.split(path, json.loads(plan.to_json()), folder)
        found = []
        for row in result.document()["stages"]:
            program = torch.export.load(folder / row["file"])
            tensors = [*program.state_dict.values(), *program.constants.values()]
            storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors}
            found.append(sum(storages.values()))
        assert found == held(plan)
    with pytest.raises(Infeasible, match="proven infeasible"):
        mtpp.partition(mtpp.read(path, stage_memory=f"{embed + matrix - 1}B"), 1)


def test_what_profiling_holds_is_as_computed_with(shared_data: Path) -> None:
    """Folded weights of an int4 model are made by what runs it."""
    graph = mtpp.read(shared_data / "cases" / "qdq-memory" / "int4.onnx").graph
    assert graph.metadata["computed_bytes"] == 4 * 256 * 256 * 4


@pytest.mark.parametrize(("memory", "proven"), [("25KiB", True), ("30KiB", False)])
def test_the_memory_that_training_needs_takes_a_weight_once(memory: str, proven: bool, tmp_path: Path) -> None:
    """Plans keep it for each reader: one with 30 KiB on each of two devices is not found, and not excluded."""
    path = tmp_path / "tied.onnx"
    path.write_bytes(tied().SerializeToString())
    graph = mtpp.read(path).graph
    asked = ("--planner", "pfeife", "--devices", "2", "--micro-batches", "1", "--memory", memory)
    none = written(tmp_path, "plan", path, *asked)
    kept = sum(graph.tensor_bytes.tolist())
    assert none["memory_bound"]["value"] == (4 * graph.all_bytes + kept) // 2 == 26408
    assert (4 * sum(graph.read_bytes.tolist()) + kept) // 2 > 30 * 1024
    assert none["proven"] is proven
    assert mtpp.verify(none, path).verdict == "ok"
    assert mtpp.verify({**none, "proven": not proven}, path).verdict == "false"
    bound = {**none["memory_bound"], "value": 26409}
    assert mtpp.verify({**none, "memory_bound": bound}, path).verdict == "false"


def test_measured_costs_leave_weights_as_they_are(tmp_path: Path) -> None:
    """A graph file with times of its own gives work alone."""
    path, costs = tmp_path / "tied.onnx", tmp_path / "costs.json"
    path.write_bytes(tied().SerializeToString())
    mtpp.convert(path, costs)
    document = json.loads(costs.read_text())
    for op in document["ops"]:
        op["work"] = 1000
        op.pop("param_bytes", None)
    costs.write_text(json.dumps({key: value for key, value in document.items() if key != "weights"}))
    graph, plain = mtpp.read(path, costs=costs).graph, mtpp.read(path).graph
    assert set(graph.work) == {1000}
    assert graph.weights.rows(graph.op_names) == plain.weights.rows(plain.op_names)
    assert graph.param_bytes.tolist() == plain.param_bytes.tolist()


def test_calls_of_a_function_share_what_they_are_given(tmp_path: Path) -> None:
    """A weight that two calls read is one; constants in the body are of each call, as files of stages hold them."""
    body = function_of("F (a, w) => (c) { k = Constant <value = float {2.0}>() b = MatMul(a, w) c = Mul(b, k) }")
    model = built(
        "p = local.F(x, w) y = local.F(p, w)",
        {"x": [4, 4]},
        {"y": [4, 4]},
        {"w": np.ones((4, 4), np.float32)},
        domains=["local"],
        functions=[body],
        opset=20,
    )
    path = tmp_path / "calls.onnx"
    path.write_bytes(model.SerializeToString())
    graph = mtpp.read(path).graph
    assert [(one.name, one.bytes) for one in graph.weights.rows(graph.op_names)] == [("w", 64)]
    assert graph.param_bytes.tolist() == [0, 4, 0, 4]
    assert held(mtpp.partition(mtpp.read(path, stage_memory="68B"), 2)) in ([68, 68], [64, 68], [68, 64])


def test_a_branch_that_cannot_run_holds_its_weights(tmp_path: Path) -> None:
    """Its file is the whole op's; what it captures counts once with the readers outside."""
    text = """g (float[4, 8] x, bool c) => (float[4, 8] y) {
        [choose] h = If(c) <
            then_branch = t () => (o) { o = MatMul(x, w) },
            else_branch = e () => (o) { q = MatMul(x, small) o = MatMul(q, w) }>
        [after] y = MatMul(h, w)
    }"""
    graph = onnx.parser.parse_graph(text)
    for branch in graph.node[0].attribute:
        if branch.name == "else_branch":
            branch.g.initializer.append(numpy_helper.from_array(np.ones((2, 8), np.float32), "small"))
    graph.initializer.append(numpy_helper.from_array(np.ones((8, 8), np.float32), "w"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    read = mtpp.read(model.SerializeToString()).graph
    assert read.weights.rows(read.op_names) == [Weight("w", 256, ["choose", "after"])]
    assert read.param_bytes.tolist() == [64, 0]
