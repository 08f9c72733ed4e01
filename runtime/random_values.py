"""Values for inputs and absent weights: random, the same for the same name and seed; results stay finite."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.runtime.element_types import is_whole
from mtpp.units import format_bytes

if TYPE_CHECKING:
    import onnx

_COPIES = 2
"""Made up, and packed by ONNX Runtime for its own use."""


class NoValues(InputError):
    """An input or a weight of a type for which no values can be made up: strings, sequences (exit code 2)."""


class Leaning(Enum):
    """Side that random values lean to: sizes and ways through a model that depend on data then differ."""

    NONE = "none"
    HIGH = "high"
    LOW = "low"


_SHIFTS = {Leaning.NONE: 0, Leaning.HIGH: 1, Leaning.LOW: -1}


def _generator(name: str, seed: int) -> np.random.Generator:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.PCG64([seed, int.from_bytes(digest[:8], "little")]))


def _numpy_dtype(onnx_dtype: int, name: str) -> np.dtype[Any]:
    from onnx import TensorProto, helper

    if onnx_dtype != TensorProto.STRING:
        try:
            return np.dtype(helper.tensor_dtype_to_np_dtype(onnx_dtype))
        except KeyError:
            pass
    raise NoValues(
        f"no values can be made up for tensor {name!r} of element type {onnx_dtype}", remedy="run it on data of its own"
    )


def random_input(
    name: str,
    onnx_dtype: int,
    shape: Sequence[int],
    seed: int = 0,
    limits: tuple[int, int] | None = None,
    leaning: Leaning = Leaning.NONE,
) -> Array:
    """Return values for an input of a model, as :func:`drawn_input` draws them, in its type; NoValues for texts."""
    dtype = _numpy_dtype(onnx_dtype, name)
    return drawn_input(name, shape, seed, whole=is_whole(dtype.name), limits=limits, leaning=leaning).astype(dtype)


def random_weight(name: str, onnx_dtype: int, shape: Sequence[int], seed: int = 0) -> Array:
    """Return values for a weight, as :func:`drawn_weight` draws them, in its type; NoValues for texts."""
    dtype = _numpy_dtype(onnx_dtype, name)
    return drawn_weight(name, shape, seed, whole=is_whole(dtype.name)).astype(dtype)


def drawn_input(
    name: str,
    shape: Sequence[int],
    seed: int,
    *,
    whole: bool,
    limits: tuple[int, int] | None = None,
    leaning: Leaning = Leaning.NONE,
) -> Array:
    """Return values for an input of a model: normal ones, float32, about 1 or −1 where they lean to a side.

    Whole numbers, int64, are from the first to the last of *limits*, or one of the two where they lean to it. Where
    nothing is known of them, and for truth values, 0 or 1: valid as indices, token types, masks.
    """
    random = _generator(name, seed)
    least, most = limits or (0, 1)
    if whole:
        return random.integers(
            most if leaning is Leaning.HIGH else least, (least if leaning is Leaning.LOW else most) + 1, shape
        )
    return random.standard_normal(shape, dtype=np.float32) + np.float32(_SHIFTS[leaning])


def drawn_weight(name: str, shape: Sequence[int], seed: int, *, whole: bool) -> Array:
    """Return values for a weight: float32, or 0 or 1 as int64.

    Matrices and kernels are normal with variance 1 / fan-in (He et al. 2015, without the factor 2: layers keep the size
    of what goes through them); vectors, which may be scales or variances, lie between 0.5 and 1.5.
    """
    random = _generator(name, seed)
    if whole:
        return random.integers(0, 2, shape)
    if len(shape) < 2:
        return random.random(shape, dtype=np.float32) + np.float32(0.5)
    # Kernels are (out, in, …); matrices may stand either way, and the larger side is safe.
    fan_in = math.prod(shape[1:]) if len(shape) > 2 else max(shape)
    values = random.standard_normal(shape, dtype=np.float32)
    values *= np.float32(1 / math.sqrt(max(1, fan_in)))
    return values


def absent_weights(
    model: onnx.ModelProto, folder: Path, source: str, seed: int = 0, *, limit: int | None = None
) -> dict[str, Array]:
    """Return random contents for every initializer whose external data file does not exist, by name.

    The same name gives the same contents in any model, so the parts of a split model get what the whole one has.

    Parameters
    ----------
    limit
        Bytes that a session with them may take; None where that has been seen to.

    Notes
    -----
    Contents cannot be given to a session where they are of an attribute, a sparse tensor or the body of control flow.
    """
    from mtpp.formats.onnx.external_data import all_tensors, external_place
    from mtpp.formats.onnx.tensor_type import TensorType, is_known_dtype

    initializers = len(model.graph.initializer)
    absent: list[onnx.TensorProto] = []
    for position, tensor in enumerate(all_tensors(model.graph)):  # initializers come first
        place = external_place(tensor, folder, source)
        if place is None or place.is_there:
            continue
        if position >= initializers:
            raise InputError(
                f"{place.location!r}, where its contents should be, does not exist",
                source=source,
                where=f"tensor {tensor.name!r}",
                remedy="put the file beside the model",
            )
        absent.append(tensor)
    size = sum(TensorType(t.data_type, tuple(t.dims)).bytes for t in absent if is_known_dtype(t.data_type))
    refuse_too_many(_COPIES * size, limit, source)
    return {t.name: random_weight(t.name, t.data_type, tuple(t.dims), seed) for t in absent}


def refuse_too_many(size: int, free: int | None, source: str) -> None:
    """Raise InputError if made-up weights take more bytes than are free; None: nobody knows how many are."""
    if free is not None and size > free:
        raise InputError(
            f"running it with random weights in place of absent ones takes {format_bytes(size)}, and "
            f"{format_bytes(free)} are free",
            source=source,
            remedy="do it on a larger machine",
        )
