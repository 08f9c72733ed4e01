"""Programs that run ONNX models for a comparison: ONNX Runtime, and onnx's reference evaluator for what that cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.runtime.checking.contents import contents_of
from mtpp.runtime.session import first_line, onnxruntime, open_session, ort_value

_WRONG_SIZE = "Got invalid dimensions"


class Runner(Protocol):
    """A program that runs models; values between models are of its own kind."""

    def value(self, array: Array) -> Any:
        """Return an array as a value."""

    def contents(self, value: Any) -> list[Array]:
        """Return a value as an array, or as those of a sequence."""

    def open(self, model: bytes | Path, display: str, weights: Mapping[str, Array], folder: Path | None) -> Any:
        """Return a model ready to run; raise InputError if it cannot be loaded."""

    def run(self, opened: Any, names: Sequence[str], feeds: Mapping[str, Any], display: str) -> dict[str, Any]:
        """Return outputs by name; raise InputError if the model cannot be run."""


class OnnxRuntime:
    """ONNX Runtime, with values of its own."""

    def value(self, array: Array) -> Any:
        """Return an array as a value: see :meth:`Runner.value`."""
        return ort_value(onnxruntime(), array)

    def contents(self, value: Any) -> list[Array]:
        """Return arrays: see :meth:`Runner.contents`."""
        return contents_of(value)

    def open(self, model: bytes | Path, display: str, weights: Mapping[str, Array], folder: Path | None) -> Any:
        """Return a session: see :meth:`Runner.open`."""
        return open_session(
            model, display=display, weights=weights, folder=folder if isinstance(model, bytes) else None
        )

    def run(self, opened: Any, names: Sequence[str], feeds: Mapping[str, Any], display: str) -> dict[str, Any]:
        """Return outputs by name: see :meth:`Runner.run`."""
        try:
            return dict(zip(names, opened.run_with_ort_values(list(names), dict(feeds)), strict=True))
        except Exception as error:  # its exceptions have no base of their own
            text = first_line(error)
            remedy = "sizes that depend on data are not those of the plan: set ‹dims› TENSOR:AXIS=…, and plan anew"
            raise InputError(
                f"ONNX Runtime cannot run it: {text}", source=display, remedy=remedy if _WRONG_SIZE in text else None
            ) from None


class ReferenceEvaluator:
    """onnx's reference evaluator; values are arrays and lists of them."""

    def value(self, array: Array) -> Any:
        """Return an array as it is; texts as Python's."""
        return array.astype(object) if array.dtype.kind in "SU" else array

    def contents(self, value: Any) -> list[Array]:
        """Return arrays: see :meth:`Runner.contents`."""
        return _arrays(value)

    def open(self, model: bytes | Path, display: str, weights: Mapping[str, Array], folder: Path | None) -> Any:
        """Return an evaluator: see :meth:`Runner.open`."""
        import onnx
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator as Evaluator

        if weights:
            raise InputError("weights are absent that onnx's reference evaluator needs", source=display)
        try:
            proto = onnx.ModelProto.FromString(model if isinstance(model, bytes) else model.read_bytes())
            if any(function.overload for function in proto.functions):
                raise InputError("onnx's reference evaluator takes no overloads of functions", source=display)
            load_external_data_for_model(proto, str(model.parent if isinstance(model, Path) else folder or Path()))
            return Evaluator(proto)
        except InputError:
            raise
        except Exception as error:  # whatever its kernels raise
            raise self._failed(error, display) from None

    def run(self, opened: Any, names: Sequence[str], feeds: Mapping[str, Any], display: str) -> dict[str, Any]:
        """Return outputs by name: see :meth:`Runner.run`."""
        try:
            with np.errstate(all="ignore"):
                return dict(zip(names, opened.run(list(names), dict(feeds)), strict=True))
        except Exception as error:  # whatever its kernels raise
            raise self._failed(error, display) from None

    @staticmethod
    def _failed(error: BaseException, display: str) -> InputError:
        text = " ".join(str(error).split())[:200] or type(error).__name__
        return InputError(f"onnx's reference evaluator cannot run it: {text}", source=display)


def _arrays(value: Any) -> list[Array]:
    return [np.asarray(one) for one in value] if isinstance(value, list) else [np.asarray(value)]
