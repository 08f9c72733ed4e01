"""Small modules that do what makes profiles of exported programs hard; importing it needs PyTorch."""

# mypy: disable-error-code="import-not-found, misc, no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Perceptron(nn.Module):
    """Two layers with an activation between them."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Return four numbers for each row."""
        return self.down(functional.gelu(self.up(x)))


class InPlace(nn.Module):
    """Activations, views and buffers written in place, and convolutions with batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.calls: Tensor
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return a tensor, and how often it was called."""
        self.calls.add_(1)
        y = self.norm(self.conv(x))
        y[:, :2].mul_(2)
        y.flatten().add_(1)
        return functional.relu_(y), self.calls.clone()


class WrittenInput(nn.Module):
    """Its input written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor like *x*."""
        x.add_(1)
        return self.layer(x).relu_()


class Modes(nn.Module):
    """Parts without gradients, of lower precision, and of one branch or another; results by name."""

    def __init__(self) -> None:
        super().__init__()
        self.still, self.low, self.branch = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor, times: int) -> dict[str, Tensor]:
        """Return two tensors like *x*."""
        with torch.no_grad():
            still = self.still(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = self.low(x)
        taken = torch.cond((x * x).sum() >= 0, lambda x: self.branch(x) + 1, lambda x: x * 2, (x,))
        return {"sum": still + times * half + taken, "still": still}


class Untrainable(nn.Module):
    """What the backward pass needs is overwritten."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor like *x*."""
        y = self.layer(x).sigmoid()
        y.add_(1)
        return y


MODULES: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "perceptron": (Perceptron, lambda: (torch.randn(5, 8),)),
    "in place": (InPlace, lambda: (torch.randn(2, 3, 8, 8),)),
    "written input": (WrittenInput, lambda: (torch.randn(5, 8),)),
    "modes": (Modes, lambda: (torch.randn(5, 8), 3)),
}
"""Makers of modules and of their inputs, by name."""
