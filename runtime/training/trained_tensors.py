"""Gradients and buffers of a trained module: steps of descent, digests to compare, contents on request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.tensors import as_array
from mtpp.runtime.training.results import BUFFER, GRADIENT, Key

if TYPE_CHECKING:
    import torch


def descend(parameters: Iterable[torch.nn.Parameter], rate: float) -> None:
    """Take *rate* times the gradient from each parameter, once from those that come several times.

    A gradient of a norm above 1 is scaled down to 1, so that no loss leaves the finite numbers in a few steps.
    """
    with pytorch().no_grad():
        for one in {id(one): one for one in parameters}.values():
            if one.grad is not None:
                norm = float(one.grad.norm())
                one -= rate / max(1.0, norm) * one.grad


def forget_gradients(module: Any) -> None:
    """Have the parameters of a module start without gradients."""
    for one in module.parameters():
        one.grad = None


def tensors_of(module: Any) -> Iterator[tuple[Key, torch.Tensor | None]]:
    """Yield gradients and buffers by kind and name; a tied parameter under each of its names."""
    for name, one in module.named_parameters(remove_duplicate=False):
        if one.requires_grad:
            yield (GRADIENT, name), one.grad
    for name, one in module.named_buffers(remove_duplicate=False):
        yield (BUFFER, name), one


def names_of(module: Any) -> Iterator[list[Key]]:
    """Yield all keys of each tensor of :func:`tensors_of`: a tied parameter has several."""
    found: dict[tuple[str, int], list[Key]] = {}
    for name, one in module.named_parameters(remove_duplicate=False):
        if one.requires_grad:
            found.setdefault((GRADIENT, id(one)), []).append((GRADIENT, name))
    for name, one in module.named_buffers(remove_duplicate=False):
        found.setdefault((BUFFER, id(one)), []).append((BUFFER, name))
    yield from found.values()


def answer(parent: Connection, tensors: Mapping[Key, Any]) -> None:
    """Send ``arrays``, the contents of the tensors asked for as far as they are here, until None is."""
    while (asked := parent.recv()) is not None:
        found = {key: tensors[key] for key in asked if key in tensors}
        parent.send(("arrays", {key: None if one is None else as_array(one) for key, one in found.items()}))


NONE = "none"
"""Of a parameter without gradient."""


def digests(tensors: Iterable[tuple[Key, torch.Tensor | None]]) -> dict[Key, str]:
    """Return the SHA-256 of the contents of each tensor by its kind and name."""
    return {name: NONE if one is None else _digest(one) for name, one in tensors}


def _digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(as_array(tensor.contiguous()).tobytes()).hexdigest()
