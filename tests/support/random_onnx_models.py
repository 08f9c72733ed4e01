"""Small random ONNX models that hold what real ones do, and random partitions of their ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mtpp.formats.io.new_folder import new_folder
from mtpp.formats.onnx.reader import Reading, read_with_nodes
from mtpp.formats.onnx.stages import Split, split_model
from mtpp.formats.onnx.stages.writing import write_split
from mtpp.formats.results.stage_manifest import OURS, StageManifest
from mtpp.formats.results.stage_records import PlannedStage
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device

SHAPE = [2, 4]
_UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Softmax", "Identity")
_BINARY = ("Add", "Sub", "Mul", "Max")


class _Builder:
    """Adds nodes at random; every tensor in ``pool`` is a float of 2 × 4."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[TensorProto] = []
        self.functions = _functions()
        self.pool = ["x", "y"]
        self._count = 0

    def name(self, stem: str = "t") -> str:
        self._count += 1
        # Names of tensors are any text: none of them may become the name of a file.
        prefix = ("", "../", "/", "a/b\\", "\n")[int(self.random.integers(5))]
        return f"{prefix}{stem}{self._count}"

    def pick(self) -> str:
        late = int(min(len(self.pool) - 1, self.random.geometric(0.25)))
        return self.pool[-1 - late if self.random.random() < 0.8 else int(self.random.integers(len(self.pool)))]

    def node(self, kind: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> list[str]:
        made = [self.name() for _ in range(outputs)]
        label = "" if self.random.random() < 0.3 else made[0]
        self.nodes.append(helper.make_node(kind, inputs, made, name=label, **attributes))
        return made

    def store(self, array: np.ndarray) -> str:
        name = self.name("w")
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int) -> str:
        return self.store(self.random.standard_normal(shape).astype(np.float32))

    def step(self) -> None:
        choice = int(self.random.integers(11))
        pool = self.pool
        if choice < 3:
            pool += self.node(str(self.random.choice(_UNARY)), [self.pick()])
        elif choice < 5:
            pool += self.node(str(self.random.choice(_BINARY)), [self.pick(), self.pick()])
        elif choice == 5:
            pool += self.node("MatMul", [self.pick(), self.weight(4, 4)])
        elif choice == 6:  # several outputs, or one of two left out
            if self.random.random() < 0.5:
                first, second = self.node("Split", [self.pick()], 2, axis=1, num_outputs=2)
                pool += self.node("Concat", [second, first], axis=1)
            else:
                pool += self.node("Dropout", [self.pick()])
                self.nodes[-1].output.append("")
        elif choice == 7:  # a size that the file computes from the shape of one activation, for another
            (shape,) = self.node("Shape", [self.pick()])
            (rows,) = self.node("Gather", [shape, self.store(np.array([0]))])
            (sizes,) = self.node("Concat", [rows, self.store(np.array([-1]))], axis=0)
            (scale,) = self.node("Sqrt", self.node("Cast", [rows], to=TensorProto.FLOAT))
            (flat,) = self.node("Reshape", [self.pick(), sizes])
            pool += self.node("Div", [flat, scale])
        elif choice == 8:  # a large constant that is computed
            (filled,) = self.node(
                "ConstantOfShape",
                [self.store(np.array([4, 4]))],
                value=helper.make_tensor("", TensorProto.FLOAT, [1], [0.25]),
            )
            pool += self.node("MatMul", [self.pick(), filled])
        elif choice == 9:
            pool += self._if()
        else:
            made = self.name()
            kind = str(self.random.choice(["Block", "Gate"]))
            self.nodes.append(helper.make_node(kind, [self.pick(), self.pick()], [made], domain="local", name=made))
            pool.append(made)

    def _if(self) -> list[str]:
        """Return the output of an If whose branches capture an activation each, one of them a weight too."""
        (total,) = self.node("ReduceSum", [self.pick()], keepdims=0)
        (condition,) = self.node("Greater", [total, self.store(np.array(0, np.float32))])
        branches = {}
        for key in ("then_branch", "else_branch"):
            inner, out = self.name("inner"), self.name("out")
            body = [
                helper.make_node("MatMul", [self.pick(), self.weight(4, 4)], [inner]),
                helper.make_node("Tanh", [inner], [out]),
            ]
            value = helper.make_tensor_value_info(out, TensorProto.FLOAT, SHAPE)
            branches[key] = helper.make_graph(body, key, [], [value])
        return self.node("If", [condition], **branches)


