"""Modules of many kinds with example inputs, for comparisons with PyTorch's own counts; importing it needs PyTorch."""

# mypy: disable-error-code="import-not-found, misc, no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """Pre-norm transformer block, causal or with a mask."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return a tensor like *x*, (batch, sequence, width)."""
        batch, sequence, width = x.shape
        y = self.norm1(x)
        split = (batch, sequence, self.heads, width // self.heads)
        query, key, value = (one(y).view(split).transpose(1, 2) for one in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Two blocks between an embedding and an output layer, which may share their weight."""

    def __init__(self, *, tied: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, 64)
        self.positions = nn.Parameter(torch.randn(1, 32, 64))
        self.blocks = nn.ModuleList(Block(64, 4) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 1000, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits."""
        x = self.tokens(ids) + self.positions[:, : ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class UNet(nn.Module):
    """Convolutions down and up again, with skips."""

    def __init__(self) -> None:
        super().__init__()
        widths = [(8, 16), (16, 32)]
        self.first, self.middle, self.last = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.Conv2d(8, 1, 1),
        )
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in widths)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(widths))
        self.join = nn.ModuleList(nn.Conv2d(2 * a, a, 3, padding=1) for a, _ in reversed(widths))

    def forward(self, x: Tensor) -> Tensor:
        """Return one channel of twice the size."""
        x = functional.relu(self.first(x))
        kept = []
        for layer in self.down:
            kept.append(x)
            x = functional.silu(layer(x))
        x = self.middle(x)
        for up, join in zip(self.up, self.join, strict=True):
            x = functional.relu(join(torch.cat([up(x), kept.pop()], 1)))
        return self.last(functional.interpolate(x, scale_factor=2, mode="bilinear"))


class Towers(nn.Module):
    """An image and a text encoder whose results are compared."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.image = Transformer(tied=False), nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.Flatten(2))
        self.block, self.left, self.right = Block(16, 2), nn.Linear(16, 8), nn.Linear(1000, 8)

    def forward(self, ids: Tensor, image: Tensor) -> Tensor:
        """Return similarities of all pairs."""
        left = self.left(self.block(self.image(image).transpose(1, 2)).mean(1))
        right = self.right(self.text(ids).mean(1))
        return functional.normalize(left, dim=-1) @ functional.normalize(right, dim=-1).T


class Residual(nn.Module):
    """Convolutions with batch normalisation, activations and additions in place."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(3 if i == 0 else 8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
            for i in range(4)
        )
        self.head = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        y = self.blocks[0](x)
        for block in self.blocks[1:]:
            z = block(y)
            z += y
            y = z
        return self.head(functional.adaptive_avg_pool2d(functional.max_pool2d(y, 2), 1).flatten(1))


class Experts(nn.Module):
    """A mixture of four experts, all computed, two used."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(32, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 32, 64)), nn.Parameter(torch.randn(4, 64, 32))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor like *x*."""
        shares = functional.softmax(self.gate(x), -1)
        values, chosen = shares.topk(2, -1)
        mask = torch.zeros_like(shares).scatter(-1, chosen, values)
        hidden = functional.gelu(torch.einsum("btd,edf->btef", x, self.up))
        return (torch.einsum("btef,efd->bted", hidden, self.down) * mask[..., None]).sum(2)


class Depthwise(nn.Module):
    """Grouped, one- and three-dimensional and transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.point = nn.Conv2d(16, 16, 5, padding=2, groups=16), nn.Conv2d(16, 32, 1)
        self.line, self.back = nn.Conv1d(32, 32, 3, groups=4), nn.ConvTranspose1d(32, 16, 4, stride=2, groups=2)
        self.cube = nn.Conv3d(1, 4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors."""
        y = functional.hardswish(self.point(self.depth(x)))
        return self.back(self.line(y.flatten(2))), self.cube(x[:, None])


class Norms(nn.Module):
    """Group, instance and root-mean-square normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.group = nn.Conv2d(3, 32, 3), nn.GroupNorm(8, 32)
        self.instance, self.root = nn.InstanceNorm2d(32, affine=True), nn.RMSNorm(30)

    def forward(self, x: Tensor) -> Tensor:
        """Return shares along the last axis."""
        return functional.softmax(self.root(self.instance(functional.silu(self.group(self.conv(x))))), -1)


class Masked(nn.Module):
    """Attention with a mask, and PyTorch's own module for it."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.attention = Block(32, 4), nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return a tensor like *x*."""
        y = self.block(x, mask[:, None])
        return self.attention(y, y, y, need_weights=False)[0]


class Bags(nn.Module):
    """Two bags of embeddings, averaged and summed."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.sum = nn.EmbeddingBag(100, 16, mode="mean"), nn.EmbeddingBag(50, 16, mode="sum")
        self.head = nn.Linear(32, 4)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Return four numbers for each row."""
        return self.head(torch.cat([self.mean(left), self.sum(right)], 1))


