"""ONNX Runtime sessions: the only place that imports it, and how it is told to run."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.runtime.element_types import Contents, Packed, is_numpys, packed_bits

_CHANGES_OPS = (
    "CommonSubexpressionElimination",
    "ConcatSliceElimination",
    "ConstantSharing",
    "ConvActivationFusion",
    "ConvAddActivationFusion",
    "DoubleQDQPairsRemover",
    "EnsureUniqueDQForNodeUnit",
    "FreeDimensionOverrideTransformer",
    "GeluFusionL1",
    "GemmActivationFusion",
    "LayerNormFusionL1",
    "Level1_RuleBasedTransformer",
    "MatMulAddFusion",
    "MatMulScaleFusion",
    "PadFusion",
    "PropagateCastOps",
    "QDQPropagationTransformer",
    "ReshapeFusion",
    "SimplifiedLayerNormFusionL1",
    "TransposeOptimizer",
    "WeightBiasQuantization",
)
"""ONNX Runtime's basic optimizers that rename, merge or drop ops, by their names in its ``graph_transformer_utils``.

What is left of the basic level folds constants: weights that the file computes, as quantised and generated ones, would
otherwise be computed again in every run.
"""

_CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
"""What its messages begin with: the number and the name of a kind of error."""

_SHAPE_ELSEWHERE = "Cannot parse data from external tensors"

CUDA_PROVIDER = "CUDAExecutionProvider"


@dataclass(frozen=True)
class SessionChoices:
    """How a session runs.

    Attributes
    ----------
    threads
        For the ops; ops run one after the other.
    optimise
        Whether ONNX Runtime may fuse and rearrange ops. Without, it folds constants only, so that every op of the file
        that depends on an input runs under its own name.
    profile_prefix
        Path before the name of the profile that is written; None for none.
    as_saved
        Whether the model is one that a session saved: nothing is left to fuse, fold or rearrange in it.
    imports
        Python modules that register operators with PyTorch, where that runs the model.
    save_as
        Where to write the model as it is run, its weights in a file ``weights`` beside it; None for nowhere.
    spin
        Whether threads that wait for work do so busily: faster alone, a hindrance to other processes on the same cores.
    place
        Where it runs: ``"cpu"``, or ``"cuda:0"`` for the first GPU; what that cannot run stays on the CPU.
    """

    threads: int = 1
    optimise: bool = False
    profile_prefix: str | None = None
    spin: bool = True
    place: str = "cpu"
    as_saved: bool = False
    save_as: Path | None = None
    imports: tuple[str, ...] = ()


def onnxruntime() -> Any:
    """Return the module ``onnxruntime``; raise InputError if it is not installed."""
    try:
        import onnxruntime as module
    except ImportError:
        raise _not_installed() from None
    return module


def require_onnxruntime() -> None:
    """Raise InputError if ONNX Runtime is not installed; it is not loaded."""
    if find_spec("onnxruntime") is None:
        raise _not_installed()


def _not_installed() -> InputError:
    return InputError("ONNX Runtime is not installed", remedy="pip install 'mtpp[run]'")


def open_session(
    model: Path | bytes,
    choices: SessionChoices | None = None,
    *,
    display: str,
    weights: Mapping[str, Array] | None = None,
    folder: Path | None = None,
) -> Any:
    """Open an ``onnxruntime.InferenceSession``, on the CPU if nobody says otherwise.

    Parameters
    ----------
    model
        A file, or a serialized model.
    display
        What messages call it.
    weights
        Contents of initializers whose external data is absent, by name; kept alive by the session.
    folder
        Where the external data of a serialized model lies.
    """
    ort = onnxruntime()
    choices = choices or SessionChoices()
    options = ort.SessionOptions()
    options.intra_op_num_threads = choices.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if choices.optimise else level.ORT_ENABLE_BASIC
    if choices.as_saved:
        options.graph_optimization_level = level.ORT_DISABLE_ALL
    if choices.save_as is not None:
        options.optimized_model_filepath = str(choices.save_as)
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights")
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    if choices.profile_prefix is not None:
        options.enable_profiling = True
        options.profile_file_prefix = choices.profile_prefix
    if not choices.spin:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    if weights:
        names = list(weights)
        options.add_external_initializers(names, [ort_value(ort, weights[name]) for name in names])
    disabled = None if choices.optimise or choices.as_saved else list(_CHANGES_OPS)

    providers = _providers(choices.place)

    def opened(target: str | bytes) -> Any:
        session = ort.InferenceSession(target, options, providers=providers, disabled_optimizers=disabled)
        if len(providers) > 1 and CUDA_PROVIDER not in session.get_providers():
            raise InputError(f"ONNX Runtime cannot use {choices.place}", source=display)
        return session

    try:
        try:
            return opened(model if isinstance(model, bytes) else str(model))
        except Exception as error:
            if _SHAPE_ELSEWHERE not in str(error):
                raise
        if isinstance(model, Path):
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(model.parent))
        return opened(_with_small_contents(model, folder, display))
    except InputError:
        raise
    except Exception as error:  # its exceptions have no base of their own
        raise InputError(f"ONNX Runtime cannot load it: {first_line(error)}", source=display) from None


def _providers(place: str) -> list[Any]:
    """Return ONNX Runtime's names of what runs the ops of a model at a place."""
    _, _, number = place.partition(":")
    return [*([(CUDA_PROVIDER, {"device_id": number})] if number else []), "CPUExecutionProvider"]


