"""Random PyTorch programs of the constructs that are hard to cut; importing it needs PyTorch.

Sizes that a run tells, branches, maps over a batch, buffers, aliases, arguments that are no tensors, and results that
are listed twice, are inputs, or are None.
"""

# mypy: disable-error-code="import-not-found, misc, no-any-return"

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor, nn

WIDTH, ROWS = 6, 5
KINDS = (
    "linear", "skip", "norm", "masked", "nonzero", "count", "unique", "cond", "closed_over", "vmap", "batch_norm",
    "counter", "alias", "in_place", "top", "chunk", "constant", "cast", "pair", "attention", "size", "item",
)  # fmt: skip


class VariedModule(nn.Module):
    """Blocks on live tensors (rows, 6); some have rows that only a run tells.

    Parameters
    ----------
    blocks
        Their number.
    """

    def __init__(self, seed: int, blocks: int = 6) -> None:
        super().__init__()
        rng = Random(seed)
        torch.manual_seed(seed)
        self.plan: list[tuple[str, int, int]] = []
        self.layers = nn.ModuleDict()
        for i in range(blocks):
            kind = rng.choice(KINDS)
            if kind in ("linear", "masked", "attention", "cond"):
                self.layers[str(i)] = nn.Linear(WIDTH, WIDTH)
            elif kind == "norm":
                self.layers[str(i)] = nn.LayerNorm(WIDTH)
            elif kind == "batch_norm":
                self.layers[str(i)] = nn.BatchNorm1d(WIDTH)
            elif kind == "counter":
                self.register_buffer(f"count_{i}", torch.zeros(WIDTH))
            self.plan.append((kind, rng.randrange(max(0, i - 2), i + 1), rng.randrange(i + 1)))
        self.results = [blocks, *(rng.randrange(1, blocks + 1) for _ in range(rng.randint(0, 2)))]
        self.twice, self.input_too, self.none = (rng.random() < 0.2 for _ in range(3))

    def forward(self, x: Tensor, scale: int, *, mode: str = "tanh", extra: dict[str, Tensor] | None = None) -> Any:
        """Return some of the live tensors."""
        live = [x * scale if mode == "tanh" else x]
        if extra is not None:
            live[0] = live[0] + extra["bias"]
        for i, (kind, a, b) in enumerate(self.plan):
            layer = self.layers[str(i)] if str(i) in self.layers else None  # noqa: SIM401, ModuleDict has no get
            live.append(self._block(kind, i, layer, live[a], live[b]))
        results: list[Any] = [live[one] for one in self.results]
        if self.twice:
            results.append(results[0])
        if self.input_too:
            results.append(x)
        if self.none:
            results.append(None)
        return tuple(results)

    def _block(self, kind: str, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        made = getattr(self, f"_{kind}")(i, layer, a, b)
        return torch.tanh(made)

    def _linear(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return layer(a) + b.mean(0)

    def _norm(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return layer(a)

    def _skip(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return a - 0.5 * b.sum(0, keepdim=True)

    def _masked(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return layer(a[a.sum(1) > 0])

    def _nonzero(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return a[torch.nonzero(a[:, 0] > 0).flatten()]

    def _count(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return a * (b[b[:, 1] > 0].shape[0] + 1)

    def _unique(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return a + torch.unique(torch.round(b * 2)).sum()

    def _cond(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return torch.cond(b.sum() > 0, lambda one: one.sin() + 1, lambda one: one.cos(), (layer(a),))

    def _closed_over(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return torch.cond(a.sum() > 0, lambda one: one + b.mean(), lambda one: one - b.sum(), (a,))

    def _vmap(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return torch.vmap(lambda row: row * row.sum())(a) + b.mean()

    def _batch_norm(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return layer(torch.cat([a, a + 1, b]))[: a.shape[0]]

    def _counter(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        count = getattr(self, f"count_{i}")
        made = a + count
        count.add_(b.mean(0))
        return made

    def _alias(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return a.view(-1).unsqueeze(0).squeeze(0).view(-1, WIDTH)

    def _in_place(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        made = a.clone()
        made[:, 0] += 1
        part = made[:, 1:3]
        part.mul_(2)
        return made.relu_() + part.sum()

    def _top(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        values, places = torch.topk(a, 3, dim=1)
        return torch.cat([values, places.to(a.dtype)], 1)

    def _chunk(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        first, second = a.chunk(2, 1)
        return torch.cat([second, first], 1)

    def _constant(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return a * torch.arange(WIDTH).float().cos() + torch.ones(3, WIDTH).sum(0)

    def _cast(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return (a.double() * 3).float() + b.to(torch.bfloat16).float().mean(0)

    def _pair(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        values, _ = torch.sort(a, dim=1)
        return values + a.max(1, keepdim=True).values

    def _attention(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(layer(a)[None], b[None], b[None])[0]

    def _size(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        return a * b.shape[0] + torch.zeros(a.shape[0], 1)

    def _item(self, i: int, layer: Any, a: Tensor, b: Tensor) -> Tensor:
        number = (b.abs().sum() * 3).long().clamp(1, 4).item()
        torch._check(number >= 1)
        torch._check(number <= 4)
        return a.repeat(1, 1) + torch.ones(number, WIDTH).sum(0)


def varied_program(seed: int) -> tuple[Any, list[dict[str, Any]]] | None:
    """Return a program and five inputs by name of its placeholders; None where PyTorch cannot export it."""
    rng = Random(seed)
    module = VariedModule(seed).train(rng.random() < 0.3)
    kwargs: dict[str, Any] = {"mode": rng.choice(["tanh", "other"])}
    if rng.random() < 0.5:
        kwargs["extra"] = {"bias": torch.randn(WIDTH)}
    rows = torch.export.Dim("rows", min=2, max=64) if rng.random() < 0.3 else None
    dynamic = None
    if rows is not None:
        dynamic = {"x": {0: rows}, "scale": None, "mode": None}
        if "extra" in kwargs:
            dynamic["extra"] = {"bias": None}
    args = (torch.randn(ROWS, WIDTH), rng.randint(1, 3))
    try:
        program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic)
    except Exception:  # guards on sizes that data tells, and the like
        return None
    if seed % 4 == 3:
        program = program.run_decompositions()
    inputs = []
    for draw in range(5):
        torch.manual_seed(1000 * seed + draw)
        given = {"x": torch.randn(ROWS, WIDTH)}
        if "extra" in kwargs:
            given["extra_bias"] = torch.randn(WIDTH)
        inputs.append(
            {
                "args": (given["x"], args[1]),
                "kwargs": kwargs | ({"extra": {"bias": given["extra_bias"]}} if "extra" in kwargs else {}),
                "feeds": given,
            }
        )
    return program, inputs
