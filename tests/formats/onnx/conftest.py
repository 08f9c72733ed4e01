"""Small ONNX models built in memory, and systems under which costs are easy to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto
from onnx_text import built, typed

from mtpp.formats.onnx import read_onnx
from mtpp.inference.graph import CostGraph
from mtpp.machine.device import Device
from mtpp.machine.link import Link


class Reading:
    """Builds models and reads them.

    Parameters are stored as external data in a file that does not exist: reading one would fail.
    """

    source = "model.onnx"
    roofline = Device("roofline", 20 * 10**12, 200 * 10**9, Link(25 * 10**9))
    bytes_only = Device("bytes", 10**30, 10**12, Link(25 * 10**9))
    """Under this system the work of an op in picoseconds is its traffic in bytes."""

    @staticmethod
    def parameter(name: str, kind: Any) -> TensorProto:
        """Return an initializer whose data is absent."""
        told = typed(name, kind).type.tensor_type
        shape = [dim.dim_value for dim in told.shape.dim]
        tensor = TensorProto(name=name, data_type=told.elem_type, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="absent.bin")
        return tensor

    @classmethod
    def model(
        cls,
        nodes: str | Sequence[onnx.NodeProto],
        inputs: Mapping[str, Any],
        outputs: Sequence[str],
        parameters: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> onnx.ModelProto:
        """Return a model; outputs are declared without a type."""
        stored = [cls.parameter(name, kind) for name, kind in (parameters or {}).items()]
        return built(nodes, inputs, outputs, constants, stored=stored, **{"opset": 20, "ir_version": 10, **more})

    @classmethod
    def read(
        cls,
        model: onnx.ModelProto | bytes,
        *,
        dims: Mapping[str, int] | None = None,
        system: Device | None = None,
        source: str | None = None,
    ) -> CostGraph:
        """Read a model, by default under the roofline."""
        data = model if isinstance(model, bytes) else model.SerializeToString()
        return read_onnx(None, data, source=source or cls.source, dims=dims, system=system or cls.roofline)

    @classmethod
    def graph(
        cls, *args: Any, dims: Mapping[str, int] | None = None, system: Device | None = None, **kw: Any
    ) -> CostGraph:
        """Build a model and read it."""
        return cls.read(cls.model(*args, **kw), dims=dims, system=system)


@pytest.fixture(scope="session")
def reading() -> type[Reading]:
    """Return the builder and reader of small models."""
    return Reading


@pytest.fixture(scope="session")
def light_model() -> Callable[[str], bytes]:
    """Return a function that gives the bytes of one of the nine light models inside the onnx package."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return lambda name: (folder / f"light_{name}.onnx").read_bytes()
