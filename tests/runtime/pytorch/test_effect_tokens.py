"""Programs whose checks are kept in order by tokens: read, cut and run like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import run_program_stages  # noqa: E402

import mtpp  # noqa: E402


class Inverted(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A layer before and after the inverse of a matrix, which PyTorch checks in core programs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        """Return one result of what is inverted."""
        a = self.layer(x).relu()
        return self.layer(torch.linalg.inv(a @ a.T + torch.eye(4))).relu()


def test_a_token_is_no_tensor_of_the_program(tmp_path: Path) -> None:
    """The call behind it is read in its place, and stages compute what the whole does on several inputs."""
    torch.manual_seed(0)
    model, whole = tmp_path / "m.pt2", Inverted().eval()
    torch.export.save(torch.export.export(whole, (torch.zeros(4, 4),)).run_decompositions(), model)
    read = mtpp.read(model)
    assert not [name for name in read.graph.op_names if "effects" in name]
    assert [one["name"] for one in read.graph.metadata["inputs"]] == ["x"]
    for k in (2, 3):
        folder = tmp_path / f"k{k}"
        check = mtpp.split(model, mtpp.partition(read, k), folder, check=True).stages.check
        assert check is not None
        assert check.passed
        for _ in range(3):
            x = torch.randn(4, 4)
            torch.testing.assert_close(run_program_stages(folder, {"x": x})[0], whole(x))
