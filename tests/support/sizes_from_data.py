"""Random ONNX models that compute a size from data, and the largest sizes that their tensors have over many runs.

``python tests/support/sizes_from_data.py FIRST LAST`` tries models and prints each size that is too small, and counts.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from stage_equality import onnx_session

import mtpp

RUNS = 300


class _Builder:
    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []
        self.rows, self.columns = self.choice.choice((3, 4, 6)), self.choice.choice((5, 8))

    def const(self, value: Any, dtype: Any = np.int64) -> str:
        """Store a constant."""
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
        return name

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or of each."""
        names = [f"{kind.lower()}{len(self.nodes)}_{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def total(self) -> str:
        """Sum everything: a number without limits."""
        return self.op("ReduceSum", "x", keepdims=0)

    def flat(self) -> str:
        """Return all elements in a row."""
        return self.op("Reshape", "x", self.const([-1]))

    def axis_of(self, tensor: str, axis: int) -> str:
        """Return the size of an axis as a number."""
        return self.op("Gather", self.op("Shape", tensor), self.const(axis), axis=0)

    def number(self) -> str:
        """Compute a number that has a least and a most from data."""
        return self.choice.choice(_NUMBERS)(self)

    def changed(self, number: str) -> str:
        """Compute something from a number."""
        for _ in range(self.choice.randrange(3)):
            number = self.choice.choice(_CHANGES)(self, number)
        return number

    def listed(self, *numbers: Any) -> str:
        """Join numbers to a list; those that are none are constants."""
        parts = [
            self.op("Unsqueeze", one, self.const([0])) if isinstance(one, str) else self.const([one]) for one in numbers
        ]
        return self.op("Concat", *parts, axis=0)


def _distinct(b: _Builder) -> str:
    steps = b.op("Clip", b.op("Mul", b.flat(), b.const(3, np.float32)), b.const(0, np.float32), b.const(4, np.float32))
    return b.axis_of(b.op("Unique", b.op("Cast", steps, to=TensorProto.INT64)), 0)


def _scaled(b: _Builder) -> str:
    part = b.op("Mul", b.op("Sigmoid", b.total()), b.const(6, np.float32))
    return b.op("Cast", b.op(b.choice.choice(("Ceil", "Floor", "Round")), part), to=TensorProto.INT64)


def _whole(b: _Builder) -> str:
    return b.op("Cast", b.total(), to=TensorProto.INT64)


def _positive(b: _Builder) -> str:
    return b.op("Greater", "x", b.const(0, np.float32))


_NUMBERS: Sequence[Callable[[_Builder], str]] = (
    lambda b: b.op("ReduceSum", b.op("Cast", "m", to=TensorProto.INT64), keepdims=0),
    lambda b: b.op("ReduceSum", b.op("Cast", _positive(b), to=TensorProto.INT64), keepdims=0),
    lambda b: b.op("ArgMax", b.flat(), axis=0, keepdims=0),
    lambda b: b.axis_of(b.op("NonZero", "m"), 1),
    lambda b: b.axis_of(b.op("Compress", "x", "m", axis=0), b.choice.choice((0, 1))),
    _distinct,
    lambda b: b.op("Clip", _whole(b), b.const(1), b.const(b.choice.choice((2, 4, 6)))),
    lambda b: b.op("Mod", _whole(b), b.const(b.choice.choice((3, 5, 7)))),
    _scaled,
    lambda b: b.op("Where", b.op("Greater", b.total(), b.const(0, np.float32)), b.const(2), b.const(5)),
    lambda b: b.op("Gather", b.op("TopK", b.flat(), b.const([2]), outputs=2, axis=0)[1], b.const(0), axis=0),
)


def _branched(b: _Builder, number: str) -> str:
    place = len(b.nodes)
    kind = helper.make_tensor_value_info
    here = helper.make_node("Identity", [number], [f"then{place}"])
    there = helper.make_node("Constant", [], [f"else{place}"], value_int=b.choice.choice((2, 7)))
    return b.op(
        "If",
        b.op("Greater", b.total(), b.const(0, np.float32)),
        then_branch=helper.make_graph([here], "then", [], [kind(f"then{place}", TensorProto.INT64, [])]),
        else_branch=helper.make_graph([there], "else", [], [kind(f"else{place}", TensorProto.INT64, [])]),
    )


_CHANGES: Sequence[Callable[[_Builder, str], str]] = (
    lambda b, n: b.op("Add", n, b.const(b.choice.choice((1, 2)))),
    lambda b, n: b.op("Mul", n, b.const(2)),
    lambda b, n: b.op("Min", n, b.const(b.choice.choice((3, 4)))),
    lambda b, n: b.op("Max", n, b.const(b.choice.choice((1, 2)))),
    lambda b, n: b.op("Sub", b.const(b.choice.choice((9, 12))), n),
    lambda b, n: b.op("Div", n, b.const(2)),
    lambda b, n: b.op("Add", n, b.number()),
    lambda b, n: b.op("Sub", n, b.number()),
    lambda b, n: b.op("Abs", n),
    lambda b, n: b.op("Cast", b.op("Cast", n, to=TensorProto.FLOAT), to=TensorProto.INT64),
    lambda b, n: b.op("Where", b.op("Cast", n, to=TensorProto.BOOL), n, b.const(b.choice.choice((1, 2)))),
    _branched,
)


def _split(b: _Builder, n: str) -> str:
    first = b.op("Min", n, b.const(b.columns))
    parts = b.listed(first, b.op("Sub", b.const(b.columns), first))
    return b.op("Split", "x", parts, outputs=2, axis=1)[b.choice.randrange(2)]


def _repeated(b: _Builder, n: str) -> str:
    kind = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["x"], ["row"])],
        "body",
        [kind("trip", TensorProto.INT64, []), kind("go", TensorProto.BOOL, [])],
        [kind("on", TensorProto.BOOL, []), kind("row", TensorProto.FLOAT, [b.rows, b.columns])],
    )
    return b.op("Loop", n, b.const(True, np.bool_), body=body)


