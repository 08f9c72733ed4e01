"""Digests of gradients and buffers, so that processes compare them without sending them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mtpp.runtime.pytorch.tensors import as_array
from mtpp.runtime.training.results import Key

if TYPE_CHECKING:
    import torch

NONE = "none"
"""Of a parameter without gradient."""


def digests(tensors: Iterable[tuple[Key, torch.Tensor | None]]) -> dict[Key, str]:
    """Return the SHA-256 of the contents of each tensor by its kind and name."""
    return {name: NONE if one is None else _digest(one) for name, one in tensors}


def _digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(as_array(tensor.contiguous()).tobytes()).hexdigest()
