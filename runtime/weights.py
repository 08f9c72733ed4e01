"""Weights of a model whose files are absent, made up so that it can be run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.runtime.random_values import random_weight
from mtpp.units import format_bytes

if TYPE_CHECKING:
    import onnx


_COPIES = 2
"""Made up, and packed by ONNX Runtime for its own use."""


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