def _with_small_contents(model: Path | bytes, folder: Path | None, display: str) -> bytes:
    """Return a model that holds its small tensors itself: ONNX Runtime takes no shape from another file."""
    import onnx

    from mtpp.formats.onnx.external_data import bring_small_contents

    data, beside = (model.read_bytes(), model.parent) if isinstance(model, Path) else (model, folder or Path())
    proto = onnx.ModelProto.FromString(data)
    bring_small_contents(proto, beside, display)
    return bytes(proto.SerializeToString())


def first_line(error: BaseException) -> str:
    """Return what an error of ONNX Runtime says, on one line and without its source files."""
    text = _CODE.sub("", " ".join(str(error).split()))
    for mark in ("Status Message: ", "Message: "):
        _, found, rest = text.partition(mark)
        text = rest if found else text
    return text[:400]


def ort_value(ort: Any, array: Contents) -> Any:
    """Return contents as an ``OrtValue``; types that numpy has no name for come as :mod:`ml_dtypes`."""
    if isinstance(array, Packed):
        return _value_of_packed(ort, array)
    if array.dtype.kind in "OSU":
        return _value_of_texts(array)
    if packed_bits(array.dtype) is not None:
        return _value_of_packed(ort, Packed.of(array))
    array = np.asarray(array, order="C")  # ascontiguousarray gives a number without axes one
    if is_numpys(array.dtype):
        return ort.OrtValue.ortvalue_from_numpy(array)
    from onnx import helper

    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
        array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16), helper.np_dtype_to_tensor_dtype(array.dtype)
    )


def _value_of_packed(ort: Any, packed: Packed) -> Any:
    """Return a value with a copy of the bytes: of arrays, ONNX Runtime takes a byte for each element only."""
    from onnx import helper

    value = ort.OrtValue.ortvalue_from_shape_and_type(
        list(packed.shape), int(helper.np_dtype_to_tensor_dtype(packed.dtype))
    )
    ctypes.memmove(value.data_ptr(), packed.data.tobytes(), packed.nbytes)
    return value


def tensor_contents(value: Any) -> Contents:
    """Return the contents of an ``OrtValue`` that is a tensor, on its memory where numpy has its type, else copied.

    Notes
    -----
    ONNX Runtime itself hands out some types of few bits as if they were bytes, and four bits as if they were eight.
    """
    from onnx import TensorProto, helper

    number = value.element_type()
    if number == TensorProto.STRING:
        return np.asarray(value.numpy())
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(number))
    if is_numpys(dtype):
        return np.asarray(value.numpy())
    shape, size = tuple(value.shape()), value.tensor_size_in_bytes()
    data = np.frombuffer(ctypes.string_at(value.data_ptr(), size) if size else b"", np.uint8)
    if packed_bits(dtype) is not None:
        return Packed(dtype, shape, data)
    array: Array = data.view(dtype).reshape(shape)
    return array


def _value_of_texts(array: Array) -> Any:
    """Return texts as what a model of a constant gives: of arrays, ONNX Runtime makes values of numbers only."""
    from onnx import TensorProto, helper

    texts = [one if isinstance(one, bytes) else str(one).encode() for one in array.reshape(-1).tolist()]
    tensor = TensorProto(name="texts", data_type=TensorProto.STRING, dims=array.shape, string_data=texts)
    result = helper.make_tensor_value_info("value", TensorProto.STRING, array.shape)
    graph = helper.make_graph([helper.make_node("Constant", [], ["value"], value=tensor)], "texts", [], [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return open_session(model.SerializeToString(), display="‹inputs›").run_with_ort_values(["value"], {})[0]
