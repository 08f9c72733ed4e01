"""Backward passes in halves: which stages PyTorch's runtime would get wrong."""

# mypy: disable-error-code="import-not-found, misc, no-any-return"

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from planning import plan_with

torch = pytest.importorskip("torch")

import mtpp  # noqa: E402
from mtpp.runtime.pytorch.backward_halves import loses_gradients, shares_parameters  # noqa: E402


class Chain(torch.nn.Module):
    """Linear layers that take turns, the first ones of them frozen."""

    def __init__(self, kinds: int, frozen: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(kinds))
        for layer in self.layers[:frozen]:
            layer.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*."""
        for i in range(8):
            x = self.layers[i % len(self.layers)](x).relu()
        return x


@pytest.mark.parametrize(
    ("kinds", "frozen", "loses", "shares"),
    [
        (8, 0, [True, False], [False, False]),
        (8, 6, [False, True], [False, False]),
        (2, 0, [True, False], [True, True]),
        (2, 1, [True, False], [True, True]),
        (2, 2, [False, False], [False, False]),
    ],
)
def test_stages_that_halves_go_wrong_in(
    kinds: int, frozen: int, loses: list[bool], shares: list[bool], tmp_path: Path
) -> None:
    """No tensor with gradients comes to a trained parameter, or several steps read one; the first stage runs whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Chain(kinds, frozen), (torch.zeros(2, 4),))
        torch.export.save(program, tmp_path / "m.pt2")
        plan = plan_with(
            tmp_path / "m.pt2", planner="pfeife", devices=2, micro_batches=2, schedule="zero-bubble", loops=[1]
        )
    plan.emit("torch-pipelining", tmp_path / "plan")
    stages = mtpp.stage_modules(tmp_path / "plan", tmp_path / "m.pt2")
    assert all(stage.halved for stage in stages)
    assert [loses_gradients(stage) for stage in stages] == loses
    assert [shares_parameters(stage) for stage in stages] == shares


class Detours(torch.nn.Module):
    """Parameters in the middle that read a trained tensor by ways that no gradient takes, and one that is free."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(9))
        self.table = torch.nn.Embedding(8, 8)

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*."""
        layers = self.layers
        y = layers[2](layers[1](layers[0](x).relu()).relu())
        if self.way == "whole numbers":
            other = self.table(y.argmax(1))
        elif self.way == "detached":
            other = layers[3](layers[3].weight.shape[0] * y.detach())
        elif self.way == "mode":
            with torch.no_grad():
                still = y * 2
            with torch.autocast("cpu", dtype=torch.bfloat16):
                other = layers[3](still).float()
        else:
            other = layers[3](y)
        return layers[8](layers[7](layers[4](y).relu()) + layers[6](layers[5](other).relu()))


@pytest.mark.parametrize(
    ("way", "loses"), [("whole numbers", True), ("detached", True), ("mode", True), ("plain", False)]
)
def test_gradients_take_no_way_through_whole_numbers_and_detached_tensors(
    way: str, loses: bool, tmp_path: Path
) -> None:
    """A parameter behind such a way meets no tensor with gradients, though it follows from one that has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(Detours(way), (torch.zeros(2, 8),)), tmp_path / "m.pt2")
        plan = plan_with(
            tmp_path / "m.pt2", planner="pfeife", devices=3, micro_batches=2, schedule="zero-bubble", loops=[1]
        )
    plan.emit("torch-pipelining", tmp_path / "plan")
    stages = mtpp.stage_modules(tmp_path / "plan", tmp_path / "m.pt2")
    assert [loses_gradients(stage) for stage in stages] == [True, loses, False]
