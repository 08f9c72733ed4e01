"""Tolerances for outputs of whole and split that are not equal bit for bit.

The same kernels run on either side, so what differs is rounding: ONNX Runtime computes some ops on narrow floats in
single precision and rounds between two of them only where a cut forces it to. A difference is thus as large as the
narrowest float allows that the output has itself or that goes from one stage to another before it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.formats.results.stage_manifest import StageManifest

TOLERANCES = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Largest |difference| over the largest |value| of an output that still passes; 0.1 for smaller floats."""

_SMALL_FLOAT = 0.1


def tolerance(dtype: str, between: Collection[str]) -> float:
    """Return the largest |difference| over the largest |value| of an output that still passes.

    Parameters
    ----------
    dtype
        Of the output. Whole numbers, truth values and strings have to be equal.
    between
        Element types of the tensors between stages (:func:`types_between`).
    """
    if not _is_float(dtype):
        return 0.0
    return max(TOLERANCES.get(name, _SMALL_FLOAT) for name in (dtype, *between) if _is_float(name))


def types_between(manifest: StageManifest) -> frozenset[str]:
    """Return the element types of the tensors between stages."""
    from mtpp.formats.results.stage_manifest import MODEL_INPUT

    read = (tensor for stage in manifest.stages for tensor in stage.inputs if tensor.source != MODEL_INPUT)
    return frozenset(tensor.dtype.removeprefix("sequence(").removesuffix(")") for tensor in read)


def _is_float(dtype: str) -> bool:
    return "float" in dtype
