"""Random PyTorch modules of many blocks, and their cuts at random; importing it needs PyTorch."""

# mypy: disable-error-code="import-not-found, misc, no-any-return"

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, TOKENS = 8, 4


class RandomModule(nn.Module):
    """Blocks on a handful of live tensors (batch, 4, 8), some of which skip far ahead.

    Parameters
    ----------
    trained
        Whether it can be trained: then nothing that autograd needs is written in place.
    """

    def __init__(self, seed: int, *, trained: bool) -> None:
        super().__init__()
        rng = Random(seed)
        torch.manual_seed(seed)
        self.plan: list[tuple[str, list[int]]] = []
        self.layers = nn.ModuleDict()
        kinds = ["linear", "attention", "convolution", "skip", "view", "cast", "norm", "constant", "tied", "quiet"]
        kinds += ["buffer", "in_place", "split"]
        live = 1
        for i in range(rng.randint(4, 12)):
            kind = rng.choice(kinds)
            reads = [rng.randrange(max(0, live - 4), live) for _ in range(2)]
            if kind in ("linear", "attention", "norm", "split"):
                self.layers[str(i)] = nn.LayerNorm(WIDTH) if kind == "norm" else nn.Linear(WIDTH, WIDTH)
            if kind == "convolution":
                self.layers[str(i)] = nn.Conv2d(1, 2, 3, padding=1)
            if kind == "buffer":
                self.register_buffer(f"count_{i}", torch.zeros(WIDTH))
            self.plan.append((kind, reads))
            live += 1
        self.shared = nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH)
        self.trained = trained
        self.results = sorted({live - 1, *(rng.randrange(live) for _ in range(rng.randint(0, 2)))} - {0}) or [live - 1]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return some of the live tensors."""
        live = [x]
        for i, (kind, (a, b)) in enumerate(self.plan):
            layer = self.layers[str(i)] if str(i) in self.layers else None  # noqa: SIM401, ModuleDict has no get
            live.append(self._block(kind, i, layer, live[a], live[b]))
        return tuple(live[one] for one in self.results)

    def _block(self, kind: str, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        if kind in ("linear", "norm"):
            return torch.tanh(layer(a))
        if kind == "attention":
            return functional.scaled_dot_product_attention(layer(a), b, a)
        if kind == "convolution":
            image = a.reshape(-1, 1, TOKENS, WIDTH).to(memory_format=torch.channels_last)
            return functional.gelu(layer(image)).mean(1) + b
        if kind == "skip":
            return a + 0.5 * b
        if kind == "view":
            return a.transpose(1, 2).reshape(a.shape[0], TOKENS, WIDTH)[:, :, :].flip(1)
        if kind == "cast":
            return (a.double() @ torch.eye(WIDTH, dtype=torch.float64)).float() + b
        if kind == "constant":
            return a * torch.arange(TOKENS * WIDTH).view(TOKENS, WIDTH).float().cos() + self.shared.sum(0)
        if kind == "tied":
            return a @ self.shared + b
        if kind == "quiet":
            with torch.no_grad():
                scale = b.abs().mean()
            return a / (1 + scale)
        if kind == "split":
            first, second = layer(a).chunk(2, -1)
            return torch.cat([second, torch.sigmoid(first)], -1)
        if kind == "buffer":
            count = getattr(self, f"count_{i}")
            made = a + count
            count.add_(a.detach().mean((0, 1)))
            return made
        made = a * 2
        made[:, 0] += 1
        return torch.relu_(made + b)


def exported(seed: int, *, trained: bool) -> torch.export.ExportedProgram:
    """Return a random module as a program, now and then decomposed."""
    module = RandomModule(seed, trained=trained)
    program = torch.export.export(module, (torch.randn(2, TOKENS, WIDTH),))
    return program.run_decompositions() if seed % 5 == 4 and not trained else program
