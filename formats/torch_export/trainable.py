"""Parameters of an exported program that are trained: those that require gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def trainable_parameters(
    targets: Mapping[str, str], weights: Mapping[str, Any], values: Mapping[str, Any]
) -> frozenset[str] | None:
    """Return the tensors of the parameters that require gradients; None where the file does not say it of any.

    Parameters
    ----------
    targets
        Names of parameters in the model, by those of their tensors.
    weights
        What the archive says of stored weights, by their names in the model; it goes before *values*.
    values
        What the program says of tensors.
    """
    said = {tensor: _requires_grad(weights.get(target), values.get(tensor)) for tensor, target in targets.items()}
    if said and set(said.values()) == {None}:
        return None
    return frozenset(tensor for tensor, required in said.items() if required)


def _requires_grad(entry: Any, value: Any) -> bool | None:
    stored = entry.get("tensor_meta") if isinstance(entry, dict) else None
    for meta in (stored, value):
        if isinstance(meta, dict) and isinstance(meta.get("requires_grad"), bool):
            return bool(meta["requires_grad"])
    return None
