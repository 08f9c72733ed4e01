"""ONNX's own backend tests, held against what mtpp reads of their models and writes of their stages.

Models, inputs and expected results come with the package ``onnx``; ONNX Runtime says which of them it runs as expected.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from stage_equality import OnnxStages, onnx_session

import mtpp

_STORED = ("simple", "pytorch-converted", "pytorch-operator")
_BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}


@dataclass(frozen=True)
class BackendCase:
    """One model with its inputs and the results that are expected of it.

    Attributes
    ----------
    data_sets
        (inputs, results), each in the order of the model's.
    rtol, atol
        Tolerances of the results.
    """

    name: str
    model: onnx.ModelProto
    data_sets: tuple[tuple[list[Any], list[Any]], ...]
    rtol: float
    atol: float

    def feeds(self, inputs: list[Any]) -> dict[str, Any]:
        """Return inputs by name; an input that is left out is not among them."""
        filled = {value.name for value in self.model.graph.initializer}
        names = [value.name for value in self.model.graph.input]
        if len(inputs) < len(names):
            names = [name for name in names if name not in filled]
        values = zip(names, map(_plain, inputs), strict=False)
        return {name: value for name, value in values if value is not None}

    def hold(self, found: list[Any], expected: list[Any]) -> None:
        """Hold results against the expected ones, as ONNX's own runner of these tests does."""
        assert len(found) == len(expected), f"{len(found)} results for {len(expected)}"
        for one, other in zip(found, expected, strict=True):
            self._hold_one(one, _plain(other))

    def _hold_one(self, one: Any, other: Any) -> None:
        if isinstance(other, list | tuple):
            self.hold(list(one), list(other))
            return
        if one is None or other is None:
            assert one is other, "a result is absent"
            return
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape, f"size {one.shape} for {other.shape}"
        if one.dtype.kind in "OSU" or other.dtype.kind in "OSU":
            assert one.astype(str).tolist() == other.astype(str).tolist()
        elif other.dtype.kind in "fc":
            assert np.allclose(one, other, rtol=self.rtol, atol=self.atol, equal_nan=True)
        elif "float" in other.dtype.name:  # of few bits
            assert np.allclose(one.astype(float), other.astype(float), rtol=0.1, atol=0.01, equal_nan=True)
        else:
            assert np.array_equal(one, other)


@cache
def backend_cases() -> tuple[BackendCase, ...]:
    """Return all cases whose model and data come with the package, which takes seconds once in a process."""
    return tuple(_cases())


def _cases() -> Iterator[BackendCase]:
    from onnx.backend.test.case import model as models
    from onnx.backend.test.case import node as nodes
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [*nodes.collect_testcases(None), *models.collect_testcases()]
    seen = set()
    for case in cases:
        if case.model is not None:
            seen.add(case.name)
            sets = tuple((list(inputs), list(results)) for inputs, results in case.data_sets)
            yield BackendCase(case.name, case.model, sets, case.rtol, case.atol)
    for case in (case for kind in _STORED for case in load_model_tests(kind=kind)):
        if case.name not in seen:
            seen.add(case.name)
            model = onnx.load(Path(case.model_dir, "model.onnx"))
            sets = tuple(_stored_sets(model, Path(case.model_dir)))
            yield BackendCase(case.name, model, sets, case.rtol, case.atol)


def _stored_sets(model: onnx.ModelProto, folder: Path) -> Iterator[tuple[list[Any], list[Any]]]:
    for data in sorted(folder.glob("test_data_set_*")):
        inputs, results = (
            [_parsed(value.type, path) for i, value in enumerate(values) if (path := data / f"{kind}_{i}.pb").exists()]
            for kind, values in (("input", model.graph.input), ("output", model.graph.output))
        )
        yield inputs, results


def _parsed(kind: onnx.TypeProto, path: Path) -> Any:
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(path.read_bytes()))
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def runs_as_expected(case: BackendCase, path: Path) -> bool:
    """Write a case's model; return whether ONNX Runtime computes the expected results of it."""
    onnx.save(case.model, path)
    try:
        session = onnx_session(path)
        for inputs, expected in case.data_sets:
            case.hold(session.run(None, case.feeds(inputs)), expected)
    except Exception:  # its exceptions have no base of their own
        return False
    return bool(case.data_sets)


def fault(case: BackendCase, folder: Path) -> str | None:
    """Read, partition and split a case whose model lies in ``folder/model.onnx``; return what is wrong, or None.

    Notes
    -----
    Stages at k = 1, 2, 3 have to give the expected results, a first empty one included: further ones are like it. Each
    tensor of the graph has to have the size that it has in the run; where its size was proposed, at least that.
    """
    try:
        reading = mtpp.read(folder / "model.onnx", dims="auto")
        wrong = wrong_size(case, reading, folder / "all.onnx")
        for k in range(1, min(3, reading.graph.op_count + 1) + 1):
            stages = folder / f"stages-{k}"
            mtpp.split(reading, mtpp.partition(reading, k), stages)
            opened = OnnxStages(stages)
            for inputs, expected in case.data_sets:
                case.hold(opened.run(case.feeds(inputs)), expected)
    except Exception as error:  # of mtpp, or of ONNX Runtime on what mtpp wrote
        return f"{type(error).__name__}: {error}"
    return wrong


def wrong_size(case: BackendCase, reading: Any, path: Path) -> str | None:
    """Compare the sizes of all tensors of a graph with those of a run of the whole model; return a wrong one."""
    made = {name for node in case.model.graph.node for name in node.output}
    sizes = dict(zip(reading.graph.tensor_names, reading.graph.tensor_bytes.tolist(), strict=True))
    names = [name for name in sizes if name in made]
    if not names:
        return None
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    listed = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in listed)
    onnx.save(model, path)
    proposed = {dim.rpartition(":")[0] for dim in reading.proposed_dims}
    inputs, _ = case.data_sets[0]
    for name, value in zip(names, onnx_session(path).run(names, case.feeds(inputs)), strict=True):
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OSU":
            continue
        bits = value.size * _BITS.get(value.dtype.name, 8 * value.dtype.itemsize)
        found, actual = sizes[name], -(-bits // 8)
        if found < actual or (found > actual and name not in proposed):
            return f"tensor {name!r} has {actual} B, and is said to have {found} B"
    return None
