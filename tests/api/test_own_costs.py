"""Graphs that bring their own costs: no result says that rates of a device model them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain

import mtpp
from mtpp.formats.graphs.native import write_native

RATES = "20 TFLOP/s"
LINK = "system reference: link 25 GB/s, no fast-memory limit"
BOTH = "system reference: 20 TFLOP/s, memory 200 GB/s, link 25 GB/s, no fast-memory limit"
RESNET = mtpp.datasets.sample_path("resnet50")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a graph with costs of its own."""
    path = tmp_path_factory.mktemp("own") / "chain.json"
    path.write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    return path


@pytest.fixture(scope="module")
def mixed(own: Path) -> Any:
    """Return a table of that graph and of a model whose costs are modelled."""
    return mtpp.certify([own, RESNET], 2, bounds="simple", jobs=1)


def views(result: Any) -> Iterator[str]:
    """Yield a result in every format for people."""
    yield str(result)
    yield result.text("markdown")
    yield result._repr_html_()


def test_plans_that_are_read_again(own: Path, tmp_path: Path) -> None:
    """As those that were just made."""
    plan = mtpp.partition(own, 2)
    plan.save(tmp_path / "plan.json")
    mtpp.partition(own, [1, 2]).save(tmp_path / "range.json")
    for result in (plan, mtpp.load(tmp_path / "plan.json"), mtpp.load(tmp_path / "range.json")):
        for text in views(result):
            assert LINK in text
            assert RATES not in text
    assert RATES not in mtpp.report(tmp_path / "plan.json", model=own).html


def test_measured_costs(tmp_path: Path) -> None:
    """They are no modelled ones either, whether the model is at hand or not."""
    costs = tmp_path / "costs.json"
    graph = json.loads(write_native(mtpp.read(RESNET).graph))
    costs.write_text(json.dumps(graph))
    plan = mtpp.partition(mtpp.read(RESNET, costs=costs), 2)
    assert "own_costs" not in plan.document()["model"]
    for text in (str(plan), str(mtpp.load(plan.document()))):
        assert RATES not in text
    (row,) = (row for row in mtpp.verify(plan, RESNET, costs=costs, shallow=True).rows if row.claim == "system")
    assert row.detail == "reference: models no costs, they are measured"


def test_tables_of_both_kinds(own: Path, mixed: Any) -> None:
    """Each model has the figures that its costs rest on."""
    for text in views(mixed):
        assert f"chain: {LINK}; resnet50: {BOTH}" in text
    assert f"chain: {LINK}; resnet50: {BOTH}" in str(mtpp.bound([own, RESNET], 2, bounds="simple"))
    compared = mtpp.compare([own, RESNET], 2, algorithms=["slice"], work_limit=1, jobs=1)
    assert f"chain: {LINK}; resnet50: {BOTH}" in str(compared)
    assert [model.get("own_costs") for model in compared.document()["models"]] == [True, None]
    page = mtpp.report(mixed, model=[own, RESNET]).html
    assert page.count(LINK) == page.count(BOTH) == 1


def test_graphs_of_one_name_go_by_their_files(own: Path, tmp_path: Path) -> None:
    """A model and the graph that it was converted to."""
    path = tmp_path / "resnet.json"
    path.write_text(mtpp.convert(RESNET, to="native"))
    table = mtpp.certify([path, RESNET], 2, bounds="simple", jobs=1)
    assert f"{path}: {LINK}; {RESNET}: {BOTH}" in str(table)


def test_the_key_is_held_to_the_model(own: Path, mixed: Any) -> None:
    """A document that says it of modelled costs is wrong; one that does not say it may be an older one."""
    table = mixed.document()
    assert [row.get("own_costs") for row in table["rows"]] == [True, None]
    assert mtpp.verify(table, [own, RESNET]).passed
    del table["rows"][0]["own_costs"]
    assert mtpp.verify(table, [own, RESNET]).passed
    table["rows"][1]["own_costs"] = True
    false = [row.claim for row in mtpp.verify(table, [own, RESNET]).rows if row.verdict == "false"]
    assert any(claim.endswith("system") for claim in false)
    plan = mtpp.partition(RESNET, 2).document()
    plan["model"]["own_costs"] = True
    false = [row.claim for row in mtpp.verify(plan, RESNET, shallow=True).rows if row.verdict == "false"]
    assert false == ["system"]
    plan["model"]["own_costs"] = False
    with pytest.raises(mtpp.InputError, match="is true where the model brings its own costs, else left out"):
        mtpp.verify(plan, RESNET)
