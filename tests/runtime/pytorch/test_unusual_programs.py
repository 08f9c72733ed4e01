"""Programs with operators of other packages, effect tokens or whole numbers as inputs: read, cut, checked and run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
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


class FirstRows(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A product of the first rows of a product."""

    def forward(self, x: Any, n: int) -> Any:
        """Return as many rows as asked for, and a number."""
        return (x @ x)[:n].relu() @ x, n + 1


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Save a program exported for three rows of at most six."""
    free = {"x": None, "n": torch.export.Dim.DYNAMIC}
    path = tmp_path / "rows.pt2"
    torch.export.save(torch.export.export(FirstRows(), (torch.randn(6, 6), 3), dynamic_shapes=free), path)
    return path


@pytest.mark.parametrize(("rows", "proposed"), [(4, False), pytest.param(3, True, marks=pytest.mark.slow)])
def test_stages_are_for_the_number_that_was_planned_for(
    rows: int, proposed: bool, program: Path, tmp_path: Path
) -> None:
    """The check draws no other one, and stages give that many rows."""
    plan = mtpp.partition(mtpp.read(program, dims="auto" if proposed else {"n": rows}), 2)
    folder = tmp_path / "stages"
    check = mtpp.split(program, plan, folder, check=True).stages.check
    assert check is not None
    assert check.passed
    assert not check.random
    x = torch.randn(6, 6)
    torch.testing.assert_close(run_program_stages(folder, {"x": x})[0], FirstRows()(x, rows)[0])
    ran = mtpp.run_pipeline(folder, model=program, batches=2, warmup=1)
    assert "equal those of the unsplit model" in str(ran)
    with pytest.raises(InputError, match="is 5, and the stages are made for"):
        mtpp.run_pipeline(folder, batches=2, inputs={"n": np.array(5)})


def test_the_number_is_named_as_the_input_is(program: Path) -> None:
    """An open one is asked for by the name of the input, and held to the program's limits."""
    with pytest.raises(InputError, match="'n' "):
        mtpp.read(program)
    with pytest.raises(InputError, match="sizes from 0 to 6"):
        mtpp.read(program, dims={"n": 7})


def test_ops_are_measured_for_it(program: Path) -> None:
    """A profile feeds the number that is asked for."""
    assert mtpp.profile(program, dims={"n": 4}, repeats=1, warmup=0).graph.op_names
