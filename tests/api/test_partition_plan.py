"""Plans as objects: saved, loaded, shown, and never claiming more than is proven."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain
from onnx_text import built
from plans_beside_models import without_times
from processes import run
from refusals import refusal

import mtpp
from mtpp.api.partition_plan import PartitionPlan
from mtpp.formats.graphs.native import to_document


@pytest.fixture
def plan(chain_file: Path) -> PartitionPlan:
    """Return the best cut of the chain into two stages."""
    return mtpp.partition(chain_file, 2)


def test_a_plan_shows_itself_as_the_command_does(chain_file: Path, plan: PartitionPlan) -> None:
    """The table on the command's standard output, without colours."""
    assert repr(plan) + "\n" == run("partition", chain_file, "-k", "2").stdout


def test_a_saved_plan_verifies_and_loads(chain_file: Path, plan: PartitionPlan, tmp_path: Path) -> None:
    """The file is the command's; what is read from it has the same figures, as claims."""
    path = tmp_path / "plan.json"
    plan.save(path)
    assert run("verify", path, "--model", chain_file).returncode == 0
    for given in (path, str(path), path.read_bytes(), json.loads(path.read_text()), plan.document()):
        loaded = mtpp.load(given)
        assert not loaded.verified
        assert (loaded.k, loaded.bottleneck_s, loaded.ratio, loaded.optimal) == (2, 0.061, 1.0, True)
        assert loaded.stages == plan.stages
        assert loaded.assignment == plan.assignment
        as_written = json.loads(json.dumps(loaded.document(), default=float))
        assert without_times(as_written) == without_times(json.loads(path.read_text()))
    loaded.save(tmp_path / "again.json.gz")
    assert mtpp.load(tmp_path / "again.json.gz").stages == plan.stages


def test_embedded_graphs_make_a_plan_verifiable_alone(plan: PartitionPlan, tmp_path: Path) -> None:
    """With the graph inside, no model is needed; a plan read without it cannot give it."""
    plan.save(tmp_path / "plan.json", embed=True)
    assert run("verify", tmp_path / "plan.json").returncode == 0
    with pytest.raises(mtpp.InputError, match="read without its graph"):
        mtpp.load(plan.document()).document(embed=True)


def test_models_without_a_file_are_embedded(tmp_path: Path) -> None:
    """A plan for bytes or a dictionary carries the graph, for nobody could find it again."""
    plan = mtpp.partition(to_document(chain([10, 20], [1], "ms")), 2)
    plan.save(tmp_path / "plan.json")
    assert run("verify", tmp_path / "plan.json").returncode == 0


def test_a_loaded_plan_claims(plan: PartitionPlan) -> None:
    """Its table is the same but for the ratio."""
    shown, loaded = (repr(one).splitlines() for one in (plan, mtpp.load(plan.document())))
    left_out = [line for line in shown if line not in loaded]
    assert [line.split("  ")[0] for line in left_out] == ["ratio"]
    assert "ratio              1 claimed, not verified: lower bound 61.00 ms by downset, tier enumerated" in loaded
    assert "optimal" not in "\n".join(loaded)


@pytest.mark.parametrize("output_format", ["nope", "", None, 3, "rows"])
def test_unknown_formats_are_refused(plan: PartitionPlan, output_format: Any) -> None:
    """With those that there are; so they are by tables."""
    with pytest.raises(mtpp.InputError, match="is unknown; use one of table, markdown, csv, html, json") as caught:
        plan.text(output_format)
    assert caught.value.parameter == "output_format"
    table = mtpp.bound(to_document(chain([1, 2], [1])), 2, bounds="simple")
    with pytest.raises(mtpp.InputError, match="is unknown; use one of table, markdown, csv, html, json"):
        table.text(output_format)
    assert all(one.text(name) for one in (plan, table) for name in ("table", "markdown", "csv", "html", "json"))


