"""FLOPs, MACs and traffic of single ops against numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import TensorProto, helper

F16, I64, I8, U8, I32 = (
    TensorProto.FLOAT16,
    TensorProto.INT64,
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT32,
)
MS = "com.microsoft"


class Case(NamedTuple):
    """One op: its operands, and what it must cost. Capital names are parameters, others activations."""

    kind: str
    operands: dict[str, Any]
    flops: int
    macs: int = 0
    attributes: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default is never changed
    constants: dict[str, Any] = {}  # noqa: RUF012
    outputs: int = 1
    opset: int = 20
    traffic: int | None = None

    @property
    def label(self) -> str:
        """Name the test case."""
        return f"{self.kind}-{self.opset}-{'-'.join(self.operands)}"


CONV_OUT = 2 * 8 * 16 * 16
CASES = [
    # Convolutions: output elements × (input channels / group) × kernel.
    Case("Conv", {"x": [2, 4, 16, 16], "W": [8, 4, 3, 3]}, 2 * CONV_OUT * 36, CONV_OUT * 36, {"pads": [1] * 4}),
    Case(
        "Conv",
        {"x": [2, 4, 16, 16], "W": [8, 2, 3, 3], "B": [8]},
        2 * CONV_OUT * 18,
        CONV_OUT * 18,
        {"pads": [1] * 4, "group": 2},
        traffic=4 * (2 * 4 * 256 + 8 * 18 + 8 + CONV_OUT),
    ),
    Case("Conv", {"x": [1, 3, 10], "W": [5, 3, 3]}, 2 * 5 * 4 * 9, 5 * 4 * 9, {"strides": [2]}),
    Case("ConvTranspose", {"x": [1, 4, 5, 5], "W": [4, 6, 2, 2]}, 2 * 100 * 24, 100 * 24, {"strides": [2, 2]}),
    Case("ConvInteger", {"x": (U8, [1, 2, 4, 4]), "W": (U8, [3, 2, 2, 2])}, 2 * 27 * 8, 27 * 8),
    Case(
        "QLinearConv",
        {"x": (U8, [1, 2, 4, 4]), "XS": [], "XZ": (U8, []), "W": (U8, [3, 2, 2, 2])}
        | {"WS": [], "WZ": (U8, []), "YS": [], "YZ": (U8, [])},
        2 * 27 * 8 + 3 * 27,
        27 * 8,
    ),
    Case(
        "DeformConv",
        {"x": [1, 2, 6, 6], "W": [4, 2, 3, 3], "offset": [1, 18, 4, 4]},
        2 * 64 * 18,
        64 * 18,
    ),
    Case(
        f"{MS}:FusedConv",
        {"x": [2, 4, 16, 16], "W": [8, 4, 3, 3]},
        2 * CONV_OUT * 36 + CONV_OUT,
        CONV_OUT * 36,
        {"pads": [1] * 4, "activation": "Relu"},
    ),
    # Matrix products: output elements × inner dimension.
    Case("MatMul", {"a": [3, 4, 5], "W": [5, 6]}, 2 * 360, 360, traffic=4 * (60 + 30 + 72)),
    Case("MatMul", {"a": [2, 3, 4], "b": [2, 4, 5]}, 2 * 120, 120),
    Case("MatMul", {"a": [7], "W": [7]}, 14, 7),
    Case("MatMul", {"a": (F16, [8, 16]), "W": (F16, [16, 4])}, 2 * 512, 512, traffic=2 * (128 + 64 + 32)),
    Case("MatMulInteger", {"a": (U8, [3, 5]), "W": (U8, [5, 6])}, 180, 90),
    Case(
        "QLinearMatMul",
        {"a": (U8, [3, 5]), "AS": [], "AZ": (U8, []), "W": (U8, [5, 6])}
        | {"WS": [], "WZ": (U8, []), "YS": [], "YZ": (U8, [])},
        180 + 54,
        90,
    ),
    Case("Gemm", {"a": [3, 5], "W": [6, 5], "C": [6]}, 180, 90, {"transB": 1}),
    Case("Gemm", {"a": [5, 3], "W": [5, 6]}, 180 + 18, 90, {"transA": 1, "alpha": 0.5}),
    Case("Einsum", {"a": [2, 3, 4], "b": [2, 4, 5]}, 240, 120, {"equation": "bij,bjk->bik"}),
    Case("Einsum", {"a": [2, 3, 4], "b": [4, 5]}, 240, 120, {"equation": "...j, jk -> ...k"}),
    Case("Einsum", {"a": [3], "b": [4]}, 12, 0, {"equation": "i,j->ij"}),
    Case("Einsum", {"a": [3, 4]}, 12, 0, {"equation": "ij->i"}),
    # abc: (3×4)·(4×5) = 60 MACs, then (3×5)·(5×6) = 90.
    Case("Einsum", {"a": [3, 4], "b": [4, 5], "c": [5, 6]}, 300, 150, {"equation": "ij,jk,kl->il"}),
    Case(f"{MS}:FusedMatMul", {"a": [2, 4, 3], "b": [2, 4, 5]}, 240, 120, {"transA": 1}),
    Case(f"{MS}:FusedGemm", {"a": [3, 5], "W": [5, 6]}, 180 + 18, 90, {"activation": "Relu"}),
    Case(
        f"{MS}:MatMulNBits",
        {"a": [4, 64], "W": (U8, [32, 2, 16]), "S": [64]},
        2 * 8192 + 2 * 2048,
        8192,
        {"K": 64, "N": 32, "bits": 4, "block_size": 32},
        traffic=4 * 256 + 1024 + 256 + 4 * 128,
    ),
    # Recurrent layers: per step every weight once, then the gates.
    Case(
        "LSTM",
        {"x": [7, 2, 3], "W": [1, 16, 3], "R": [1, 16, 4]},
        2 * 14 * 112 + 22 * 14 * 4,
        14 * 112,
        {"hidden_size": 4},
    ),
    Case(
        "GRU",
        {"x": [7, 2, 3], "W": [2, 12, 3], "R": [2, 12, 4]},
        2 * 14 * 168 + 17 * 14 * 8,
        14 * 168,
        {"hidden_size": 4, "direction": "bidirectional"},
    ),
    Case("RNN", {"x": [7, 2, 3], "W": [1, 4, 3], "R": [1, 4, 4]}, 2 * 14 * 28 + 2 * 56, 14 * 28, {"hidden_size": 4}),
    # Attention: batch 2, 4 heads, 6 queries, 10 keys, 8 channels; scale and softmax are 6 per score.
    Case(
        "Attention",
        {"q": [2, 4, 6, 8], "k": [2, 4, 10, 8], "v": [2, 4, 10, 16]},
        2 * 480 * 24 + 6 * 480,
        480 * 24,
        opset=23,
    ),
    Case(
        "Attention",
        {"q": [2, 6, 32], "k": [2, 10, 16], "v": [2, 10, 16]},
        2 * 480 * 16 + 7 * 480,
        480 * 16,
        {"q_num_heads": 4, "kv_num_heads": 2, "is_causal": 1},
        opset=23,
    ),
    Case(
        f"{MS}:Attention",
        {"x": [2, 6, 32], "W": [32, 96], "B": [96]},
        2 * (12 * 32 * 96 + 288 * 16) + 6 * 288,
        12 * 32 * 96 + 288 * 16,
        {"num_heads": 4},
    ),
    Case(
        f"{MS}:MultiHeadAttention",
        {"q": [2, 6, 32], "k": [2, 10, 32], "v": [2, 10, 32]},
        2 * 480 * 16 + 6 * 480,
        480 * 16,
        {"num_heads": 4},
    ),
    Case(
        f"{MS}:GroupQueryAttention",
        {"q": [1, 1, 32], "k": [1, 1, 16], "v": [1, 1, 16], "pk": [1, 2, 9, 8], "pv": [1, 2, 9, 8]}
        | {"sl": (I32, [1]), "tl": (I32, [1])},
        2 * 40 * 16 + 7 * 40,
        40 * 16,
        {"num_heads": 4, "kv_num_heads": 2},
        outputs=3,
    ),
    # A window of 4: the query's own position and 3 of the 9 cached ones, which are read; 10 are written.
    Case(
        f"{MS}:GroupQueryAttention",
        {"q": [1, 1, 32], "k": [1, 1, 16], "v": [1, 1, 16], "pk": [1, 2, 9, 8], "pv": [1, 2, 9, 8]}
        | {"sl": (I32, [1]), "tl": (I32, [1])},
        2 * 16 * 16 + 7 * 16,
        16 * 16,
        {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 4},
        outputs=3,
        traffic=4 * (32 + 2 * 16 + 2 * (2 * 3 * 8) + 1 + 1 + 32 + 2 * (2 * 10 * 8)),
    ),
    # Normalisations, n = 2·6·4·4 = 192.
    Case("BatchNormalization", {"x": [2, 6, 4, 4], "S": [6], "B": [6], "M": [6], "V": [6]}, 2 * 192),
    Case("LayerNormalization", {"x": [2, 6, 16], "S": [16], "B": [16]}, 7 * 192),
    Case("InstanceNormalization", {"x": [2, 6, 4, 4], "S": [6], "B": [6]}, 7 * 192),
    Case("GroupNormalization", {"x": [2, 6, 4, 4], "S": [6], "B": [6]}, 7 * 192, 0, {"num_groups": 3}, opset=21),
    Case("RMSNormalization", {"x": [2, 6, 16], "S": [16]}, 4 * 192, opset=23),
    Case("LpNormalization", {"x": [2, 6, 16]}, 3 * 192),
    Case("LRN", {"x": [2, 6, 4, 4]}, 10 * 192, 0, {"size": 5}),
    Case("MeanVarianceNormalization", {"x": [2, 6, 4, 4]}, 5 * 192),
    Case("Softmax", {"x": [2, 6, 16]}, 5 * 192),
    Case("LogSoftmax", {"x": [2, 6, 16]}, 5 * 192),
    Case(f"{MS}:SkipLayerNormalization", {"x": [2, 6, 16], "s": [2, 6, 16], "G": [16], "B": [16]}, 8 * 192),
    Case(f"{MS}:SkipSimplifiedLayerNormalization", {"x": [2, 6, 16], "s": [2, 6, 16], "G": [16]}, 5 * 192),
    Case("SimplifiedLayerNormalization", {"x": [2, 6, 16], "S": [16]}, 4 * 192),
    Case(
        f"{MS}:EmbedLayerNormalization",
        {
            "ids": (I32, [2, 6]),
            "seg": (I32, [2, 6]),
            "W": [1000, 16],
            "P": [512, 16],
            "T": [2, 16],
            "G": [16],
            "B": [16],
        },
        9 * 192,
        outputs=2,
        traffic=2 * 48 + 2 * 64 + 3 * 768 + 768 + 8,
    ),
    # Pooling and reductions.
    Case("MaxPool", {"x": [1, 3, 8, 8]}, 48 * 4, 0, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("AveragePool", {"x": [1, 3, 8, 8]}, 3 * 36 * 9, 0, {"kernel_shape": [3, 3]}),
    Case(
        "AveragePool", {"x": [1, 3, 4, 4]}, 3 * 16, 0, {"kernel_shape": [99, 99], "strides": [99, 99], "ceil_mode": 1}
    ),
    Case("GlobalAveragePool", {"x": [1, 3, 8, 8]}, 192 + 3),
    Case("GlobalMaxPool", {"x": [1, 3, 8, 8]}, 192),
    Case("ReduceMean", {"x": [4, 8]}, 32 + 4, 0, {"axes": [1]}, opset=13),
    Case("ReduceSum", {"x": [4, 8]}, 32, constants={"axes": [1]}),
    Case("ReduceL2", {"x": [4, 8]}, 64 + 4, constants={"axes": [1]}),
    Case("ArgMax", {"x": [4, 8]}, 32, 0, {"axis": 1}),
    Case("CumSum", {"x": [4, 8]}, 32, constants={"axis": 1}),
    Case("TopK", {"x": [4, 64]}, 256 * 3, constants={"k": [5]}, outputs=2),
    Case("NonMaxSuppression", {"b": [1, 50, 4], "s": [1, 2, 50]}, 16 * 2 * 10 * 50, constants={"m": 10}),
    # Resampling: bilinear has four neighbours, two operations each.
    Case("Resize", {"x": [1, 3, 4, 4]}, 8 * 192, 0, {"mode": "linear"}, {"": None, "_": None, "sizes": [1, 3, 8, 8]}),
    Case("Resize", {"x": [1, 3, 4, 4]}, 0, 0, {"mode": "nearest"}, {"": None, "scales": [1.0, 1.0, 2.0, 2.0]}),
    Case("Upsample", {"x": [1, 3, 4, 4]}, 8 * 192, 0, {"mode": "linear", "scales": [1.0, 1.0, 2.0, 2.0]}, opset=7),
    Case("GridSample", {"x": [1, 3, 4, 4], "g": [1, 5, 5, 2]}, 8 * 75),
    Case(
        "RoiAlign",
        {"x": [1, 3, 8, 8], "r": [2, 4], "i": (I64, [2])},
        9 * 4 * 54,
        0,
        {"output_height": 3, "output_width": 3},
    ),
    # Small parts of a large picture: four neighbours of each sample, or the nearest element of each.
    Case("GridSample", {"x": [1, 3, 40, 40], "g": [1, 5, 5, 2]}, 8 * 75, traffic=4 * (4 * 75 + 50 + 75)),
    Case("Resize", {"x": [1, 3, 40, 40]}, 0, constants={"R": None, "S": [1.0, 1.0, 0.1, 0.1]}, traffic=4 * 2 * 48),
    Case("Einsum", {"a": [5, 5, 3]}, 15, 0, {"equation": "iij->j"}, traffic=4 * (15 + 3)),
    # Eight lines of sixteen, along the last axis but one from opset 20 on, the second one before.
    Case("DFT", {"x": [2, 4, 16, 2]}, 5 * 8 * 16 * 4),
    Case("DFT", {"x": [2, 4, 16, 2]}, 5 * 32 * 4 * 2, opset=17),
    Case("DFT", {"x": [2, 4, 16, 1]}, 5 * 8 * 16 * 4, attributes={"onesided": 1}),
    Case("DFT", {"x": [2, 4, 16, 2]}, 5 * 8 * 8 * 3, constants={"N": 8}),
    # Lookups read the rows they take, not the table.
    Case("Gather", {"T": [1000, 16], "i": (I64, [5])}, 0, traffic=8 * 5 + 2 * 4 * 80),
    Case("GatherElements", {"x": [9, 9], "i": (I64, [2, 3])}, 0, traffic=8 * 6 + 2 * 4 * 6),
    Case("ScatterND", {"x": [9, 9], "i": (I64, [2, 1]), "u": [2, 9]}, 0, traffic=4 * 81 * 2 + 16 + 72),
    Case("ScatterElements", {"x": [9, 9], "i": (I64, [2, 3]), "u": [2, 3]}, 6, 0, {"reduction": "add"}),
    # Elementwise, n = 24.
    Case("Add", {"a": [2, 3, 4], "b": [4]}, 24, traffic=4 * (24 + 4 + 24)),
    Case("Sum", {"a": [2, 3, 4], "b": [4], "c": [4]}, 48),
    Case("Mean", {"a": [2, 3, 4], "b": [4]}, 48),
    Case("Relu", {"x": [2, 3, 4]}, 24, traffic=192),
    Case("Sigmoid", {"x": [2, 3, 4]}, 4 * 24),
    Case("Tanh", {"x": [2, 3, 4]}, 24),
    Case("Erf", {"x": [2, 3, 4]}, 24),
    Case("Gelu", {"x": [2, 3, 4]}, 5 * 24),
    Case("Gelu", {"x": [2, 3, 4]}, 9 * 24, 0, {"approximate": "tanh"}),
    Case(f"{MS}:Gelu", {"x": [2, 3, 4]}, 5 * 24),
    Case(f"{MS}:FastGelu", {"x": [2, 3, 4], "B": [4]}, 10 * 24),
    Case(f"{MS}:BiasGelu", {"x": [2, 3, 4], "B": [4]}, 6 * 24),
    Case(f"{MS}:QuickGelu", {"x": [2, 3, 4]}, 6 * 24),
    Case("Clip", {"x": [2, 3, 4], "LO": [], "HI": []}, 48),
    Case("Clip", {"x": [2, 3, 4]}, 48, 0, {"min": 0.0, "max": 6.0}, opset=6),
    Case("Where", {"c": (TensorProto.BOOL, [2, 3, 4]), "a": [4], "b": []}, 24, traffic=24 + 16 + 4 + 96),
    Case("Equal", {"a": [2, 3, 4], "b": [4]}, 24, traffic=4 * 28 + 24),
    Case("Cast", {"x": [2, 3, 4]}, 24, 0, {"to": F16}, traffic=96 + 48),
    Case("QuantizeLinear", {"x": [2, 3, 4], "S": [], "Z": (I8, [])}, 72, traffic=96 + 4 + 1 + 24),
    Case("DequantizeLinear", {"x": (I8, [2, 3, 4]), "S": [], "Z": (I8, [])}, 48),
    Case("DequantizeLinear", {"x": (TensorProto.INT4, [3, 3]), "S": []}, 18, opset=21, traffic=5 + 4 + 36),
    Case("DynamicQuantizeLinear", {"x": [2, 3, 4]}, 120, outputs=3, traffic=96 + 24 + 4 + 1),
    Case("RotaryEmbedding", {"x": [1, 2, 5, 8], "C": [5, 4], "S": [5, 4], "p": (I64, [1, 5])}, 240, opset=23),
    # Two of four pairs of channels are turned.
    Case(
        "RotaryEmbedding",
        {"x": [1, 2, 5, 8], "C": [5, 2], "S": [5, 2], "p": (I64, [1, 5])},
        120,
        0,
        {"rotary_embedding_dim": 4},
        opset=23,
    ),
    Case(
        f"{MS}:RotaryEmbedding",
        {"x": [1, 5, 16], "p": (I64, [1, 5]), "C": [5, 2], "S": [5, 2]},
        120,
        0,
        {"rotary_embedding_dim": 4, "num_heads": 2},
    ),
    # Data movement: in and out. What configures an op is neither parameter nor traffic.
    Case("Transpose", {"x": [2, 3, 4]}, 0, 0, {"perm": [2, 0, 1]}, traffic=192),
    Case("Concat", {"a": [2, 3], "b": [2, 5]}, 0, 0, {"axis": 1}, traffic=4 * 32),
    Case("Split", {"x": [2, 6]}, 0, 0, {"axis": 1}, {"s": [2, 4]}, outputs=2, traffic=96),
    Case("Split", {"x": [2, 6]}, 0, 0, {"axis": 1, "split": [2, 4]}, outputs=2, opset=11, traffic=96),
    Case("Slice", {"x": [100, 6]}, 0, constants={"s": [0], "e": [2]}, traffic=96),
    Case("Slice", {"x": [100, 6]}, 0, 0, {"starts": [0], "ends": [2]}, opset=9, traffic=96),
    Case("Pad", {"x": [2, 3]}, 0, constants={"p": [0, 1, 0, 1]}, traffic=24 + 40),
    Case("Pad", {"x": [2, 3]}, 0, 0, {"pads": [0, 1, 0, 1]}, opset=9, traffic=24 + 40),
    Case("Tile", {"x": [2, 3]}, 0, constants={"r": [2, 2]}, traffic=24 + 96),
    Case("Expand", {"x": [2, 1]}, 0, constants={"r": [2, 9]}, traffic=8 + 72),
    Case("DepthToSpace", {"x": [1, 8, 2, 2]}, 0, 0, {"blocksize": 2}, traffic=256),
    # From 8 to 3 with a filter of six neighbours, rows before columns.
    Case(
        "Resize",
        {"x": [1, 1, 8, 8]},
        2 * 6 * 24 + 2 * 6 * 9,
        0,
        {"mode": "linear", "antialias": 1},
        {"r": None, "s": None, "z": [1, 1, 3, 3]},
    ),
    # Views: nothing happens.
    Case("Reshape", {"x": [2, 6]}, 0, constants={"s": [3, -1]}, traffic=0),
    Case("Flatten", {"x": [2, 6]}, 0, traffic=0),
    Case("Squeeze", {"x": [2, 1]}, 0, constants={"a": [1]}, traffic=0),
    Case("Squeeze", {"x": [2, 1]}, 0, 0, {"axes": [1]}, opset=11, traffic=0),
    Case("Unsqueeze", {"x": [2]}, 0, 0, {"axes": [0, 2]}, opset=11, traffic=0),
    Case("Unsqueeze", {"x": [2]}, 0, constants={"a": [0, 2]}, traffic=0),
    Case("Identity", {"x": [2, 6]}, 0, traffic=0),
    Case("Dropout", {"x": [2, 6]}, 0, constants={"r": 0.5}, outputs=2, traffic=0),
    Case("Dropout", {"x": [2, 6]}, 0, 0, {"ratio": 0.5}, opset=7, outputs=2, traffic=0),
]


def _read(case: Case, reading: Any, system: Any) -> Any:
    domain, _, op_type = case.kind.rpartition(":")
    names = [*case.operands, *("" if value is None else name for name, value in case.constants.items())]
    node = helper.make_node(
        op_type, names, [f"y{i}" for i in range(case.outputs)], domain=domain, name="op", **case.attributes
    )
    following = helper.make_node("Identity", ["y0"], ["end"])
    constants = {name: _array(value) for name, value in case.constants.items() if value is not None}
    dims = {"y0:0": 7} if op_type == "NonMaxSuppression" else None
    return reading.graph(
        [node, following],
        {name: kind for name, kind in case.operands.items() if name.islower()},
        ["end"],
        {name: kind for name, kind in case.operands.items() if name.isupper()},
        constants,
        opset=case.opset,
        domains=[domain] if domain else [],
        dims=dims,
        system=system,
    )


def _array(value: Any) -> Any:
    flat = value if isinstance(value, list) else [value]
    return np.array(value, dtype=np.float32 if isinstance(flat[0], float) else np.int64)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_flops_macs_and_work_follow_the_rule(case, reading):
    """The op costs what was worked out by hand, and its work is the roofline's."""
    graph = _read(case, reading, reading.roofline)
    traffic = _read(case, reading, reading.bytes_only).work[0]
    assert (graph.metadata["flops"], graph.metadata["macs"]) == (case.flops, case.macs)
    assert graph.metadata["not_modelled"] == {}
    assert graph.work[0] == max(math.ceil(case.flops / 20), 5 * traffic)
    if case.traffic is not None:
        assert traffic == case.traffic


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_parameters_of_an_op_are_its_constant_operands(case, reading):
    """Absent initializers count in full; what configures an op (shapes, axes, counts) does not."""
    bits = {F16: 16, I64: 64, I8: 8, U8: 8, I32: 32, TensorProto.FLOAT: 32}
    expected = 0
    for name, kind in case.operands.items():
        if name.isupper():
            dtype, shape = kind if isinstance(kind, tuple) else (TensorProto.FLOAT, kind)
            expected += math.prod(shape) * bits[dtype] // 8
    assert int(_read(case, reading, reading.roofline).param_bytes[0]) == expected


