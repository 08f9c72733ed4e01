"""Models of different kinds, with weights at random: small ops, convolutions, skips, branches, attention, a program."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

SAMPLES = Path(__file__).parents[2] / "datasets" / "samples"
SIZES = {"gpt2": ("--dim", "batch=1", "--dim", "sequence=64")}
"""Sizes that are left open, by model."""

_random = np.random.default_rng(0)


def _weight(name: str, *shape: int) -> Any:
    scale = float(np.prod(shape[1:])) ** -0.5 if len(shape) > 1 else 1.0
    return numpy_helper.from_array((_random.standard_normal(shape) * scale).astype(np.float32), name)


def _save(path: Path, nodes: list[Any], weights: list[Any], size: tuple[int, ...], result: str) -> None:
    source, target = (helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name in ("x", result))
    graph = helper.make_graph(nodes, path.stem, [source], [target], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def small_ops(path: Path, count: int) -> None:
    """Write a chain of elementwise ops on a kilobyte."""
    nodes, weights, last = [], [], "x"
    for i in range(count):
        kind = ("Relu", "Add", "Mul", "Sigmoid")[i % 4]
        operands = [last]
        if kind in ("Add", "Mul"):
            weights.append(_weight(f"w{i}", 256))
            operands.append(f"w{i}")
        nodes.append(helper.make_node(kind, operands, [f"t{i}"], name=f"op{i}"))
        last = f"t{i}"
    _save(path, nodes, weights, (1, 256), last)


def branches(path: Path, count: int = 12, depth: int = 4, channels: int = 32, side: int = 28) -> None:
    """Write branches of convolutions side by side, joined at the end."""
    nodes, weights, ends = [], [], []
    for i in range(count):
        last = "x"
        for j in range(depth):
            here = f"{i}_{j}"
            weights.append(_weight(f"w{here}", channels, channels, 3, 3))
            operands = [last, f"w{here}"]
            nodes.append(helper.make_node("Conv", operands, [f"c{here}"], name=f"conv{here}", pads=[1] * 4))
            nodes.append(helper.make_node("Relu", [f"c{here}"], [f"r{here}"], name=f"relu{here}"))
            last = f"r{here}"
        ends.append(last)
    weights.append(_weight("last", channels, channels * count, 1, 1))
    nodes.append(helper.make_node("Concat", ends, ["all"], name="join", axis=1))
    nodes.append(helper.make_node("Conv", ["all", "last"], ["y"], name="mix"))
    _save(path, nodes, weights, (1, channels, side, side), "y")


class UNet(nn.Module):
    """Four levels; tensors skip from the way down to the way up."""

    def __init__(self, width: int = 24, levels: int = 4) -> None:
        super().__init__()
        widths = [width * 2**i for i in range(levels)]
        self.down = nn.ModuleList(self._pair(i, o) for i, o in zip([3, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * one, one, 2, stride=2) for one in widths[:-1])
        self.merge = nn.ModuleList(self._pair(2 * one, one) for one in widths[:-1])
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(width, 1, 1)

    @staticmethod
    def _pair(before: int, after: int) -> nn.Module:
        one, two = (nn.Conv2d(channels, after, 3, padding=1) for channels in (before, after))
        return nn.Sequential(one, nn.ReLU(), two, nn.ReLU())

    def forward(self, x: Any) -> Any:
        """Return a mask."""
        skips = []
        for i, level in enumerate(self.down):
            x = level(x if i == 0 else self.pool(x))
            skips.append(x)
        for i in reversed(range(len(self.up))):
            x = self.merge[i](torch.cat([skips[i], self.up[i](x)], 1))
        return self.head(x)


def unet(path: Path) -> None:
    """Write a U-Net, exported by PyTorch to ONNX."""
    model = UNet().eval()
    torch.onnx.export(model, (torch.randn(1, 3, 128, 128),), str(path), dynamo=False, opset_version=17)


def encoder(path: Path) -> None:
    """Write an encoder of six layers as an exported program."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True, activation="gelu")
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
    torch.export.save(torch.export.export(model, (torch.randn(1, 128, 256),)), path)


def _sample(path: Path) -> None:
    shutil.copy(SAMPLES / path.name, path)


MODELS: dict[str, Callable[[Path], None]] = {
    "few-small-ops.onnx": lambda path: small_ops(path, 24),
    "small-ops.onnx": lambda path: small_ops(path, 400),
    "resnet50.onnx": _sample,
    "u-net.onnx": unet,
    "gpt2.onnx": _sample,
    "branches.onnx": branches,
    "encoder.pt2": encoder,
}
