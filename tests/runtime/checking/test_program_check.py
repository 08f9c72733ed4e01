"""Checks of split programs keep what a run leaves behind, whichever operators write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import mtpp  # noqa: E402
from mtpp.api.split import SplitResult  # noqa: E402

SHAPE = (4, 3, 8)


class Normalised(torch.nn.Module):
    """A normalisation that trains, between two products."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.norm = torch.nn.BatchNorm1d(3, momentum=0.5)

    def forward(self, x: Any) -> Any:
        """Return the product of what is normalised."""
        return self.after(torch.relu(self.norm(self.before(x))))


class Statistics(torch.nn.Module):
    """Statistics that an operator writes without its schema saying so, and that are returned."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))

    def forward(self, x: Any) -> Any:
        """Return what is normalised, and the mean before and after."""
        before = self.mean * 1
        mean, var = self.mean + 0, self.var + 0
        y = torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.5)
        return torch.relu(y), before, mean * 2


class Dropped(torch.nn.Module):
    """A dropout in a branch."""

    def forward(self, x: Any) -> Any:
        """Return what is left of the tensor, or its negative."""
        return torch.cond(x.sum() > 0, lambda x: torch.nn.functional.dropout(x, 0.5), lambda x: -x, (x,)) + 1


def _split(module: Any, folder: Path, cut: int, **more: Any) -> SplitResult:
    path = folder / "program.pt2"
    torch.export.save(torch.export.export(module.train(), (torch.randn(SHAPE),)), path)
    graph = mtpp.read(path).graph
    plan = {graph.op_names[op]: int(place >= cut) for place, op in enumerate(graph.order)}
    return mtpp.split(path, plan, folder / "stages", check=True, **more)


@pytest.mark.slow
def test_statistics_that_a_run_changes_are_compared(tmp_path: Path) -> None:
    """Stages that would leave other statistics behind fail the check, whatever the schema says."""
    torch.manual_seed(0)
    module = Normalised()
    split = _split(module, tmp_path, 2)
    assert split.passed
    assert split.stages.check is not None
    assert split.stages.check.inputs >= 2
    broken = tmp_path / "stages" / split.manifest.stages[0].file
    holding = next(
        path
        for path in sorted(broken.parent.glob("*.pt2"))
        if any(name.endswith("running_mean") for name in torch.export.load(path).state_dict)
    )
    program = torch.export.load(holding)
    for node in program.graph.nodes:
        if node.target is torch.ops.aten.batch_norm.default:
            node.args = (*node.args[:6], 0.25, *node.args[7:])
    program.graph_module.recompile()
    torch.export.save(program, holding)
    check = _checked(tmp_path, split)
    assert {one.name for one in check.outputs if not one.passed} == {
        "buffer norm.running_mean",
        "buffer norm.running_var",
    }


def _checked(folder: Path, split: SplitResult) -> Any:
    from mtpp.formats.io.large_file import LargeFile
    from mtpp.runtime.checking.program_check import check_split_program

    return check_split_program(
        LargeFile.at(folder / "program.pt2"), split.manifest, folder / "stages", display="program.pt2"
    )


@pytest.mark.parametrize("cut", [2, 4])
@pytest.mark.slow
def test_statistics_from_another_stage_are_written_in_a_copy(tmp_path: Path, cut: int) -> None:
    """What another stage made stays as it was for the others."""
    split = _split(Statistics(), tmp_path, cut)
    assert split.passed
    run = mtpp.run_pipeline(split, model=tmp_path / "program.pt2", batches=2, warmup=0)
    assert run.agrees


def test_draws_in_branches_are_seen(tmp_path: Path) -> None:
    """A dropout in a branch of a condition makes results random: only types and shapes are compared."""
    with pytest.warns(mtpp.MtppWarning, match="draws random numbers"):
        assert _split(Dropped(), tmp_path, 1).passed
