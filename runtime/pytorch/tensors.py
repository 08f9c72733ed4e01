"""Tensors of PyTorch as arrays, and values for inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtpp.runtime.element_types import HALF_COMPLEX, element_type, is_numpys
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.random_values import Leaning, drawn_input

if TYPE_CHECKING:
    import torch


_BITS = {1: "uint8", 2: "uint16", 4: "uint32"}
"""Whole numbers of as many bytes, in numpy and PyTorch."""


def as_array(tensor: Any) -> NDArray[Any]:
    """Return a tensor as an array; types that numpy has no name for come as :mod:`ml_dtypes`, halves as ``V4``.

    A number, a text or None comes as an array of no axes.
    """
    library = pytorch()
    if not isinstance(tensor, library.Tensor):
        return np.asarray(tensor)
    plain = tensor.detach().cpu()
    try:
        found: NDArray[Any] = plain.numpy()
    except TypeError:
        raw = plain.contiguous()
        if raw.ndim == 0:
            return as_array(raw.reshape(1)).reshape(())
        bits: NDArray[Any] = raw.view(getattr(library, _BITS[raw.element_size()])).numpy()
        own = element_type(str(tensor.dtype).removeprefix("torch."))
        return bits if own is None or own.itemsize != bits.dtype.itemsize else bits.view(own)
    return found


def as_tensor(array: NDArray[Any]) -> Any:
    """Return an array as a tensor on the same memory: the opposite of :func:`as_array`."""
    library = pytorch()
    if is_numpys(array.dtype):
        return library.from_numpy(array)
    name = HALF_COMPLEX if array.dtype == element_type(HALF_COMPLEX) else array.dtype.name
    bits = array.view(_BITS[array.dtype.itemsize])
    return library.from_numpy(bits).view(getattr(library, name))


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
