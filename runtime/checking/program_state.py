"""State of a program: parameters and buffers that a run changes, whichever operators write them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.runtime.pytorch.tensors import as_array
from mtpp.runtime.random_values import Array

if TYPE_CHECKING:
    import torch


class ProgramState:
    """Contents of a module's parameters and buffers at one time.

    They are compared, since operators write some without saying so: a batch normalisation that trains, its statistics.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._before = dict(self._checksums())

    def changed(self) -> list[str]:
        """Return the names of tensors with other contents by now; O(bytes)."""
        return [name for name, found in self._checksums() if found != self._before[name]]

    def _checksums(self) -> Iterator[tuple[str, int]]:
        for name, tensor in _tensors(self._module):
            yield name, zlib.crc32(as_array(tensor.contiguous()).reshape(-1).view(np.uint8).data)


def copies(module: Any, names: list[str]) -> dict[str, Array]:
    """Return the contents of the tensors among *names* that a module holds."""
    held = dict(_tensors(module))
    return {name: as_array(held[name]).copy() for name in names if name in held}


def _tensors(module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield parameters and buffers, a shared one under each of its names."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)
