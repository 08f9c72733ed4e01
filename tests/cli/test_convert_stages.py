"""``mtpp convert --assignment``: the stages of a plan in drawings and tables, as processes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import networkx as nx
import onnx
import pytest
from onnx_text import built
from processes import run

from mtpp.datasets import sample_path

_STAGES = {"op0": 0, "op1": 0, "op2": 1, "op3": 2}


@pytest.fixture
def assignment(tmp_path: Path) -> Path:
    """Return a file that gives a stage to each op of the chain."""
    path = tmp_path / "assignment.json"
    path.write_text(json.dumps(_STAGES))
    return path


def test_every_format_shows_the_stages(chain_file: Path, assignment: Path, tmp_path: Path) -> None:
    """GraphML and node-link have them on nodes, DOT as clusters, CSV as a column."""
    written = {suffix: tmp_path / f"out.{suffix}" for suffix in ("graphml", "nodelink", "dot", "csv")}
    for path in written.values():
        done = run("convert", chain_file, path, "--assignment", assignment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert dict(nx.read_graphml(written["graphml"]).nodes(data="stage")) == _STAGES
    linked = nx.node_link_graph(json.loads(written["nodelink"].read_text()), edges="edges")
    assert dict(linked.nodes(data="stage")) == _STAGES
    assert len(set(dict(linked.nodes(data="color")).values())) == 3
    assert written["dot"].read_text().count("subgraph cluster_") == 3
    rows = list(csv.DictReader(io.StringIO(written["csv"].read_text())))
    assert {row["op"]: int(row["stage"]) for row in rows} == _STAGES


def test_node_data_for_model_explorer(checkout: Path, tmp_path: Path) -> None:
    """JSON with stages names the nodes of the model, with the stage and its colour for each."""
    model = checkout / "datasets" / "samples" / "resnet50.onnx"
    assert run("partition", model, "-k", "4", "-o", tmp_path / "plan.json", "-q").returncode == 0
    assert run("convert", model, tmp_path / "overlay.json", "--assignment", tmp_path / "plan.json").returncode == 0
    plan = json.loads((tmp_path / "plan.json").read_text())
    ((graph, data),) = json.loads((tmp_path / "overlay.json").read_text()).items()
    assert graph == onnx.load(model, load_external_data=False).graph.name
    assert {op: one["value"] for op, one in data["results"].items()} == {
        op: f"stage {stage}" for op, stage in plan["assignment"].items()
    }
    colours = {(one["value"], one["bgColor"]) for one in data["results"].values()}
    assert len(colours) == 4


@pytest.mark.parametrize(
    ("names", "known_as"),
    [
        (["", "", "last", ""], ["node_1", "last", "node_2"]),
        (["", "", "", ""], ["node_1", "node_2", "node_3"]),
        (["n", "n", "n", "last"], ["n_1", "n_2", "last"]),
        (["Relu", "", "Relu", "node_Relu_3"], ["node", "Relu_1", "node_Relu_3"]),
    ],
)
def test_nodes_without_names_of_their_own(tmp_path: Path, names: list[str], known_as: list[str]) -> None:
    """Nodes without names, and with one that another has, are known by what NameFixPass of onnx_ir calls them."""
    labels = [f"[{name}]" if name else "" for name in names]
    nodes = "{} c = Constant <value_float = 1.0>() {} a = Add(x, c) {} b = Relu(a) {} y = Neg(b)".format(*labels)
    model = built(nodes, {"x": [8]}, {"y": [8]})
    model.graph.name = "tiny"
    onnx.save(model, tmp_path / "m.onnx")
    assert run("partition", tmp_path / "m.onnx", "-k", "2", "-o", tmp_path / "p.json", "-q").returncode == 0
    assert run("convert", tmp_path / "m.onnx", tmp_path / "o.json", "--assignment", tmp_path / "p.json").returncode == 0
    assert set(json.loads((tmp_path / "o.json").read_text())["tiny"]["results"]) == set(known_as)


def test_a_partition_that_is_none(chain_file: Path, assignment: Path) -> None:
    """Stages that wait for each other are refused with exit code 1, and nothing is written."""
    assignment.write_text(json.dumps(_STAGES | {"op1": 1, "op2": 0}))
    done = run("convert", chain_file, "-", "--to", "dot", "--assignment", assignment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "wait for each other" in done.stderr


@pytest.mark.parametrize(
    ("given", "planned"),
    [
        (("--machine", "machine.toml"), "machine desk"),
        (("-k", "2", "--system", "a100"), "system a100"),
        (("-k", "2"), "system reference"),
    ],
)
def test_costs_of_other_devices_than_those_of_the_plan_are_told_of(
    given: tuple[str, ...], planned: str, tmp_path: Path
) -> None:
    """A plan of a machine, or of another system, is drawn with costs of the system chosen, and a warning says so."""
    (tmp_path / "machine.toml").write_text('name = "desk"\n[[device]]\nsystem = "v100"\n[[device]]\nsystem = "a100"\n')
    model = sample_path("resnet50")
    assert run("partition", model, *given, "-q", "-o", "plan.json", cwd=tmp_path).returncode == 0
    for asked in ("reference", "a100"):
        done = run("convert", model, "-", "--to", "dot", "--assignment", "plan.json", "--system", asked, cwd=tmp_path)
        said = [line for line in done.stderr.splitlines() if "was planned for" in line]
        if planned == f"system {asked}":
            assert said == []
        else:
            due = f"warning: plan.json: was planned for {planned}; costs written here are of system {asked}"
            assert said == [due]
