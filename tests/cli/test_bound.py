"""``mtpp bound`` as a process: rows without partitions, the bounds chosen, MIPs for other solvers, bad input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from graph_strategies import chain
from processes import printed, run

from mtpp import names
from mtpp.formats.graphs.native import write_native

MS = 10**9


def test_rows_have_no_upper_side(chain_file: Path) -> None:
    """The simple bound of a chain of 10, 20, 30 and 40 ms is 50 ms in two stages and 40 in four."""
    rows = json.loads(printed("bound", chain_file, "-k", "2,4", "--bounds", "simple", "--format", "json"))["rows"]
    assert [(row["k"], row["lower"], row["lower_method"], row["tier"]) for row in rows] == [
        (2, 50 * MS, "simple", "exact"),
        (4, 40 * MS, "simple", "exact"),
    ]
    for row in rows:
        assert not {"upper", "upper_algorithm", "ratio", "optimal", "assignment"} & set(row)
        assert list(row["bounds"]) == ["simple"]
        assert row["lower_proof"]["rule"] in ("largest-op", "average-work")


@pytest.mark.slow
def test_every_bound_by_default(chain_file: Path) -> None:
    """Each is worked at, also where the simple one would do, and none is above the optimum, 61 ms."""
    from mtpp.solvers.bounds.registry import BOUNDS

    (row,) = json.loads(run("bound", chain_file, "-k", "2", "--format", "json", "--time-limit", "20").stdout)["rows"]
    assert set(row["bounds"]) == set(BOUNDS)
    assert all(value is None or value <= 61 * MS for value in row["bounds"].values())
    assert row["lower"] == max(value for value in row["bounds"].values() if value is not None)


@pytest.mark.parametrize("command", ["bound", "certify"])
def test_help_names_every_bound(command: str) -> None:
    """In the order of the registry, which help does not import."""
    from mtpp.solvers.bounds.registry import BOUNDS

    assert list(names.BOUNDS) == list(BOUNDS)
    shown = "".join(run(command, "--help").stdout.split())
    assert ",".join(BOUNDS) in shown


def test_output_file(chain_file: Path, tmp_path: Path) -> None:
    """JSON to the file, a table to standard output."""
    out = tmp_path / "bounds.json"
    assert "50.00 ms" in printed("bound", chain_file, "-k", "2", "--bounds", "simple", "-o", out)
    assert json.loads(out.read_text())["format"] == "mtpp-certificates"


@pytest.mark.slow
def test_infeasible(chain_file: Path, tmp_path: Path) -> None:
    """A stage memory that no partition meets: one line, exit code 1."""
    document = json.loads(chain_file.read_text())
    document["ops"][0]["param_bytes"] = 100
    chain_file.write_text(json.dumps(document))
    done = run("bound", chain_file, "-k", "2", "--stage-memory", "50B", "-q")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {chain_file}, k = 2: ")


@pytest.mark.parametrize("above", [-(10**9), -1, 0, 1, 2, 61])
def test_a_cutoff_by_hand_is_no_partition(chain_file: Path, above: int) -> None:
    """Bounds of tier solver stay below it and below the optimum, 61 ms; others may prove it."""
    cutoff = 61 * MS + above
    names = "downset,crossings,fraction,bottleneck,exact-mip,configuration"
    options = ("-k", "2", "--bounds", names, "--cutoff", str(cutoff), "--time-limit", "20")
    (row,) = json.loads(printed("bound", chain_file, *options, "--format", "json"))["rows"]
    assert not {"upper", "assignment", "ratio", "optimal"} & set(row)
    assert all(value is None or value <= 61 * MS for value in row["bounds"].values())
    for name in ("bottleneck", "exact-mip"):
        assert (row["bounds"][name] or 0) < cutoff
    assert row["bounds"]["downset"] == min(cutoff, 61 * MS)
    assert row["tier"] in ("exact", "enumerated")


def test_a_cutoff_is_said_to_be_one(chain_file: Path) -> None:
    """As what was not looked beyond, in the table; nothing calls it a bottleneck."""
    done = run("bound", chain_file, "-k", "2", "--bounds", "simple,node", "--cutoff", "61000000001")
    assert "cutoff       no bound above 61000000001 ticks was sought" in done.stdout
    assert "bottleneck" not in done.stdout.replace("no bound", "")


@pytest.mark.slow
def test_costs_beyond_double_precision_are_left_out(shared_data: Path) -> None:
    """In one line for all bounds of tier solver, exit code 0; nothing is claimed in their place."""
    graph = shared_data / "trust" / "false_bound_700693.json"
    done = run("bound", graph, "-k", "4", "--bounds", "simple,bottleneck,node-convex,exact-mip", "--format", "json")
    assert done.returncode == 0
    (row,) = json.loads(done.stdout)["rows"]
    assert (list(row["bounds"]), row["lower_method"]) == (["simple"], "simple")
    (line,) = [line for line in done.stderr.splitlines() if "left out" in line]
    assert line.startswith("warning: ")
    assert "left out bottleneck, node-convex, exact-mip: the costs have more digits" in line
    done = run("certify", graph, "-k", "4", "--algorithm", "mla", "--bounds", "bottleneck", "--format", "json")
    assert (done.returncode, done.stderr.count("left out bottleneck")) == (0, 1)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["optimal"], row["tier"]) == (False, "exact")


@pytest.mark.slow
def test_exported_mip(random_file: Path, tmp_path: Path) -> None:
    """MPS, LP, either of them packed, and to standard output; what the numbers are is told on standard error."""
    pytest.importorskip("mtpp.solvers.bounds.mip.exported_model")
    command = ("bound", random_file, "-k", "4", "--bounds", "exact-mip", "--export")
    for name, first in (("m.mps", "NAME"), ("m.lp", "\\"), ("m.MPS.gz", "NAME")):
        done = run(*command, tmp_path / name)
        assert (done.returncode, done.stdout) == (0, "")
        assert "the objective is the bottleneck in units of" in done.stderr
        data = (tmp_path / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
        assert text.startswith(first)
        assert "bottleneck" in text
    shown = run(*command, "-", "-q")
    assert shown.stdout == (tmp_path / "m.mps").read_text()
    assert shown.stderr == ""


def test_exported_mip_has_the_optimum(chain_file: Path, tmp_path: Path) -> None:
    """Another program's solve of the file, 61 ms, is the least bottleneck in two stages."""
    pytest.importorskip("mtpp.solvers.bounds.mip.exported_model")
    highspy = pytest.importorskip("highspy")
    done = run("bound", chain_file, "-k", "2", "--bounds", "exact-mip", "--export", tmp_path / "m.mps")
    assert done.returncode == 0, done.stderr
    ticks = float(done.stderr.partition("in units of ")[2].partition(" ticks")[0])
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(tmp_path / "m.mps"))
    solver.run()
    assert solver.getInfo().objective_function_value * ticks == pytest.approx(61 * MS, rel=1e-6)


def test_a_long_proof_is_not_claimed(tmp_path: Path) -> None:
    """Within the limit the table is verified; beyond it the same value is of tier solver, and not checked."""
    model = tmp_path / "chain.json"
    model.write_text(write_native(chain([6, 6, 6], [10, 4], "ms")))
    rows = {}
    for limit, code in (("8MB", 0), ("1B", 3)):
        out = tmp_path / f"{limit}.json"
        printed("bound", model, "-k", "3", "--bounds", "branch-and-bound", "--proof-limit", limit, "-o", out)
        (rows[limit],) = json.loads(out.read_text())["rows"]
        checked = run("verify", out, "--model", model)
        assert checked.returncode == code, checked.stdout + checked.stderr
        assert ("too long to be kept" in checked.stdout) is (code == 3)
    assert [rows[limit]["lower"] for limit in rows] == [16 * MS, 16 * MS]
    assert [rows[limit]["tier"] for limit in rows] == ["exact", "solver"]
    assert "too long" in rows["1B"]["lower_proof"]["status"]