def _functions() -> list[onnx.FunctionProto]:
    """Return a gate, and a block that calls it twice."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    gate = [helper.make_node("Sigmoid", ["b"], ["s"], name="s"), helper.make_node("Mul", ["a", "s"], ["c"], name="m")]
    block = [
        helper.make_node("Gate", ["p", "q"], ["g"], domain="local"),
        helper.make_node("Constant", [], ["half"], value=helper.make_tensor("", TensorProto.FLOAT, [], [0.5])),
        helper.make_node("Mul", ["g", "half"], ["h"]),
        helper.make_node("Gate", ["h", "p"], ["r"], domain="local"),
    ]
    return [
        helper.make_function("local", "Gate", ["a", "b"], ["c"], gate, opsets),
        helper.make_function("local", "Block", ["p", "q"], ["r"], block, opsets),
    ]


def random_model(seed: int, steps: int = 12) -> onnx.ModelProto:
    """Return a model of two inputs; its outputs are activations, and now and then an input, a weight or a size."""
    builder = _Builder(seed)
    while len(builder.pool) < steps + 2:
        builder.step()
    graph = builder.nodes
    results = list(dict.fromkeys([builder.pool[-1], builder.pick()]))
    extra = int(builder.random.integers(4))
    if extra == 1:
        results.append("x")
    elif extra == 2:
        results.append(builder.weight(2, 4))
    elif extra == 3:
        results += builder.node("Shape", [builder.pick()])
    model = helper.make_model(
        helper.make_graph(
            graph,
            "random",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 4]) for name in ("x", "y")],
            [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(results)],
            builder.stored,
        ),
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("local", 1)],
        functions=builder.functions,
        ir_version=10,
    )
    for value in model.graph.output:
        is_size = extra == 3 and value.name == results[-1]
        dtype, shape = (TensorProto.INT64, [2]) if is_size else (TensorProto.FLOAT, SHAPE)
        value.CopyFrom(helper.make_tensor_value_info(value.name, dtype, shape))
    return model


def random_labels(graph: CostGraph, k: int, seed: int) -> list[int]:
    """Return a stage for each op that no edge contradicts; some of 0 … k − 1 may stay empty."""
    random = np.random.default_rng(seed)
    sources, targets = graph.edges
    before: dict[int, list[int]] = {}
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        before.setdefault(target, []).append(source)
    labels = [0] * graph.op_count
    for op in graph.order.tolist():
        earliest = max((labels[source] for source in before.get(op, ())), default=0)
        leap = random.random() < 0.3
        labels[op] = int(random.integers(earliest, k)) if leap else earliest
    return labels


def read_model(model: onnx.ModelProto | bytes, path: Path, dims: dict[str, int] | None = None) -> Reading:
    """Write a model to *path* and read it."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    path.write_bytes(data)
    return read_with_nodes(path, data, source=path.name, system=load_device(), dims=dims, spare_dims=True)


def split_into(folder: Path, path: Path, reading: Reading, labels: list[int]) -> tuple[StageManifest, Split]:
    """Split the model at *path* and write the stages to *folder*."""
    data = path.read_bytes()
    split = split_model(reading, data, labels, source=path.name, folder=path.parent)
    k = max(labels) + 1
    about = {"name": path.stem, "sha256": "", "ops": len(labels), "k": k, "time_unit": "ps", "ticks_per_unit": 1}
    with new_folder(folder, OURS) as draft:
        manifest, fault = write_split(
            draft, split, dict.fromkeys(range(k), PlannedStage(1, 1)), {**about, "bottleneck": 1, "work": k}, path.name
        )
    assert fault is None
    return manifest, split
