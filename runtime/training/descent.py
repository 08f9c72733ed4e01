"""Steps of gradient descent on parameters, and what modules hold by its name in the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mtpp.runtime.pytorch.library import pytorch
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
