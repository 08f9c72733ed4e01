"""Random ONNX models of the constructs that are hard to cut: sizes that a run tells, control flow, functions, and more.

A tensor of the pool is known by its element type and its shape; an axis is None where only a run tells its size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx_text import typed

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPSETS = (13, 17, 18, 21)


class Value(NamedTuple):
    """A tensor that later nodes may read."""

    name: str
    dtype: int
    shape: tuple[int | None, ...]


class VariedModel:
    """Builder of one random model; *seed* decides everything."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice(OPSETS))
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.overridable: list[str] = []
        self.pool: list[Value] = []
        self._count = 0
        self.rows: int | str = "rows" if self.random.random() < 0.3 else 4
        for name, shape in (("x", (4, 8)), ("y", (4, 8)), ("image", (1, 2, int(self.random.integers(5, 12)), 9))):
            symbolic = (self.rows, *shape[1:]) if name != "image" else shape
            self.inputs.append(helper.make_tensor_value_info(name, FLOAT, symbolic))
            self.pool.append(Value(name, FLOAT, shape))

    # -- parts

    def name(self, stem: str = "t") -> str:
        """Return a new name."""
        self._count += 1
        return f"{stem}{self._count}"

    def chance(self, share: float) -> bool:
        """Return True in a share of all cases."""
        return bool(self.random.random() < share)

    def choose(self, options: Sequence[Any]) -> Any:
        """Choose one of several, each as likely."""
        return options[int(self.random.integers(len(options)))]

    def pick(self, *, rank: int | None = None, last: int | None = None, closed: bool = False) -> Value:
        """Choose a float of the pool, mostly a late one."""
        fitting = [
            value
            for value in self.pool
            if value.dtype == FLOAT
            and (rank is None or len(value.shape) == rank)
            and (last is None or (value.shape and value.shape[-1] == last))
            and not (closed and None in value.shape)
        ]
        late = min(len(fitting) - 1, int(self.random.geometric(0.3)) - 1)
        return fitting[-1 - late]

    def node(self, kind: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node; return the names of its outputs."""
        made = [self.name() for _ in range(outputs)]
        label = made[0] if self.chance(0.8) else ""
        self.nodes.append(helper.make_node(kind, list(inputs), made, name=label, **attributes))
        return made

    def store(self, array: Any) -> str:
        """Store a constant, as an initializer or as a node."""
        tensor = numpy_helper.from_array(np.asarray(array), self.name("w"))
        if self.chance(0.3):
            self.nodes.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
        else:
            self.stored.append(tensor)
        return tensor.name

    def ints(self, *values: int) -> str:
        """Store a vector of int64."""
        return self.store(np.array(values, np.int64))

    def weight(self, *shape: int) -> str:
        """Store a matrix or kernel of random floats."""
        return self.store((self.random.standard_normal(shape) / np.sqrt(max(1, shape[0]))).astype(np.float32))

    def default(self, array: Any) -> str:
        """Store an initializer that is an input as well: a run may give another value."""
        name = self.name("d")
        tensor = numpy_helper.from_array(np.asarray(array), name)
        self.stored.append(tensor)
        self.inputs.append(helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))
        self.overridable.append(name)
        return name

    def keep(self, name: str, shape: Sequence[int | None], dtype: int = FLOAT) -> None:
        """Offer a tensor to later nodes."""
        self.pool.append(Value(name, dtype, tuple(shape)))

    def vary(self, kind: str, old: Value, inputs: Sequence[str], **attributes: Any) -> None:
        """Add a node whose result is shaped like *old*."""
        self.keep(self.node(kind, inputs, **attributes)[0], old.shape)

    def scalar(self, value: Value) -> str:
        """Return the mean of all elements, a float without axes; of no elements 0."""
        (total,) = self.node("ReduceSum", [value.name], keepdims=0)
        (bounded,) = self.node("Tanh", [total])
        return bounded

    def count(self, value: Value, most: int) -> str:
        """Return a whole number of 1 to *most*, int64 of shape (1,), that depends on the elements of a tensor."""
        (scaled,) = self.node("Mul", [self.scalar(value), self.store(np.float32(1000.0))])
        (size,) = self.node("Abs", [scaled])
        (whole,) = self.node("Cast", [size], to=INT64)
        (rest,) = self.node("Mod", [whole, self.store(np.int64(most))])
        (one,) = self.node("Add", [rest, self.store(np.int64(1))])
        return self.node("Reshape", [one, self.ints(1)])[0]

    def scale_by(self, value: Value, number: str) -> None:
        """Multiply a float tensor by a whole number, int64 of one element or none of axes."""
        (one,) = self.node("Cast", [number], to=FLOAT)
        (small,) = self.node("Mul", [one, self.store(np.float32(0.25))])
        (flat,) = self.node("Reshape", [small, self.ints(1)])
        self.vary("Mul", value, [value.name, flat])

    # -- steps

    def plain(self) -> None:
        """Add an op on whole tensors: of one operand, of two, or a product with a weight."""
        a = self.pick()
        if self.chance(0.4):
            self.vary(self.choose(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity", "Elu"]), a, [a.name])
        elif a.shape and a.shape[-1] is not None and self.chance(0.5) and len(a.shape) >= 2:
            wide = self.choose([4, 8])
            self.keep(self.node("MatMul", [a.name, self.weight(a.shape[-1], wide)])[0], (*a.shape[:-1], wide))
        else:
            b = self.choose(
                [
                    value
                    for value in self.pool
                    if value.dtype == FLOAT and value.shape == a.shape and None not in a.shape
                ]
                or [a]
            )
            self.vary(self.choose(["Add", "Mul", "Sub", "Max"]), a, [a.name, b.name])

    def reduced(self) -> None:
        """Add a sum over the first axis."""
        a = self.pick(rank=2)
        keep = self.choose([0, 1])
        if self.chance(0.5):
            name = self.node("ReduceSum", [a.name, self.ints(0)], keepdims=keep)[0]
        else:
            name = self.node("ReduceSum", [a.name, self.ints(0)], keepdims=keep)[0]
            name = self.node("Tanh", [name])[0]
        self.keep(name, (1, a.shape[1]) if keep else (a.shape[1],))

    def compressed(self) -> None:
        """Add the rows whose sum is positive: only a run tells their number."""
        a = self.pick(rank=2)
        (sums,) = self.node("ReduceSum", [a.name, self.ints(1)], keepdims=0)
        (mask,) = self.node("Greater", [sums, self.store(np.float32(0.0))])
        if self.chance(0.6):
            self.keep(self.node("Compress", [a.name, mask], axis=0)[0], (None, a.shape[1]))
        else:
            (places,) = self.node("NonZero", [mask])
            (flat,) = self.node("Reshape", [places, self.ints(-1)])
            self.keep(self.node("Gather", [a.name, flat], axis=0)[0], (None, a.shape[1]))

    def counted(self) -> None:
        """Scale a tensor by the size of another one, often an open one."""
        open_ones = [value for value in self.pool if None in value.shape and value.dtype == FLOAT]
        a = self.choose(open_ones) if open_ones and self.chance(0.7) else self.pick()
        if not a.shape:
            return
        if self.chance(0.3):
            (number,) = self.node("Size", [a.name])
        else:
            (shape,) = self.node("Shape", [a.name])
            (number,) = self.node("Gather", [shape, self.ints(int(self.random.integers(len(a.shape))))])
        self.scale_by(self.pick(), number)

    def filled(self) -> None:
        """Add a constant or a range of a size that another tensor has."""
        a = self.pick(rank=2)
        (shape,) = self.node("Shape", [a.name])
        choice = int(self.random.integers(4))
        if choice == 0:
            value = helper.make_tensor("", FLOAT, [1], [0.5])
            self.keep(self.node("ConstantOfShape", [shape], value=value)[0], a.shape)
        elif choice == 1:
            self.keep(self.node("Expand", [self.store(np.float32(0.5)), shape])[0], a.shape)
        elif choice == 2:
            (rows,) = self.node("Gather", [shape, self.store(np.int64(0))])
            (places,) = self.node("Range", [self.store(np.int64(0)), rows, self.store(np.int64(1))])
            (floats,) = self.node("Cast", [places], to=FLOAT)
            self.keep(self.node("Unsqueeze", [floats, self.ints(1)])[0], (a.shape[0], 1))
        else:
            (rows,) = self.node("Gather", [shape, self.ints(0)])
            (target,) = self.node("Concat", [rows, self.ints(-1)], axis=0)
            (flat,) = self.node("Reshape", [a.name, target])
            self.keep(flat, a.shape)

    def taken(self) -> None:
        """Add a slice, top elements, a pad or tiles by a number that is computed, stored, or overridable."""
        a = self.pick(rank=2)
        if a.shape[1] is None or a.shape[1] < 2:
            return
        most = a.shape[1]
        source = self.choose(["data", "stored", "default"])
        fixed = int(self.random.integers(1, most + 1))
        number = {"data": lambda: self.count(a, most), "stored": lambda: self.ints(fixed)}.get(
            source, lambda: self.default(np.array([fixed], np.int64))
        )()
        size = fixed if source == "stored" else None
        choice = int(self.random.integers(4))
        if choice == 0:
            self.keep(self.node("Slice", [a.name, self.ints(0), number, self.ints(1)])[0], (a.shape[0], size))
        elif choice == 1:
            self.keep(self.node("TopK", [a.name, number], 2, axis=1)[0], (a.shape[0], size))
        elif choice == 2:
            (pads,) = self.node("Concat", [self.ints(0, 0, 0), number], axis=0)
            self.keep(self.node("Pad", [a.name, pads])[0], (a.shape[0], most + fixed if size else None))
        else:
            (times,) = self.node("Concat", [self.ints(1), number], axis=0)
            self.keep(self.node("Tile", [a.name, times])[0], (a.shape[0], most * fixed if size else None))

    def unique(self) -> None:
        """Add the distinct elements of a rounded tensor."""
        a = self.pick(rank=2)
        (rounded,) = self.node("Floor", [a.name])
        self.keep(self.node("Unique", [rounded], sorted=1)[0], (None,))

    def looped(self) -> None:
        """Add a loop with a state and rows that it collects; its trips are stored or depend on data."""
        a = self.pick(rank=2, closed=True)
        given = self.chance(0.5)
        trips = int(self.random.integers(1, 4))
        limit = self.limit(a, trips, given)
        early = self.chance(0.4)
        i, go, state = self.name("i"), self.name("go"), self.name("state")
        half, new, still, row = self.name("half"), self.name("new"), self.name("still"), self.name("row")
        weight = self.weight(a.shape[1], a.shape[1])
        body = [
            helper.make_node("MatMul", [state, weight], [half]),
            helper.make_node("Tanh", [half], [new]),
            helper.make_node("ReduceSum", [new], [row], keepdims=0),
        ]
        if early:
            zero = self.name("zero")
            body.append(helper.make_node("Constant", [], [zero], value=numpy_helper.from_array(np.float32(0), zero)))
            body.append(helper.make_node("Greater", [row, zero], [still]))
        else:
            body.append(helper.make_node("Identity", [go], [still]))
        graph = helper.make_graph(
            body,
            "body",
            [typed(i, (INT64, [])), typed(go, (BOOL, [])), typed(state, list(a.shape))],
            [typed(still, (BOOL, [])), typed(new, list(a.shape)), typed(row, [])],
        )
        last, rows = self.node("Loop", [limit, self.store(np.bool_(True)), a.name], 2, body=graph)
        self.keep(last, a.shape)
        self.keep(rows, (trips if given and not early else None,))

    def limit(self, a: Value, trips: int, given: bool) -> str:
        """Return a number of trips without axes: stored, or of data."""
        if given:
            return self.store(np.int64(trips))
        return self.node("Squeeze", [self.count(a, 3), self.ints(0)])[0]

    def growing(self) -> None:
        """Add a loop whose state grows by its first value at each trip."""
        a = self.pick(rank=2, closed=True)
        given = self.chance(0.5)
        trips = int(self.random.integers(1, 4))
        i, go, state, new, still = (self.name(stem) for stem in ("i", "go", "state", "new", "still"))
        graph = helper.make_graph(
            [
                helper.make_node("Concat", [state, a.name], [new], axis=0),
                helper.make_node("Identity", [go], [still]),
            ],
            "body",
            [typed(i, (INT64, [])), typed(go, (BOOL, [])), typed(state, [None, a.shape[1]])],
            [typed(still, (BOOL, [])), typed(new, [None, a.shape[1]])],
        )
        (last,) = self.node("Loop", [self.limit(a, trips, given), "", a.name], body=graph)
        self.keep(last, (a.shape[0] * (trips + 1) if given else None, a.shape[1]))  # type: ignore[operator]

    def branched(self) -> None:
        """Add an If on data whose branches read activations and may differ in size."""
        a = self.pick(rank=2)
        (condition,) = self.node("Greater", [self.scalar(self.pick()), self.store(np.float32(0))])
        unequal = self.chance(0.5)
        branches = {}
        for key, twice in (("then_branch", unequal), ("else_branch", False)):
            inner, out = self.name("inner"), self.name("out")
            body = [helper.make_node(self.choose(["Tanh", "Relu", "Neg"]), [a.name], [inner])]
            if twice:
                body.append(helper.make_node("Concat", [inner, a.name], [out], axis=0))
            else:
                body.append(helper.make_node("Identity", [inner], [out]))
            shape = [None, a.shape[1]] if unequal else list(a.shape)
            branches[key] = helper.make_graph(body, key, [], [helper.make_tensor_value_info(out, FLOAT, shape)])
        (made,) = self.node("If", [condition], **branches)
        self.keep(made, (None if unequal else a.shape[0], a.shape[1]))

    def called(self) -> None:
        """Add a call of a local function, its attribute given, defaulted or absent."""
        kind = self.choose(["Leaky", "Outer", "Maybe"])
        a = self.pick()
        attributes = {"alpha": 0.3} if self.chance(0.5) else {}
        made = self.name()
        self.nodes.append(helper.make_node(kind, [a.name], [made], domain=DOMAIN, name=made, **attributes))
        self.keep(made, a.shape)

    def overridden(self) -> None:
        """Scale rows by a vector that a run may override."""
        a = self.pick(rank=2)
        if a.shape[1] is not None:
            self.vary("Mul", a, [a.name, self.default(self.random.random(a.shape[1]).astype(np.float32))])

    def quantised(self) -> None:
        """Add a way to uint8 and back."""
        a = self.pick()
        if self.chance(0.5):
            made, scale, zero = self.node("DynamicQuantizeLinear", [a.name], 3)
        else:
            scale, zero = self.store(np.float32(0.05)), self.store(np.uint8(128))
            (made,) = self.node("QuantizeLinear", [a.name, scale, zero])
        self.vary("DequantizeLinear", a, [made, scale, zero])

    def stored_in_few_bits(self) -> None:
        """Add a product with a weight of int8."""
        a = self.pick(rank=2)
        if a.shape[1] is None:
            return
        whole = self.store(self.random.integers(-100, 100, (a.shape[1], 8)).astype(np.int8))
        (weight,) = self.node("DequantizeLinear", [whole, self.store(np.float32(0.01))])
        self.keep(self.node("MatMul", [a.name, weight])[0], (a.shape[0], 8))

    def windowed(self) -> None:
        """Add a window over an image; a run of this node alone tells the size of its result."""
        a = self.pick(rank=4, closed=True)
        kind = self.choose(["MaxPool", "AveragePool", "Conv", "ConvTranspose", "Resize", "LpPool"])
        kernel = [int(self.random.integers(1, 4)) for _ in range(2)]
        if any(size < k for size, k in zip(a.shape[2:], kernel, strict=True)):  # type: ignore[operator]
            return
        attributes: dict[str, Any] = {"strides": [int(self.random.integers(1, 4)) for _ in range(2)]}
        if self.chance(0.3):
            attributes["auto_pad"] = self.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
        elif self.chance(0.6):
            attributes["pads"] = [int(self.random.integers(0, k)) for k in (*kernel, *kernel)]
        inputs = [a.name]
        if kind == "Resize":
            attributes = {"mode": "nearest"}
            factors = self.random.choice([0.5, 1.5, 2.0, 0.7], 2).tolist()
            inputs += ["", self.store(np.array([1, 1, *factors], np.float32))]
        elif kind in ("Conv", "ConvTranspose"):
            attributes["kernel_shape"] = kernel
            inputs.append(
                self.weight(2, a.shape[1], *kernel) if kind == "Conv" else self.weight(a.shape[1], 2, *kernel)
            )  # type: ignore[arg-type]
        else:
            attributes["kernel_shape"] = kernel
            if kind != "LpPool" or self.opset >= 18:
                attributes["ceil_mode"] = self.choose([0, 1])
        node = helper.make_node(kind, inputs, [self.name()], **attributes)
        shape = self.measured(node, a)
        if shape is not None:
            self.nodes.append(node)
            self.keep(node.output[0], shape)

    def measured(self, node: onnx.NodeProto, a: Value) -> tuple[int, ...] | None:
        """Return the size of the result of one node on an image, None if ONNX Runtime refuses it."""
        import onnxruntime

        reads = set(node.input)
        graph = helper.make_graph(
            [],
            "one",
            [helper.make_tensor_value_info(a.name, FLOAT, a.shape)],
            [onnx.ValueInfoProto(name=node.output[0])],
            [tensor for tensor in self.stored if tensor.name in reads],
        )
        constants = [other for other in self.nodes if other.op_type == "Constant" and other.output[0] in reads]
        graph.node.extend([*constants, node])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            (found,) = session.run(None, {a.name: np.ones(a.shape, np.float32)})
        except Exception:
            return None
        return found.shape if found.size else None

    def reshaped(self) -> None:
        """Add an op that moves elements: transposed, flattened, split, joined."""
        a = self.pick(rank=2)
        choice = int(self.random.integers(4))
        if choice == 0:
            self.keep(self.node("Transpose", [a.name], perm=[1, 0])[0], a.shape[::-1])
        elif choice == 1:
            self.keep(self.node("Concat", [a.name, a.name], axis=0)[0], (a.shape[0] and 2 * a.shape[0], a.shape[1]))
        elif choice == 2 and a.shape[1] is not None and a.shape[1] > 1:
            first = a.shape[1] // 2
            one, other = self.node("Split", [a.name, self.ints(first, a.shape[1] - first)], 2, axis=1)
            self.keep(one, (a.shape[0], first))
            self.keep(other, (a.shape[0], a.shape[1] - first))
        else:
            (flat,) = self.node("Reshape", [self.pick().name, self.ints(-1)])
            (column,) = self.node("Unsqueeze", [flat, self.ints(1)])
            self.keep(column, (None, 1))

    def steps(self) -> list[Callable[[], None]]:
        """Return the kinds of steps, each as often as it shall be drawn."""
        often = [self.plain] * 4 + [self.compressed, self.counted, self.filled, self.taken, self.windowed] * 2
        return [
            *often, self.reduced, self.unique, self.looped, self.growing, self.branched, self.called,
            self.overridden, self.quantised, self.stored_in_few_bits, self.reshaped,
        ]  # fmt: skip

    def model(self, steps: int) -> onnx.ModelProto:
        """Return the model after a number of steps; a few of its tensors are results, now and then one twice."""
        kinds = self.steps()
        for _ in range(steps):
            self.choose(kinds)()
        given = len([value for value in self.inputs if value.name not in self.overridable])
        made = self.pool[given:] or self.pool
        results = [made[-1], *(self.choose(made) for _ in range(int(self.random.integers(3))))]
        if self.chance(0.1):
            results.append(self.pool[0])
        if not self.chance(0.15):
            results = list(dict.fromkeys(results))
        outputs = [helper.make_tensor_value_info(v.name, v.dtype, [None] * len(v.shape)) for v in results]
        graph = helper.make_graph(self.nodes, "varied", self.inputs, outputs, self.stored)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=opsets, functions=local_functions(self.opset), ir_version=10)


def varied_model(seed: int, steps: int = 10) -> onnx.ModelProto:
    """Return a random model; ONNX Runtime may still refuse it."""
    return VariedModel(seed).model(steps)


DOMAIN = "varied"


def _referring(node: onnx.NodeProto, name: str, to: str, kind: int = AttributeProto.FLOAT) -> onnx.NodeProto:
    attribute = node.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = name, to, kind  # type: ignore[assignment]
    return node


def local_functions(opset: int) -> list[onnx.FunctionProto]:
    """Return functions of one input that keep its size."""
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    leaky = [_referring(helper.make_node("LeakyRelu", ["a"], ["b"]), "alpha", "alpha")]
    outer = [
        _referring(helper.make_node("Leaky", ["a"], ["c"], domain=DOMAIN), "alpha", "alpha"),
        helper.make_node("Leaky", ["c"], ["d"], domain=DOMAIN),
        helper.make_node("Tanh", ["d"], ["b"]),
    ]
    maybe = [_referring(helper.make_node("Elu", ["a"], ["b"]), "alpha", "alpha")]
    default = helper.make_attribute("alpha", 0.75)
    return [
        helper.make_function(DOMAIN, "Leaky", ["a"], ["b"], leaky, opsets, attribute_protos=[default]),
        helper.make_function(
            DOMAIN, "Outer", ["a"], ["b"], outer, opsets, attribute_protos=[helper.make_attribute("alpha", 0.5)]
        ),
        helper.make_function(DOMAIN, "Maybe", ["a"], ["b"], maybe, opsets, attributes=["alpha"]),
    ]
