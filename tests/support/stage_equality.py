"""Oracle of splits: stage files run one after the other compute the results of the whole model.

Runs ONNX Runtime and PyTorch as they are, without mtpp's own sessions, random values or comparisons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mtpp

Feeds = Mapping[str, Any]

TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2}
"""Largest |difference| over the largest |value| of a result; other floats 0.1, everything else exact."""


def runtime_version() -> tuple[int, ...]:
    """Return the major and the minor version of ONNX Runtime."""
    import onnxruntime

    return tuple(map(int, onnxruntime.__version__.split(".")[:2]))


def onnx_session(model: Path) -> Any:
    """Open a model in ONNX Runtime, nothing fused, on one thread, quietly."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def random_feeds(
    model: Path, seed: int, sizes: Mapping[str, int] | None = None, whole: tuple[int, int] = (0, 2)
) -> dict[str, Any]:
    """Draw a value for each input of an ONNX model that has no default.

    Parameters
    ----------
    sizes
        Of symbolic axes, by name; 3 where absent.
    whole
        Range of whole numbers, the end excluded.
    """
    rng = np.random.default_rng(seed)
    drawn: dict[str, Any] = {}
    for value in onnx_session(model).get_inputs():
        shape = [size if isinstance(size, int) else (sizes or {}).get(size, 3) for size in value.shape]
        element = value.type.removeprefix("tensor(").removesuffix(")")
        if element == "string":
            drawn[value.name] = rng.choice(["a", "b", "c"], shape).astype(object)
        elif element == "bool":
            drawn[value.name] = rng.integers(0, 2, shape).astype(bool)
        elif "int" in element:
            drawn[value.name] = rng.integers(*whole, shape).astype(element)
        else:
            named = {"float": "float32", "double": "float64"}.get(element, element)
            drawn[value.name] = rng.standard_normal(shape).astype(named)
    return drawn


def run_onnx(model: Path, feeds: Feeds) -> list[Any]:
    """Return the results of a whole ONNX model, in its order."""
    return list(onnx_session(model).run(None, dict(feeds)))


def run_onnx_on_each(model: Path, feeds: Iterable[Feeds]) -> list[list[Any]]:
    """Return the results of a whole ONNX model, opened once, for each of some inputs."""
    session = onnx_session(model)
    return [list(session.run(None, dict(values))) for values in feeds]


class OnnxStages:
    """Stages of a folder, opened once for any number of inputs."""

    def __init__(self, folder: Path) -> None:
        self._manifest = read_manifest(folder)
        self._sessions = [onnx_session(folder / stage["file"]) for stage in self._manifest["stages"]]

    def run(self, feeds: Feeds) -> list[Any]:
        """Run the stages one after the other; return the results that the manifest lists, in its order.

        Values for overridable initializers in *feeds* reach every stage that lists them as inputs.
        """
        live = dict(feeds)
        for entry in self._manifest["direct"]:
            live[entry["output"]] = feeds[entry["input"]]
        for session in self._sessions:
            read = [value.name for value in session.get_inputs()]
            read += [value.name for value in session.get_overridable_initializers() if value.name in feeds]
            names = [value.name for value in session.get_outputs()]
            live |= dict(zip(names, session.run(names, {name: live[name] for name in read}), strict=True))
        return [live[output["name"]] for output in self._manifest["outputs"]]


def run_onnx_stages(folder: Path, feeds: Feeds) -> list[Any]:
    """Return the results of a folder of stages for one input."""
    return OnnxStages(folder).run(feeds)


