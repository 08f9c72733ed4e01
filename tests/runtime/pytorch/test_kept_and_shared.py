"""Modules exported here: what counts for each sequence, and calls of layers that share weights as blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import mtpp  # noqa: E402


class Kept(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A norm in training, and a cache that is written at a position."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.out = torch.nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(8, 4))

    def forward(self, x: Any, at: Any) -> Any:
        """Return rows of the cache through a layer."""
        self.cache.index_copy_(0, at, self.norm(x))
        return self.out(self.cache + 1)


@pytest.mark.parametrize("core", [False, True])
def test_statistics_of_norms_are_of_no_sequence(tmp_path: Path, core: bool) -> None:
    """One for the model, however many sequences are served; the cache is there once for each."""
    program = torch.export.export(Kept().train(), (torch.ones(3, 4), torch.tensor([0, 1, 2])))
    torch.export.save(program.run_decompositions() if core else program, tmp_path / "m.pt2")
    graph = mtpp.read(tmp_path / "m.pt2").graph
    assert [row.bytes for row in graph.states.rows(graph.op_names)] == [8 * 4 * 4]
    weights = 4 * (4 * 4 + 4 + 4 + 4)
    statistics = 4 * (4 + 4) + 8
    assert graph.metadata["parameter_bytes"] == weights + statistics
    models = [mtpp.read(tmp_path / "m.pt2", sequences=count) for count in (1, 3)]
    one, three = (mtpp.partition(model, 1) for model in models)
    bytes_of = [plan.document()["stages"][0] for plan in (one, three)]
    assert bytes_of[0]["param_bytes"] == bytes_of[1]["param_bytes"] == weights + statistics
    assert [stage["state_bytes"] for stage in bytes_of] == [128, 3 * 128]


class Shared(torch.nn.Module):  # type: ignore[misc, name-defined]
    """One layer, six times."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Linear(8, 8)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        """Return the layer of the layer of … of *x*."""
        x = self.stem(x)
        for _ in range(6):
            x = self.layer(x)
        return self.head(x)


def test_calls_of_one_layer_are_blocks(tmp_path: Path) -> None:
    """Each in one stage and in more than one stage together; the stages compute the same."""
    torch.export.save(torch.export.export(Shared(), (torch.ones(1, 4, 8),)), tmp_path / "m.pt2")
    plan = mtpp.partition(tmp_path / "m.pt2", 3, together_blocks=True)
    assert "blocks kept whole: 6 calls of layer" in plan.assumptions
    stages: dict[str, set[int]] = {}
    for name, stage in plan.assignment.items():
        if name.startswith("layer."):
            stages.setdefault(name.partition("@")[2], set()).add(stage)
    assert [len(stages[call]) for call in ("", "1", "2", "3", "4", "5")] == [1] * 6
    assert set().union(*stages.values()) == {0, 1, 2}
    assert mtpp.verify(plan, tmp_path / "m.pt2").passed
    assert mtpp.split(tmp_path / "m.pt2", plan, tmp_path / "stages", check=True).passed