def test_an_operator_without_a_rule_is_memory_bound_and_listed(reading):
    """A custom op moves its operands and is named with its domain."""
    graph = reading.graph(
        "y = acme.Mystery(x, W)",
        {"x": [8]},
        ["y"],
        {"W": [100]},
        domains=["acme"],
        value_info={"y": [4]},
        system=reading.bytes_only,
    )
    assert graph.work == (4 * (8 + 100 + 4),)
    assert graph.metadata["flops"] == 0
    assert graph.metadata["not_modelled"] == {"acme:Mystery": 1}
    assert graph.op_kinds == ("acme:Mystery",)


def test_an_operand_used_twice_is_read_once(reading):
    """x·x reads x once and lists its consumer once."""
    graph = reading.graph("r = Relu(x) y = Mul(r, r)", {"x": [8]}, ["y"], system=reading.bytes_only)
    assert graph.work == (64, 64)
    assert graph.tensor_consumers(0).tolist() == [1]


def test_an_expert_that_no_token_chooses_is_not_read(reading):
    """A mixture of 8 experts, 3 tokens of 2 experts each: at most 6 of them move."""
    graph = reading.graph(
        'y = com.microsoft.MoE <k = 2>(x, p, F, "", G)',
        {"x": [3, 16], "p": [3, 8]},
        ["y"],
        {"F": [8, 16, 32], "G": [8, 32, 16]},
        domains=[MS],
        system=reading.bytes_only,
    )
    assert graph.metadata["macs"] == 6 * (16 * 32 + 32 * 16)
    assert graph.work == (4 * (48 + 24 + 6 * 1024 + 48),)
    assert graph.param_bytes.tolist() == [4 * 8 * 1024]