def test_html_escapes_names() -> None:
    """Whatever an op is called, a notebook shows it and runs nothing."""
    graph = to_document(chain([1, 2], [1]))
    graph["ops"][0]["name"] = graph["tensors"][0]["producer"] = "<script>alert(1)</script>"
    graph["name"] = "<b>"
    html = mtpp.partition(graph, 2)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;: 2 ops" in html


def test_saving_spares_the_model(chain_file: Path, plan: PartitionPlan, tmp_path: Path) -> None:
    """By its name and by another; the file stays as it was."""
    before = chain_file.read_bytes()
    (tmp_path / "link.json").symlink_to(chain_file)
    os.link(chain_file, tmp_path / "hard.json")
    for path in (chain_file, tmp_path / "link.json", tmp_path / "hard.json"):
        with pytest.raises(mtpp.InputError, match="is the model too"):
            plan.save(path)
    with pytest.raises(mtpp.InputError, match="there is no directory"):
        plan.save(tmp_path / "missing" / "plan.json")
    with pytest.raises(mtpp.InputError, match="3 is not a path"):
        plan.save(3)  # type: ignore[arg-type]
    assert chain_file.read_bytes() == before


def test_bounds_show_themselves_in_a_line(plan: PartitionPlan) -> None:
    """Proofs have millions of numbers, which are there for who asks."""
    assert repr(plan.lower_bound) == "LowerBound(value=61000000000, method='downset', tier='enumerated')"
    assert plan.lower_bound.proof["k"] == 2


def test_documents_are_copies(plan: PartitionPlan) -> None:
    """Changing one changes nothing."""
    plan.document()["stages"][0]["cost"] = 0
    plan.assignment["op0"] = 7
    assert plan.stages[0].cost == 61 * 10**9
    assert plan.stage_of("op0") == 0


def _changed(document: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return document


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (("format",), "mtpp-graph", "a graph, not a plan"),
        (("version",), 2, "version"),
        (("k",), 3, "<dict>: /stages: 2 stages, but k is 3"),
        (("stages", 1, "cost"), -1, "<dict>: /stages/1/cost: -1 is out of range"),
        (("stages", 1, "cost"), "x", "<dict>: /stages/1/cost: expected a whole number, found 'x'"),
        (("stages", 1, "index"), 0, "<dict>: /stages/1/index: expected 1, found 0"),
        (("assignment", "op0"), 2, "<dict>: /assignment/op0: 2 is not the number of a stage"),
        (("lower_bound", "value"), 10**12, "<dict>: /lower_bound/value: 1000000000000 is above the bottleneck"),
        (("extra",), 1, "<dict>: /extra: unknown key"),
    ],
)
def test_broken_documents_are_refused_with_the_place(plan: PartitionPlan, path: Any, to: Any, message: str) -> None:
    """As a file or in memory."""
    assert message in str(refusal(mtpp.load, _changed(plan.document(), *path, to=to)))


@pytest.mark.parametrize(
    ("path", "to", "place"),
    [
        (("lower_bound", "value"), 30_500_000_000, "/ratio"),
        (("ratio",), 1.5, "/ratio"),
        (("ratio",), None, "/ratio"),
        (("optimal",), False, "/optimal"),
        (("bottleneck",), 61_000_000_001, "/bottleneck"),
        (("stages", 0, "cost"), 1, "/stages/0/cost"),
        (("stages", 0, "ops"), 1, "/stages/0/ops"),
        (("stages", 0, "first"), "op3", "/stages/0/first"),
        (("stages", 0, "last"), None, "/stages/0/last"),
        (("model", "ops"), 5, "/model/ops"),
        (("model", "tensors"), 5, "/model/tensors"),
        (("together",), [["op0", "op3"]], "/together/0/1"),
        (("together",), [["op0", "op9"]], "/together/0/1"),
        (("assignment", "op0"), 1, "/stages/0/ops"),
    ],
)
def test_claims_that_contradict_each_other_are_refused(plan: PartitionPlan, path: Any, to: Any, place: str) -> None:
    """Counts, sums, ratio and optimality follow from other figures of the document."""
    assert refusal(mtpp.load, _changed(plan.document(embed=True), *path, to=to)).where == place