def _rest(b: _Builder, n: str) -> str:
    taken = b.op("Squeeze", b.op("Shape", b.op("ConstantOfShape", b.listed(n))), b.const([0]))
    return b.op("Range", b.const(0), b.op("Sub", b.const(20), taken), b.const(1))


def _two_ranges(b: _Builder, n: str) -> str:
    ends = (n, b.op("Add", n, b.const(1)))
    return b.op("Concat", *(b.op("Range", b.const(0), end, b.const(1)) for end in ends), axis=0)


def _row_count(b: _Builder, n: str) -> str:
    rows = b.op("Add", b.op("Mod", n, b.const(2)), b.const(1))
    return b.op("Reshape", b.op("Tile", "x", b.const([2, 1])), b.listed(rows, -1))


_SIZES: Sequence[Callable[[_Builder, str], str]] = (
    lambda b, n: b.op("Range", b.const(0), n, b.const(b.choice.choice((1, 2)))),
    lambda b, n: b.op("ConstantOfShape", b.listed(n)),
    lambda b, n: b.op("Expand", "x", b.listed(b.op("Max", n, b.const(1)), b.rows, b.columns)),
    lambda b, n: b.op("Slice", "x", b.const([0]), b.listed(n), b.const([1])),
    lambda b, n: b.op("Slice", "x", b.listed(n), b.const([100]), b.const([1])),
    lambda b, n: b.op("Slice", "x", b.listed(n), b.listed(b.op("Add", n, b.const(2))), b.const([1])),
    lambda b, n: b.op("Slice", "x", b.listed(b.op("Neg", n)), b.const([2**63 - 1]), b.const([1])),
    lambda b, n: b.op("Tile", "x", b.listed(1, n)),
    lambda b, n: b.op("Pad", "x", b.listed(0, n, 0, 1)),
    lambda b, n: b.op("TopK", "x", b.listed(b.op("Min", n, b.const(b.columns))), outputs=2, axis=1)[0],
    _split,
    lambda b, n: b.op("OneHot", b.const([0, 1]), b.op("Max", n, b.const(1)), b.const([0, 1], np.float32)),
    _row_count,
    lambda b, n: b.op("Resize", "x", "", "", b.listed(b.rows, b.op("Max", n, b.const(1))), mode="nearest"),
    _two_ranges,
    _rest,
    _repeated,
)


def sized_model(seed: int) -> onnx.ModelProto:
    """Return a model of ``x`` and a mask ``m`` with a size that has a largest."""
    b = _Builder(seed)
    number = b.op("Max", b.changed(b.number()), b.const(0))
    b.op("Cast", _SIZES[seed % len(_SIZES)](b, number), to=TensorProto.FLOAT)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [b.rows, b.columns]),
        helper.make_tensor_value_info("m", TensorProto.BOOL, [b.rows]),
    ]
    output = onnx.ValueInfoProto(name=b.nodes[-1].output[0])
    output.type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(b.nodes, "sizes", inputs, [output], b.stored)
    opset = b.choice.choice((13, 14, 17, 18, 20, 21))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def largest_bytes(model: onnx.ModelProto, path: Path, runs: int = RUNS) -> dict[str, int]:
    """Return the most bytes that each tensor has over many runs; a run that ONNX Runtime ends does not count."""
    listed = onnx.ModelProto.FromString(model.SerializeToString())
    names = [name for node in model.graph.node for name in node.output]
    known = {value.name for value in model.graph.output}
    listed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    onnx.save(listed, path)
    session = onnx_session(path)
    rng = np.random.default_rng(0)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    largest: Counter[str] = Counter()
    for _ in range(runs):
        scale, shift = rng.choice((0.01, 0.3, 1, 5)), rng.choice((-5, -1, 0, 0, 0, 1, 5))
        x = (rng.standard_normal(shape) * scale + shift).astype(np.float32)
        mask = rng.random(shape[0]) < rng.choice((0, 0.1, 0.5, 0.9, 1))
        try:
            results = session.run(names, {"x": x, "m": mask})
        except Exception:  # an index beyond a table, say; its exceptions have no base of their own
            continue
        for name, value in zip(names, results, strict=True):
            largest[name] = max(largest[name], value.nbytes)
    return largest


def small_sizes(seed: int, folder: Path, runs: int = RUNS) -> tuple[list[str], list[float]]:
    """Read a model; return tensors that are larger in a run than is said, and how much larger others are said to be."""
    model = sized_model(seed)
    onnx.save(model, folder / "model.onnx")
    largest = largest_bytes(model, folder / "all.onnx", runs)
    graph = mtpp.read(folder / "model.onnx", dims="auto").graph
    said = dict(zip(graph.tensor_names, graph.tensor_bytes.tolist(), strict=True))
    pairs = {name: (size, largest[name]) for name, size in said.items() if name in largest}
    wrong = [f"seed {seed}: {name} has {most} B, said {size} B" for name, (size, most) in pairs.items() if size < most]
    return wrong, [size / max(1, most) for size, most in pairs.values()]


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        with tempfile.TemporaryDirectory() as name:
            wrong, ratios = small_sizes(number, Path(name))
        counts.update(models=1, too_small=len(wrong), exact=ratios.count(1.0), tensors=len(ratios))
        counts["above twice"] += sum(ratio > 2 for ratio in ratios)
        print(*wrong, sep="\n", end="\n" if wrong else "", flush=True)
    print(dict(counts))