class Recurrent(nn.Module):
    """Two layers of LSTM in both directions, a GRU, and an LSTM whose state is projected."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.LSTM(12, 20, 2, batch_first=True, bidirectional=True)
        self.gated = nn.GRU(40, 16, batch_first=True)
        self.projected = nn.LSTM(16, 24, proj_size=8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, sequence, 8)."""
        return self.projected(self.gated(self.both(x)[0])[0])[0]


class Quantised(nn.Module):
    """Two linear layers with weights of one byte, as quantisation of exported programs (PT2E) writes them."""

    def __init__(self) -> None:
        super().__init__()
        import torch.ao.quantization.fx._decomposed  # registers the operators

        for i, (rows, columns) in enumerate(((40, 24), (8, 40))):
            self.register_buffer(f"weight{i}", torch.randint(-128, 128, (rows, columns), dtype=torch.int8))
            self.register_buffer(f"scale{i}", torch.rand(rows) + 0.01)
            self.register_buffer(f"zero{i}", torch.zeros(rows, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, 8)."""
        ops = torch.ops.quantized_decomposed
        for i, scale in enumerate((0.02, 0.5)):
            weight, scales, zeros = (getattr(self, f"{name}{i}") for name in ("weight", "scale", "zero"))
            small = ops.quantize_per_tensor(x, scale, 100, 0, 255, torch.uint8)
            x = ops.dequantize_per_tensor(small, scale, 100, 0, 255, torch.uint8)
            x = functional.linear(x, ops.dequantize_per_channel(weight, scales, zeros, 0, -128, 127, torch.int8))
        return x


class RootNorm(nn.Module):
    """Root-mean-square normalisation, written out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor like *x*."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class DecoderLayer(nn.Module):
    """Attention with rotated queries and keys, and a gated layer."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RootNorm(width), RootNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        """Return a tensor like *x*, (batch, sequence, width)."""
        batch, sequence, width = x.shape
        y = self.norm1(x)
        split = (batch, sequence, self.heads, width // self.heads)
        query, key, value = (one(y).view(split).transpose(1, 2) for one in (self.query, self.key, self.value))
        turned = []
        for one in (query, key):
            left, right = one.chunk(2, -1)
            turned.append(one * cosines + torch.cat([-right, left], -1) * sines)
        mixed = functional.scaled_dot_product_attention(*turned, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, sequence, width))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """A large language model of many equal layers."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int, tokens: int) -> None:
        super().__init__()
        self.of_head = width // heads
        self.tokens = nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, hidden) for _ in range(layers))
        self.norm, self.head = RootNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits."""
        x = self.tokens(ids)
        steps = 10000.0 ** (-torch.arange(0, self.of_head, 2).float() / self.of_head)
        angles = (torch.arange(ids.shape[1]).float()[:, None] * steps).repeat(1, 2)
        cosines, sines = angles.cos(), angles.sin()
        for layer in self.layers:
            x = layer(x, cosines, sines)
        return self.head(self.norm(x))


class Products(nn.Module):
    """Products whose operands differ: one query for several keys, a chain that is cheaper from the right, bit masks."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Parameter(torch.randn(60, 90)), nn.Parameter(torch.randn(5, 2))
        self.query = nn.Parameter(torch.randn(1, 2, 6, 5))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return three tensors."""
        mixed = functional.scaled_dot_product_attention(self.query, x, x)
        chained = torch.linalg.multi_dot([self.left, x[0, 0], self.right])
        mask = (x > 0) & (x < 1) | (x > 2)
        mask ^= x < -2
        return mixed, chained, torch.matrix_power(x[0, 0, :5] @ x[0, 1, :5].T, 6) * mask[0, 0, :5]


def _ids(*shape: int) -> Tensor:
    return torch.randint(0, 40, shape)


def _numbers(*shape: int) -> Tensor:
    return torch.randn(shape)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Tensor, ...]]]] = {
    "transformer": (lambda: Transformer(tied=True), lambda: (_ids(2, 32),)),
    "u-net": (UNet, lambda: (_numbers(2, 3, 32, 32),)),
    "two towers": (Towers, lambda: (_ids(2, 32), _numbers(2, 3, 32, 32))),
    "batch norm": (Residual, lambda: (_numbers(2, 3, 16, 16),)),
    "experts": (Experts, lambda: (_numbers(2, 9, 32),)),
    "depthwise": (Depthwise, lambda: (_numbers(2, 16, 12, 12),)),
    "norms": (Norms, lambda: (_numbers(2, 3, 32, 32),)),
    "masked": (Masked, lambda: (_numbers(2, 10, 32), torch.rand(2, 10, 10) > 0.1)),
    "bags": (Bags, lambda: (_ids(6, 5), _ids(6, 3))),
    "quantised": (Quantised, lambda: (_numbers(6, 24),)),
    "products": (Products, lambda: (_numbers(3, 2, 90, 5),)),
    "recurrent": (Recurrent, lambda: (_numbers(3, 3, 12),)),
}
"""Makers of modules and of their inputs, by name."""