def test_plans_of_earlier_versions_are_read(plan: PartitionPlan) -> None:
    """They called optimal what the solver alone had closed, and had no word on why a search ended; it is a claim."""
    document = _changed(plan.document(), "lower_bound", "tier", to="solver")
    for key in ("stopped", "found_by", "evaluations"):
        del document[key]
    del document["system"]["stage_memory_bytes"]
    loaded = mtpp.load(document)
    assert (loaded.ratio, loaded.optimal, loaded.verified) == (1.0, False, False)
    assert mtpp.load(document | {"optimal": False}).ratio == 1


def test_a_loaded_plan_says_that_nobody_verified_it(plan: PartitionPlan) -> None:
    """In a terminal and in a notebook, whatever its bound claims."""
    loaded = mtpp.load(plan.document())
    assert plan.verified
    assert not loaded.verified
    for shown in (repr(loaded), loaded._repr_html_(), loaded.text("markdown")):
        assert "claimed, not verified" in shown
    assert "claimed, not verified" not in repr(plan)


def test_plans_of_every_kind_are_consistent(chain_file: Path) -> None:
    """Whatever we write is read: free graphs, empty stages, groups, orders of activations, partitions brought along."""
    free = to_document(chain([0, 0], [0]))
    made = [
        mtpp.partition(free, 2),
        mtpp.partition(chain_file, 4, together=["op0,op1,op2"]),
        mtpp.partition(chain_file, 9, algorithm="random-3"),
        mtpp.partition(mtpp.read(chain_file, fast_memory="1B"), 3),
        mtpp.evaluate(chain_file, {"op0": 0, "op1": 0, "op2": 5, "op3": 5}),
        mtpp.partition(chain_file, max_bottleneck="70ms"),
    ]
    for one in made:
        for embed in (False, True):
            assert mtpp.load(one.document(embed=embed)).ratio == one.ratio


def test_what_is_no_plan(chain_file: Path, tmp_path: Path) -> None:
    """Other files, other types."""
    with pytest.raises(mtpp.InputError, match="a graph, not a plan"):
        mtpp.load(chain_file)
    with pytest.raises(mtpp.InputError, match="no such file"):
        mtpp.load(tmp_path / "none.json")
    assert refusal(mtpp.load, 3).parameter == "plan"


def test_saving_spares_weights_beside_the_model(tmp_path: Path) -> None:
    """A file of an ONNX model's weights is as much its own."""
    import numpy as np
    import onnx

    model = built(
        "h = MatMul(x, w) y = Relu(h)", {"x": [1, 64]}, {"y": [1, 64]}, {"w": np.ones((64, 64), dtype=np.float32)}
    )
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.weights", size_threshold=0)
    plan = mtpp.partition(path, 2)
    with pytest.raises(mtpp.InputError, match="a file of weights of the model too"):
        plan.save(tmp_path / "m.weights")
    plan.save(tmp_path / "m.json")
    assert mtpp.load(tmp_path / "m.json").bottleneck == plan.bottleneck


def test_figures_of_the_pipeline_are_attributes_and_claims(chain_file: Path, plan: PartitionPlan) -> None:
    """By hand: one stage takes 100 ms, two 61; a document keeps them, and verify holds it to them."""
    assert (plan.throughput_per_s, plan.speed_up) == (1 / 0.061, 100 / 61)
    assert (plan.crossing_tensors, plan.lower_bound_s) == (1, 0.061)
    document = plan.document()
    loaded = mtpp.load(document)
    for name in ("throughput_per_s", "speed_up", "crossing_tensors", "crossing_bytes", "memory_bytes"):
        assert getattr(loaded, name) == getattr(plan, name)
    for key, claim in (("throughput_per_s", "throughput"), ("speed_up", "speed-up"), ("crossing", "crossing tensors")):
        forged = document | {key: {"tensors": 2, "bytes": 0} if key == "crossing" else 1.0}
        assert [row.claim for row in mtpp.verify(forged, chain_file).rows if row.verdict == "false"] == [claim]
        del forged[key]
        assert mtpp.verify(forged, chain_file).passed
