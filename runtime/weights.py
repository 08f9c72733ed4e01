"""Weights of a model whose files are absent, made up so that it can be run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.runtime.random_values import Array, random_weight

if TYPE_CHECKING:
    import onnx


def absent_weights(model: onnx.ModelProto, folder: Path, source: str, seed: int = 0) -> dict[str, Array]:
    """Return random contents for every initializer whose external data file does not exist, by name.

    The same name gives the same contents in any model, so the parts of a split model get what the whole one has.

    Raises
    ------
    InputError
        If a place is refused (:func:`mtpp.formats.onnx.external_data.external_place`), or contents are absent that
        cannot be given to a session: those of an attribute, of a sparse tensor or of the body of control flow.
    """
    from mtpp.formats.onnx.external_data import all_tensors, external_place

    initializers = len(model.graph.initializer)
    found: dict[str, Array] = {}
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
        found[tensor.name] = random_weight(tensor.name, tensor.data_type, tuple(tensor.dims), seed)
    return found
