"""Small documents that showed faults once: what each of them has to come to."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import oracles
import pytest
from click.testing import CliRunner
from refusals import refusal

import mtpp
from mtpp.api.verify import Verification
from mtpp.cli.main import root
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import BOUNDS

MODELS = ("false_bound_700693", "false_bound_800349", "false_bound_800430", "ladder", "tiny_abstract")


def graph(folder: Path, name: str) -> CostGraph:
    """Return a graph of the folder."""
    return read_graph(read_source(str(folder / "trust" / f"{name}.json")))


def optimum(of: CostGraph, k: int) -> int:
    """Return OPT by brute force."""
    return oracles.brute_force_optimum(of, load_device(), k)


def verified(folder: Path, name: str, model: str | Path) -> Verification:
    """Verify a document of the folder."""
    return mtpp.verify(folder / "trust" / name, model)


def test_a_schedule_has_the_passes_that_its_name_says(shared_data: Path) -> None:
    """A plan under gpipe whose passes are not gpipe's is false."""
    found = verified(shared_data, "schedule_name_forged.plan.json", shared_data / "trust" / "schedule_name_model.json")
    assert found.exit_code == 1
    assert "schedule" in [row.claim for row in found.rows if row.verdict == "false"]


def test_single_bounds_without_a_proof_are_not_checked(shared_data: Path) -> None:
    """One above the best bound is false; without that one the others are open, and nothing was checked again."""
    model = shared_data / "trust" / "ladder.json"
    found = verified(shared_data, "table_false_single_bounds.json", model)
    assert found.exit_code == 1
    assert "checked again" not in found.sentence
    table = json.loads((shared_data / "trust" / "table_false_single_bounds.json").read_text())
    row = table["rows"][0]
    for bounds, code in (
        ({"simple": 13, "node": 14, "downset": 20, "configuration": 20}, 3),
        ({"simple": 13, "downset": 20}, 0),
        ({"simple": 12, "downset": 20}, 1),
        ({"simple": 13}, 1),
    ):
        row |= {"bounds": bounds, "solved": list(bounds)}
        found = mtpp.verify(table, model)
        assert found.exit_code == code, bounds
        assert ("checked again" in found.sentence) == (code == 0)
        assert (
            "bounds tried" not in [one.claim.split(": ")[-1] for one in found.rows if one.verdict == "ok"] or code == 0
        )
    report = CliRunner().invoke(root, ["verify", str(shared_data / "trust" / "table_false_single_bounds.json"),
                                       "--model", str(model), "--format", "json"])  # fmt: skip
    assert json.loads(report.stdout)["valid"] is False


def test_a_table_without_rows_is_none(shared_data: Path) -> None:
    """It is false, whatever else it holds."""
    table = json.loads((shared_data / "trust" / "table_false_single_bounds.json").read_text())
    assert mtpp.verify({**table, "rows": []}).exit_code == 1


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",),
        ("partition", "-k", "2"),
        ("evaluate", "--assignment"),
        ("convert", "--to", "csv", "--assignment"),
    ],
    ids=lambda command: command[0],
)
def test_no_cell_begins_a_formula(shared_data: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    """Whatever ops are called: no cell of a CSV begins with a sign that a spreadsheet would run."""
    model = str(shared_data / "trust" / "csv_formula.json")
    name, *options = command
    if "--assignment" in options:
        plan = tmp_path / "plan.json"
        CliRunner().invoke(root, ["partition", model, "-k", "2", "-q", "-o", str(plan)])
        target = ["-"] if name == "convert" else ["--format", "csv"]
        done = CliRunner().invoke(root, [name, model, *target, *options, str(plan)])
    else:
        done = CliRunner().invoke(root, [name, model, *options, "-q", "--format", "csv"])
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert len(rows) > 1, done.output
    for row in rows:
        for cell in row:
            visible = cell.lstrip()
            assert visible[:1] not in ("=", "+", "-", "@") or _is_number(cell), cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_no_bound_is_above_the_optimum(shared_data: Path, name: str, k: int) -> None:
    """Of any tier, each bound by itself; and the partition is no better than the optimum."""
    of = graph(shared_data, name)
    best = optimum(of, k)
    plan = mtpp.partition(shared_data / "trust" / f"{name}.json", k)
    assert plan.lower_bound.value <= best <= plan.bottleneck
    instance = Instance.build(of, Machine.uniform(k, load_device()))
    for entry in BOUNDS.values():
        for cutoff in (best, best + 1):
            lower = entry.load()(instance, BoundLimits(cutoff, deadline=Deadline(5.0))).lower
            assert lower is None or lower.value <= best, entry.name


@pytest.mark.parametrize("name", ["forged_enum.json", "forged_solver.json"])
def test_forged_bounds_are_never_valid(shared_data: Path, name: str) -> None:
    """Neither of a search that was not made, nor by a solver's word."""
    model = mtpp.datasets.sample_path("resnet50")
    if name == "forged_enum.json":  # there is no proof at all
        assert refusal(verified, shared_data, name, model).where == "/lower_bound/proof/merges"
    else:
        assert not verified(shared_data, name, model).passed


def test_small_abstract_costs_keep_their_digits(shared_data: Path) -> None:
    """Costs of 10⁻⁵ are exact in ticks."""
    plan = mtpp.partition(shared_data / "trust" / "tiny_abstract.json", 2).document()
    per_unit = plan["ticks_per_unit"]
    due = {Fraction("0.00002"), Fraction("0.000031"), Fraction("0.0000125"), Fraction("0.000001")}
    assert all((cost * per_unit).denominator == 1 for cost in due)
    assert plan["bottleneck"] == int(Fraction("0.0000445") * per_unit)


def test_the_optimum_of_the_ladder(shared_data: Path) -> None:
    """It is 20 at k = 3, proven and verified."""
    model = shared_data / "trust" / "ladder.json"
    plan = mtpp.partition(model, 3)
    assert (plan.bottleneck, plan.optimal) == (20, True)
    assert mtpp.verify(plan, model).passed


def documents(folder: Path) -> list[Any]:
    """Return all files of the folder but its page."""
    return sorted(path.name for path in (folder / "trust").glob("*.json"))


def test_every_file_has_its_test(shared_data: Path) -> None:
    """Here, or in the modules of the parts that they are about."""
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    missing = [name for name in documents(shared_data) if name.split(".")[0] not in texts]
    elsewhere = {"planner_irregular_sizes.json", "order_not_topological.json", "terminal_names.json"}
    assert set(missing) <= elsewhere