def assert_equal(found: Any, expected: Any, where: str = "result") -> None:
    """Hold two results against each other: sizes and types exactly, floats within a tolerance, sequences by element."""
    if isinstance(expected, list | tuple):
        assert isinstance(found, list | tuple), where
        assert len(found) == len(expected), where
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_equal(one, other, f"{where}[{index}]")
        return
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        assert found.keys() == expected.keys(), where
        for key in expected:
            assert_equal(found[key], expected[key], f"{where}[{key!r}]")
        return
    if expected is None or not hasattr(expected, "shape"):
        assert found == expected, f"{where}: {found!r} is not {expected!r}"
        return
    one, other = np.asarray(found), np.asarray(expected)
    assert (one.shape, one.dtype) == (other.shape, other.dtype), f"{where}: {one.shape} is not {other.shape}"
    if "float" not in other.dtype.name:
        assert np.array_equal(one, other), f"{where}: {one} is not {other}"
        return
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = other[np.isfinite(other)]
    largest = float(np.abs(finite).max()) if finite.size else 1.0
    tolerance = TOLERANCES.get(np.asarray(expected).dtype.name, 0.1)
    assert np.allclose(one, other, rtol=0, atol=tolerance * largest, equal_nan=True), f"{where}: {one} is not {other}"


def assert_onnx_stages_equal(model: Path, plan: Any, folder: Path, feeds: Iterable[Feeds], **more: Any) -> Path:
    """Split an ONNX model by a plan into *folder*; hold its stages against the whole on each of the inputs.

    Parameters
    ----------
    plan
        Anything that :func:`mtpp.split` takes.
    more
        Passed on to :func:`mtpp.split`.
    """
    feeds = list(feeds)
    return _hold_split(model, plan, folder, feeds, run_onnx_on_each(model, feeds), **more)


def _hold_split(
    model: Path, plan: Any, folder: Path, feeds: Sequence[Feeds], expected: Sequence[list[Any]], **more: Any
) -> Path:
    mtpp.split(model, plan, folder, force=folder.exists(), **more)
    stages = OnnxStages(folder)
    for number, (values, results) in enumerate(zip(feeds, expected, strict=True)):
        assert_equal(stages.run(values), results, f"results of input {number}")
    return folder


def assert_cuts_equal(
    model: Path, folder: Path, feeds: Sequence[Feeds], cuts: Iterable[int] | None = None, dims: Any = None
) -> list[Path]:
    """Split an ONNX model into two stages behind each number of its ops; hold the stages against the whole.

    Parameters
    ----------
    cuts
        Numbers of ops in the first stage; all from 0 to one less than all ops where absent.

    Returns
    -------
    The folder of each split, below *folder*.
    """
    ops = mtpp.read(model, dims=dims).graph.op_names
    expected, folders = run_onnx_on_each(model, feeds), []
    for cut in range(len(ops)) if cuts is None else cuts:
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        folders.append(_hold_split(model, plan, folder / f"cut{cut}", feeds, expected, dims=dims))
    return folders


def read_manifest(folder: Path) -> Any:
    """Return the manifest of a folder of stages as it stands in the file."""
    return json.loads((folder / "manifest.json").read_text())


def assert_partitions_equal(
    model: Path, folder: Path, feeds: Sequence[Feeds], ks: Iterable[int] = (1, 2, 3), **more: Any
) -> None:
    """Partition an ONNX model into each number of stages, split it, and hold the stages against the whole.

    Parameters
    ----------
    more
        Passed on to :func:`mtpp.read`, such as ``dims``.
    """
    reading, expected = mtpp.read(model, **more), run_onnx_on_each(model, feeds)
    for k in ks:
        _hold_split(model, mtpp.partition(reading, k), folder / f"k{k}", feeds, expected)


def run_program_stages(folder: Path, feeds: Feeds) -> list[Any]:
    """Run the stages of an exported program one after the other; return the results that its manifest lists.

    Parameters
    ----------
    feeds
        Tensors by the names of the program's inputs; each stage is given copies.
    """
    import torch

    manifest = read_manifest(folder)
    live = dict(feeds)
    for entry in manifest["direct"]:
        live[entry["output"]] = feeds[entry["input"]]
    for stage in manifest["stages"]:
        module = torch.export.load(folder / stage["file"]).module()
        with torch.no_grad():
            made = module(*(live[value["name"]].clone() for value in stage["inputs"]))
        made = made if isinstance(made, list | tuple) else (made,)
        live |= dict(zip((value["name"] for value in stage["outputs"]), made, strict=True))
    return [one["value"] if "value" in one else live[one["name"]] for one in manifest["outputs"]]
