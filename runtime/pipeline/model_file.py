"""A model opened in a worker process, its inputs and outputs held against those expected, bound to shared memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mtpp.errors import InputError
from mtpp.runtime.pipeline.memory import Array
from mtpp.runtime.session import SessionChoices, first_line, onnxruntime, open_session

Expected = tuple[str, str, tuple[int, ...]]
"""Name, numpy's name of the type, and shape of a tensor."""

_TYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""numpy's names of the types that ONNX Runtime names in ``tensor(…)``."""

_OF_ONNXRUNTIME = {name: own for own, name in _TYPES.items()}


@dataclass(frozen=True)
class ModelFile:
    """A file, and what of it is needed.

    Attributes
    ----------
    path
        Of the file.
    inputs, outputs
        What the manifest says of them.
    seed
        Of weights whose files are absent.
    """

    path: Path
    inputs: tuple[Expected, ...]
    outputs: tuple[Expected, ...]
    seed: int

    def open(self, choices: SessionChoices) -> Any:
        """Return a session of it.

        Raises
        ------
        InputError
            If it cannot be loaded, or does not read and make the tensors that the manifest says.
        """
        session = open_session(self.path, choices, display=str(self.path), weights=self._absent_weights())
        self._check("input", session.get_inputs(), self.inputs, all_of_them=True)
        self._check("output", session.get_outputs(), self.outputs, all_of_them=False)
        return session

    def check_declared(self) -> None:
        """Hold what the manifest says against what the file declares, before anything is set aside for it.

        Raises
        ------
        InputError
            If the file is no model, or does not read and make the tensors that the manifest says. Sizes that it leaves
            open show only when it runs.
        """
        from mtpp.formats.onnx.loading import parse_model

        display = str(self.path)
        try:
            graph = parse_model(self.path.read_bytes(), display).graph
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=display) from None
        own = {tensor.name for tensor in graph.initializer}
        self._check(
            "input", [_declared(one) for one in graph.input if one.name not in own], self.inputs, all_of_them=True
        )
        self._check("output", [_declared(one) for one in graph.output], self.outputs, all_of_them=False)

    def _absent_weights(self) -> dict[str, Array]:
        display = str(self.path)
        try:
            if not _names_files(self.path):
                return {}
            data = self.path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=display) from None
        from mtpp.formats.onnx.loading import parse_model
        from mtpp.host.free_memory import free_bytes
        from mtpp.runtime.weights import absent_weights

        model = parse_model(data, display)
        return absent_weights(model, self.path.parent, display, self.seed, limit=free_bytes())

    def _check(self, what: str, found: Sequence[Any], expected: Sequence[Expected], *, all_of_them: bool) -> None:
        found_by_name = {tensor.name: tensor for tensor in found}
        for name, dtype, shape in expected:
            problem = None
            if name not in found_by_name:
                problem = f"it has none, and {_list(found_by_name)} instead"
            else:
                own = found_by_name.pop(name)
                type_ = own.type.removeprefix("tensor(").removesuffix(")")
                sizes = own.shape if own.shape is None else list(own.shape)
                fits = sizes is None or (
                    len(sizes) == len(shape)
                    and all(
                        not isinstance(size, int) or size == wanted for size, wanted in zip(sizes, shape, strict=True)
                    )
                )
                if _TYPES.get(type_) != dtype:
                    problem = f"it is of type {type_}, not {dtype}"
                elif not fits:
                    problem = f"its shape is {sizes}, not {list(shape)}"
            if problem:
                raise self._error(f"{what} {name!r}", f"{problem}, as the manifest says")
        if all_of_them and found_by_name:
            raise self._error(f"{what} {next(iter(found_by_name))!r}", "the manifest does not say what to feed it")

    def _error(self, where: str, problem: str) -> InputError:
        return InputError(problem, source=str(self.path), where=where, remedy="split the model again")

    def run(self, session: Any, binding: Any) -> None:
        """Run a session once with everything bound.

        Raises
        ------
        InputError
            If it fails, as it does when an output does not have the size that the manifest says.
        """
        try:
            session.run_with_iobinding(binding)
        except Exception as error:  # its exceptions have no base of their own
            raise InputError(f"ONNX Runtime cannot run it: {first_line(error)}", source=str(self.path)) from None


class _Declared(NamedTuple):
    """An input or output as ONNX Runtime describes them; the shape is None where not even its rank is declared."""

    name: str
    type: str
    shape: list[int | str | None] | None


def _declared(value: Any) -> _Declared:
    """Describe a ``ValueInfoProto``."""
    from mtpp.formats.onnx.tensor_type import dtype_name

    if not value.type.HasField("tensor_type"):
        return _Declared(value.name, value.type.WhichOneof("value") or "unknown type", None)
    tensor = value.type.tensor_type
    shape: list[int | str | None] | None = None
    if tensor.HasField("shape"):
        shape = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim]
    name = dtype_name(tensor.elem_type)
    return _Declared(value.name, f"tensor({_OF_ONNXRUNTIME.get(name, name)})", shape)


def _names_files(path: Path) -> bool:
    """Say cheaply whether a model may have weights in other files: such an entry has the key ``location``.

    Loading what it takes to parse the model would make up half of a worker's start.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return True
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(b"location") >= 0


def _list(names: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, names)) or "no other"


def shared_values(views: Mapping[str, Array]) -> dict[str, Any]:
    """Return the tensors of a slot as ONNX Runtime's, on the same memory: nothing is copied."""
    make = onnxruntime().OrtValue.ortvalue_from_numpy
    return {name: make(array) for name, array in views.items()}
