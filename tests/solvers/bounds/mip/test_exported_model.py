"""MIPs written to files, read back by a solver that knows nothing of them."""

from __future__ import annotations

from pathlib import Path

import highspy
import pytest
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum

from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.mip.exported_model import EXPORTED, export_mps
from mtpp.solvers.bounds.registry import bound_entry

GRAPH = random_graph(11, 8)
OPTIMUM = brute_force_optimum(GRAPH, LINK, 3)


def solve(path: Path) -> tuple[float, list[str]]:
    """Return the optimum of a file and the names of its columns."""
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getObjectiveValue(), list(solver.getLp().col_names_)


@pytest.mark.parametrize("ending", ["mps", "lp"])
@pytest.mark.parametrize("name", [name for name in EXPORTED if name != "bottleneck-guess"])
def test_the_file_has_the_value_of_the_bound(tmp_path: Path, name: str, ending: str) -> None:
    """In the units that the export tells; the cutoff is just above the optimum, so that a partition is left."""
    instance = Instance.build(GRAPH, Machine.uniform(3, LINK))
    told = export_mps(instance, name, tmp_path / f"model.{ending}", cutoff=OPTIMUM + 1)
    value, names = solve(tmp_path / f"model.{ending}")
    bound = bound_entry(name).load()(instance, BoundLimits(OPTIMUM + 1)).lower
    assert bound is not None
    assert value * told.ticks_per_objective == pytest.approx(bound.value, rel=1e-6)
    assert len(names) == told.columns
    assert "bottleneck" in names
    assert [file.name for file in tmp_path.iterdir()] == [f"model.{ending}"]


def test_the_least_of_the_guesses_is_their_bound(tmp_path: Path) -> None:
    """One file per position."""
    instance = Instance.build(GRAPH, Machine.uniform(3, LINK))
    values = []
    for position in (1, 2, 3):
        told = export_mps(instance, "bottleneck-guess", tmp_path / "m.mps", cutoff=2 * OPTIMUM, position=position)
        values.append(solve(tmp_path / "m.mps")[0] * told.ticks_per_objective)
    bound = bound_entry("bottleneck-guess").load()(instance, BoundLimits(2 * OPTIMUM)).lower
    assert bound is not None
    assert min(values) == pytest.approx(bound.value, rel=1e-6)


def test_what_is_no_mip_is_refused(tmp_path: Path) -> None:
    """So are positions that do not exist, folders that do not, and models of which nothing is left."""
    instance = Instance.build(GRAPH, Machine.uniform(3, LINK))
    for name, path, cutoff, position in (
        ("simple", tmp_path / "m.mps", OPTIMUM, None),
        ("bottleneck-guess", tmp_path / "m.mps", OPTIMUM, None),
        ("bottleneck-guess", tmp_path / "m.mps", OPTIMUM, 4),
        ("exact-mip", tmp_path / "none" / "m.mps", OPTIMUM + 1, None),
        ("exact-mip", tmp_path / "m.mps", 1, None),
    ):
        with pytest.raises(InputError):
            export_mps(instance, name, path, cutoff=cutoff, position=position)
    assert not list(tmp_path.iterdir())
