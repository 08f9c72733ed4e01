"""Folders of small stages, as a split writes them, and what the model that was split makes of its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx_text import built

from mtpp.formats.results.stage_manifest import Described, Stage, StageInput, StageManifest, StageOutput, manifest_text

SIZE = 8
_SHAPE = (SIZE, SIZE)


def described(name: str) -> Described:
    """Return a square matrix of floats."""
    return Described(name, "float32", _SHAPE)


def save(path: Path, nodes: str, inputs: list[str], outputs: list[str], **more: Any) -> None:
    """Write a model of matrices, with a weight ``w`` that doubles, and others."""
    told = [dict.fromkeys(names, _SHAPE) for names in (inputs, outputs)]
    onnx.save(built(nodes, *told, {"w": 2 * np.eye(SIZE, dtype=np.float32), **more}, opset=17), path)


def write_manifest(folder: Path, stages: list[Stage], inputs: list[str], outputs: list[str], **more: Any) -> None:
    """Write the manifest of some stages; costs are in ps."""
    values: dict[str, Any] = {
        "name": "toy", "sha256": "0" * 64, "ops": sum(stage.ops for stage in stages), "k": stages[-1].index + 1,
        "time_unit": "ps", "ticks_per_unit": 1, "bottleneck": max(stage.cost for stage in stages),
        "work": sum(stage.work for stage in stages), "inputs": tuple(map(described, inputs)),
        "outputs": tuple(map(described, outputs)), "stages": tuple(stages), "direct": (),
    }  # fmt: skip
    (folder / "manifest.json").write_text(manifest_text(StageManifest(**values | more)))


def bypass(folder: Path, *, rounds: int = 0) -> Path:
    """Write four stages, one of which is skipped by a tensor, two with results, one number left out.

    ``a = 2x`` and ``s = relu(x)``; ``b = 2a``; ``c = 2b`` and result ``z = −b``; result ``y = c + s``.

    Parameters
    ----------
    rounds
        Of multiplication by the identity in the second stage, to make it take its time.
    """
    folder.mkdir()
    save(folder / "s0.onnx", "a = MatMul(x, w) s = Relu(x)", ["x"], ["a", "s"])
    if rounds:
        _loop(folder / "s1.onnx", rounds)
    else:
        save(folder / "s1.onnx", "b = MatMul(a, w)", ["a"], ["b"])
    save(folder / "s3.onnx", "c = MatMul(b, w) z = Neg(b)", ["b"], ["c", "z"])
    save(folder / "s4.onnx", "y = Add(c, s)", ["c", "s"], ["y"])

    def read(name: str, source: int) -> StageInput:
        return StageInput(name, "float32", _SHAPE, source)

    def made(name: str, *readers: int, result: bool = False) -> StageOutput:
        return StageOutput(name, "float32", _SHAPE, readers, result)

    stages = [
        Stage(0, "s0.onnx", 2, 4_000_000, 3_000_000, (read("x", -1),), (made("a", 1), made("s", 4))),
        Stage(1, "s1.onnx", 1, 3_000_000, 2_000_000, (read("a", 0),), (made("b", 3),)),
        Stage(3, "s3.onnx", 2, 6_000_000, 4_000_000, (read("b", 1),), (made("c", 4), made("z", result=True))),
        Stage(4, "s4.onnx", 1, 2_000_000, 1_000_000, (read("c", 3), read("s", 0)), (made("y", result=True),)),
    ]
    write_manifest(folder, stages, ["x"], ["y", "z"])
    return folder


def bypassed(x: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """Return the results of :func:`bypass`."""
    return {"y": 8 * x + np.maximum(x, 0), "z": -4 * x}


def whole_bypass(path: Path) -> Path:
    """Write the model that :func:`bypass` has the stages of."""
    nodes = "a = MatMul(x, w) s = Relu(x) b = MatMul(a, w) c = MatMul(b, w) z = Neg(b) y = Add(c, s)"
    save(path, nodes, ["x"], ["y", "z"])
    return path


def single(folder: Path) -> Path:
    """Write one stage, the whole model: ``y = 2x``."""
    folder.mkdir()
    save(folder / "s0.onnx", "y = MatMul(x, w)", ["x"], ["y"])
    read = StageInput("x", "float32", _SHAPE, -1)
    made = StageOutput("y", "float32", _SHAPE, (), True)
    write_manifest(folder, [Stage(0, "s0.onnx", 1, 5, 5, (read,), (made,))], ["x"], ["y"])
    return folder


def _loop(path: Path, rounds: int) -> None:
    """Write ``b = 2a`` with *rounds* multiplications by the identity before."""
    nodes = (
        f"same = Loop(count, yes, a) <body = b (int64 i, bool go, float[{SIZE}, {SIZE}] v) => "
        f"(bool still, float[{SIZE}, {SIZE}] u) {{ still = Identity(go) u = MatMul(v, one) }}> b = MatMul(same, w)"
    )
    save(path, nodes, ["a"], ["b"], count=np.int64(rounds), yes=np.array(True), one=np.eye(SIZE, dtype=np.float32))
