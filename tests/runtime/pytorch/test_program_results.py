"""Results of exported programs that are no tensors, or stand twice: stages keep them all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import run_program_stages  # noqa: E402

import mtpp  # noqa: E402


class Layers(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two layers, a buffer and a function of them."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.register_buffer("three", torch.ones(3))
        self.run = run

    def forward(self, x: Any) -> Any:
        """Return what the function makes of the layers' outputs."""
        a = self.first(x)
        return self.run(self, x, a, self.second(a))


def _constants(layers: Layers, x: Any, a: Any, b: Any) -> Any:
    return None, b, 3, a, 2.5, True, b


def _nested(layers: Layers, x: Any, a: Any, b: Any) -> Any:
    return {"p": [a, None], "q": (b, a)}


def _sizes(layers: Layers, x: Any, a: Any, b: Any) -> Any:
    return x.shape[0], b, x.shape[0] * 2


def _counted(layers: Layers, x: Any, a: Any, b: Any) -> Any:
    return b, (a > 0).sum().item(), a.sum().item(), b


def _stored(layers: Layers, x: Any, a: Any, b: Any) -> Any:
    return layers.three, b, x, layers.three, x


@pytest.mark.parametrize("run", [_constants, _nested, _sizes, _counted, _stored])
def test_results_keep_their_places(run: Callable[..., Any], tmp_path: Path) -> None:
    """Stages and manifest give what the program returns, result by result; the check compares every one."""
    torch.manual_seed(0)
    model, whole = tmp_path / "m.pt2", Layers(run).eval()
    free = {0: torch.export.Dim("rows")} if run is _sizes else None
    torch.export.save(torch.export.export(whole, (torch.zeros(2, 4),), dynamic_shapes=(free,)), model)
    dims = {"x:0": 2} if free else None
    for k in (1, 2):
        plan = mtpp.partition(mtpp.read(model, dims=dims), k)
        split = mtpp.split(model, plan, tmp_path / f"k{k}", check=True, dims=dims)
        check = split.stages.check
        assert check is not None
        assert check.passed
        x = torch.randn(2, 4)
        expected = torch.utils._pytree.tree_leaves(whole(x), is_leaf=lambda one: one is None)
        assert len(check.outputs) == len(expected)
        for found, result in zip(run_program_stages(tmp_path / f"k{k}", {"x": x}), expected, strict=True):
            if isinstance(found, torch.Tensor) and not isinstance(result, torch.Tensor):
                found = found.item()  # only a run tells this number, and the stage hands it on as a tensor
            assert type(found) is type(result)
            assert torch.equal(found, result) if isinstance(result, torch.Tensor) else found == result


class Normalised(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Layers with batch normalisation in training, whose statistics are a result."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*, and statistics that an operator writes beside its result."""
        first, second, third = self.layers
        y = third(second(self.norm(first(x))).relu())
        return y, self.norm.running_mean, self.norm.running_var, self.norm.num_batches_tracked


def test_statistics_are_returned_by_the_stage_that_writes_them(tmp_path: Path) -> None:
    """A stored tensor comes from the stage whose op changes it, not from the copy that another stage holds."""
    model, given = tmp_path / "m.pt2", torch.arange(12.0).reshape(3, 4)
    torch.export.save(torch.export.export(Normalised().train(), (given,)), model)
    expected = torch.export.load(model).module()(given)
    reading = mtpp.read(model)
    for k in (1, 2, 3, 4):
        mtpp.split(reading, mtpp.partition(reading, k), tmp_path / f"k{k}")
        found = run_program_stages(tmp_path / f"k{k}", {"x": given})
        assert all(torch.allclose(one, other) for one, other in zip(found, expected, strict=True))
