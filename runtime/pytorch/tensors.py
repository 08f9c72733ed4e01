"""Tensors of PyTorch as arrays, and values for inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.random_values import Leaning, drawn_input

if TYPE_CHECKING:
    import torch


def as_array(tensor: Any) -> NDArray[Any]:
    """Return a tensor as an array; types that numpy has no name for come as :mod:`ml_dtypes`, others as their bytes.

    A number, a text or None comes as an array of no axes.
    """
    library = pytorch()
    if not isinstance(tensor, library.Tensor):
        return np.asarray(tensor)
    plain = tensor.detach().cpu()
    try:
        found: NDArray[Any] = plain.numpy()
    except TypeError:
        import ml_dtypes

        raw = plain.contiguous()
        if raw.ndim == 0:
            return as_array(raw.reshape(1)).reshape(())
        bits: NDArray[Any] = raw.view(library.uint8 if raw.element_size() == 1 else library.uint16).numpy()
        own = getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch."), None)
        return bits if own is None or np.dtype(own).itemsize != bits.dtype.itemsize else bits.view(own)
    return found


def drawn_tensor(
    name: str,
    dtype: str,
    shape: Sequence[int],
    seed: int,
    limits: tuple[int, int] | None = None,
    leaning: Leaning = Leaning.NONE,
) -> torch.Tensor:
    """Return random values for an input, as :func:`mtpp.runtime.random_values.drawn_input` draws them."""
    library = pytorch()
    kind = getattr(library, dtype)
    whole = not (kind.is_floating_point or kind.is_complex)
    drawn = np.asarray(drawn_input(name, shape, seed, whole=whole, limits=limits, leaning=leaning))
    tensor: torch.Tensor = library.from_numpy(drawn).to(kind)
    return tensor
