"""An ONNX model opened in a worker process, bound to shared memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.results.stage_records import CPU
from mtpp.host.capacity import free_bytes
from mtpp.runtime.element_types import Contents
from mtpp.runtime.pipeline.model_file import Declared, ModelFile
from mtpp.runtime.session import (
    CUDA_PROVIDER,
    SessionChoices,
    first_line,
    onnxruntime,
    open_session,
    ort_value,
    tensor_contents,
)

_TYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""numpy's names of the types that ONNX Runtime names in ``tensor(…)``."""


class OnnxFile(ModelFile):
    """An ONNX file, run by ONNX Runtime."""

    def open(self, choices: SessionChoices) -> OnnxSession:
        """Return a session of it: see :meth:`ModelFile.open`."""
        choices = replace(choices, place=self.place)
        session = open_session(self.path, choices, display=self.display, weights=self._absent_weights())
        self._check("input", [_of_session(one) for one in session.get_inputs()], self.inputs, all_of_them=True)
        self._check("output", [_of_session(one) for one in session.get_outputs()], self.outputs, all_of_them=False)
        spare = {one.name: self._any_value(one) for one in session.get_inputs() if one.name in self.spare}
        return OnnxSession(session, tuple(name for name, _, _ in self.outputs), self.display, spare)

    def check_place(self) -> None:
        """See :meth:`ModelFile.check_place`."""
        if self.place != CPU and CUDA_PROVIDER not in onnxruntime().get_available_providers():
            raise self._no_place("ONNX Runtime", "no CUDA")

    def check_declared(self) -> None:
        """Hold the manifest against the file: see :meth:`ModelFile.check_declared`."""
        from mtpp.formats.onnx.loading import parse_model

        graph = parse_model(self._bytes(), self.display).graph
        own = {tensor.name for tensor in graph.initializer}
        self._check(
            "input", [_declared(one) for one in graph.input if one.name not in own], self.inputs, all_of_them=True
        )
        self._check("output", [_declared(one) for one in graph.output], self.outputs, all_of_them=False)

    def _any_value(self, tensor: Any) -> Any:
        """Return a value for an input that no result depends on: ONNX Runtime asks for one all the same."""
        from onnx import TensorProto, helper

        name = tensor.type.removeprefix("tensor(").removesuffix(")")
        number = dict(TensorProto.DataType.items()).get(name.upper())
        if number is None:
            raise InputError(
                f"no value can be made up for a {tensor.type}",
                source=self.display,
                where=f"input {tensor.name!r}",
                remedy="no stage reads it: leave out ‹model›",
            )
        shape = [size if isinstance(size, int) else 1 for size in tensor.shape]
        text = number == TensorProto.STRING
        return ort_value(onnxruntime(), np.zeros(shape, np.str_ if text else helper.tensor_dtype_to_np_dtype(number)))

    def _absent_weights(self) -> dict[str, Array]:
        try:
            if not _names_files(self.path):
                return {}
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=self.display) from None
        from mtpp.formats.onnx.loading import parse_model
        from mtpp.runtime.random_values import absent_weights

        model = parse_model(self._bytes(), self.display)
        return absent_weights(model, self.path.parent, self.display, self.seed, limit=free_bytes())


@dataclass
class OnnxSession:
    """A session of ONNX Runtime, with a binding that is used again for each batch.

    Attributes
    ----------
    spare
        Values of inputs that no result depends on.
    """

    session: Any
    outputs: tuple[str, ...]
    display: str
    spare: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._binding = self.session.io_binding()
        for name, value in self.spare.items():
            self._binding.bind_ortvalue_input(name, value)

    def shared(self, views: Mapping[str, Contents]) -> dict[str, Any]:
        """Return arrays as ``OrtValue`` on the same memory; texts and elements that share bytes are copied."""
        ort = onnxruntime()
        return {name: ort_value(ort, array) for name, array in views.items()}

    def array(self, value: Any) -> Contents:
        """Return an ``OrtValue`` as an array."""
        return tensor_contents(value)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name."""
        try:
            made = self.session.run_with_ort_values(list(self.outputs), {**inputs, **self.spare})
        except Exception as error:  # its exceptions have no base of their own
            raise self._failed(error) from None
        return dict(zip(self.outputs, made, strict=True))

    def run_into(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], others: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Run with everything bound."""
        for name, value in inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        for name, value in outputs.items():
            self._binding.bind_ortvalue_output(name, value)
        for name in others:
            self._binding.bind_output(name)
        try:
            self.session.run_with_iobinding(self._binding)
        except Exception as error:  # its exceptions have no base of their own
            raise self._failed(error) from None
        if not others:
            return {}
        made = dict(zip((*outputs, *others), self._binding.get_outputs(), strict=True))  # in the order first bound
        return {name: made[name] for name in others}

    def _failed(self, error: BaseException) -> InputError:
        return InputError(f"ONNX Runtime cannot run it: {first_line(error)}", source=self.display)


def _of_session(tensor: Any) -> Declared:
    """Describe an input or output of a session."""
    name = tensor.type.removeprefix("tensor(").removesuffix(")")
    return Declared(tensor.name, _TYPES.get(name, name), tensor.shape)


def _declared(value: Any) -> Declared:
    """Describe a ``ValueInfoProto``."""
    from mtpp.formats.onnx.tensor_type import dtype_name

    if not value.type.HasField("tensor_type"):
        return Declared(value.name, value.type.WhichOneof("value") or "unknown type", None)
    tensor = value.type.tensor_type
    shape: list[int | str | None] | None = None
    if tensor.HasField("shape"):
        shape = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim]
    return Declared(value.name, dtype_name(tensor.elem_type), shape)


def _names_files(path: Path) -> bool:
    """Say cheaply whether a model may have weights in other files: such an entry has the key ``location``.

    Loading what it takes to parse the model would make up half of a worker's start.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return True
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(b"location") >= 0
