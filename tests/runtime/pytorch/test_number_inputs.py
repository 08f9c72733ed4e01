"""Programs that take a whole number which decides sizes: planned, split, checked, run and measured for one number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import run_program_stages  # noqa: E402

import mtpp  # noqa: E402
from mtpp.errors import InputError  # noqa: E402


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
