"""Copies and views: PyTorch says which they are, and a reader knows it from the file."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import Tensor, nn  # noqa: E402

from mtpp.formats.torch_export import read_with_modules  # noqa: E402
from mtpp.formats.torch_export.flops.movement import has_view  # noqa: E402
from mtpp.machine.presets import load_device  # noqa: E402


def random_view(rng: Random) -> Tensor:
    """Return a tensor with gaps, axes in another order, and repeated elements."""
    shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
    steps = [rng.choice([1, 1, 2]) for _ in shape]
    one = torch.empty([size * step for size, step in zip(shape, steps, strict=True)])
    for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
        one = (
            one.narrow(axis, 0, size) if rng.random() < 0.5 else one[(slice(None),) * axis + (slice(None, None, step),)]
        )
    axes = list(range(len(shape)))
    rng.shuffle(axes)
    one = one.permute(axes)
    return one.unsqueeze(0).expand(3, *one.shape) if rng.random() < 0.2 else one


def random_shape(rng: Random, count: int) -> list[int]:
    """Return a shape of that many elements."""
    shape = []
    while count > 1:
        shape.append(rng.choice([size for size in range(1, count + 1) if count % size == 0]))
        count //= shape[-1]
    return shape


def test_views_are_those_of_pytorch() -> None:
    """``Tensor.view`` raises where there is none."""
    rng, views = Random(0), 0
    for _ in range(4000):
        one = random_view(rng)
        shape = random_shape(rng, one.numel())
        try:
            one.view(shape)
            expected = True
        except RuntimeError:
            expected = False
        views += expected
        assert has_view(one.shape, one.stride(), shape) == expected, (one.shape, one.stride(), shape)
    assert 1000 < views < 3500


class Reshaped(nn.Module):
    """Reshapes that copy and ones that do not."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return something of each."""
        turned = x.transpose(1, 2)
        return x.reshape(2, 12), turned.reshape(2, 12), turned.contiguous(), turned.flatten(1)


def read(module: nn.Module, *inputs: Tensor) -> Any:
    """Export a module and read the program."""
    written = io.BytesIO()
    torch.export.save(torch.export.export(module, inputs), written)
    return read_with_modules(written.getvalue(), source="m.pt2", system=load_device(), name="m")


def test_copies_take_time() -> None:
    """A reshape and ``contiguous`` after a transposition read and write everything."""
    graph = read(Reshaped(), torch.randn(2, 3, 4)).graph
    work = dict(zip(graph.op_names, graph.work, strict=True))
    kinds = dict(zip(graph.op_names, graph.op_kinds, strict=True))
    free = [name for name, ticks in work.items() if ticks == 0]
    assert sorted(kinds[name].rpartition(".")[2] for name in free) == ["reshape", "transpose"]
    assert len({work[name] for name in ("reshape_1", "contiguous", "flatten")}) == 1
