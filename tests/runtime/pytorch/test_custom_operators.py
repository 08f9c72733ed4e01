"""Operators of other packages that write their operands, which a program's file does not tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import assert_equal, run_program_stages  # noqa: E402

import mtpp  # noqa: E402
from mtpp.errors import InputError  # noqa: E402


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    """Return operators that add 1 to their second operand, without a result and with one."""
    library = torch.library.Library("mtpp_custom", "DEF")
    library.define("raised(Tensor by, Tensor(a!) target) -> ()")
    library.define("raised_and_doubled(Tensor by, Tensor(a!) target) -> Tensor")
    library.impl("raised", _raise, "CompositeExplicitAutograd")
    library.impl("raised_and_doubled", lambda by, target: target.add_(by) * 2, "CompositeExplicitAutograd")
    yield torch.ops.mtpp_custom
    library._destroy()


def _raise(by: Any, target: Any) -> None:
    target.add_(by)


def _saved(forward: Any, path: Path) -> Path:
    module = torch.nn.Module()
    module.forward = forward
    torch.export.save(torch.export.export(module, (torch.ones(3),)), path)
    return path


def test_operators_without_results_stay_beside_readers_of_their_operands(operators: Any, tmp_path: Path) -> None:
    """An operator without results runs for what it writes: it counts, and no cut changes what readers see."""

    def forward(x: Any) -> Any:
        y = x.exp()
        before = y * 3
        operators.raised(x, y)
        return before.sin(), (y * 2).cos()

    path = _saved(forward, tmp_path / "model.pt2")
    reading = mtpp.read(path)
    assert reading.graph.metadata["not_modelled"] == {"mtpp_custom.raised": 1}
    x = torch.tensor([0.5, -1.0, 2.0])
    for number, cut in enumerate(range(1, reading.graph.op_count)):
        plan = {name: int(place >= cut) for place, name in enumerate(reading.graph.op_names)}
        mtpp.split(reading, plan, tmp_path / f"stages{number}")
        assert_equal(run_program_stages(tmp_path / f"stages{number}", {"x": x}), list(forward(x.clone())))


def test_operators_with_results_that_write_are_refused_with_a_remedy(operators: Any, tmp_path: Path) -> None:
    """An operator whose result hides a write crosses no cut unnoticed; decomposed, the program splits."""

    def forward(x: Any) -> Any:
        y = x.exp()
        return operators.raised_and_doubled(x, y) + y

    path = _saved(forward, tmp_path / "model.pt2")
    reading = mtpp.read(path)
    plan = {name: int(place > 0) for place, name in enumerate(reading.graph.op_names)}
    with pytest.raises(InputError, match=r"'raised_and_doubled' writes what it reads.*run_decompositions\(\)"):
        mtpp.split(reading, plan, tmp_path / "stages")
