"""Models that plans record: found beside the plan, in its folder or here, by SHA-256 alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from processes import refused, run

import mtpp
from mtpp.api.inputs.recorded_model import NamedFiles, recorded_model
from mtpp.formats.io.recorded_paths import located, relocated


@pytest.fixture
def laid_out(tmp_path: Path, chain_file: Path) -> Path:
    """Folder with a model in ``models/`` and a plan of it in ``plans/``."""
    for name in ("models", "plans"):
        (tmp_path / name).mkdir()
    (tmp_path / "models/chain.json").write_bytes(chain_file.read_bytes())
    mtpp.partition(tmp_path / "models/chain.json", 2).save(tmp_path / "plans/plan.json")
    return tmp_path


def test_a_plan_knows_its_model(laid_out: Path) -> None:
    """The path is seen from the plan, so that both can be moved together."""
    plan = laid_out / "plans/plan.json"
    assert json.loads(plan.read_text())["model"]["path"] == "../models/chain.json"
    assert mtpp.verify(plan).passed
    moved = laid_out.with_name(f"{laid_out.name}-moved")
    laid_out.rename(moved)
    assert mtpp.verify(moved / "plans/plan.json").passed
    assert run("verify", "../plans/plan.json", cwd=moved / "models").returncode == 0


@pytest.mark.parametrize("place", ["plans", "here"])
def test_models_that_were_moved_are_found(laid_out: Path, place: str) -> None:
    """In the plan's folder, and in the folder that the command runs in."""
    (laid_out / place).mkdir(exist_ok=True)
    (laid_out / "models/chain.json").rename(laid_out / place / "chain.json")
    assert run("verify", "../plans/plan.json", cwd=laid_out / place).returncode == 0


def test_the_digest_decides(laid_out: Path) -> None:
    """A model of the same name is no model of the plan; that which is given wins."""
    model, plan = laid_out / "models/chain.json", laid_out / "plans/plan.json"
    model.rename(laid_out / "kept.json")
    model.write_text((laid_out / "kept.json").read_text().replace('"work": 30', '"work": 31') + " ")
    said = refused("verify", plan)
    assert "/model/path" in said
    assert "has changed: its SHA-256 is no longer" in said
    assert said.endswith("give the model with --model\n")
    assert run("verify", plan, "--model", laid_out / "kept.json").returncode == 0
    assert run("verify", plan, "--model", model).returncode == 1
    model.unlink()
    assert "its model is not at " in refused("verify", plan)


def test_embedded_graphs_do_without(laid_out: Path) -> None:
    """A plan with its graph needs no model; one that has changed leaves it open whether the plan is about that."""
    model, plan = laid_out / "models/chain.json", laid_out / "plans/whole.json"
    mtpp.partition(model, 2).save(plan, embed=True)
    model.write_text(model.read_text() + " ")
    unchecked = [row.claim for row in mtpp.verify(plan).rows if row.verdict == "unchecked"]
    assert unchecked == ["model file"]
    model.unlink()
    assert mtpp.verify(plan).passed


def test_tables_and_costs(laid_out: Path) -> None:
    """Tables name models from their own folder; measured costs are found as models are."""
    model, table = laid_out / "models/chain.json", laid_out / "plans/table.json"
    mtpp.certify(model, 2).save(table)
    assert json.loads(table.read_text())["rows"][0]["path"] == "../models/chain.json"
    assert mtpp.verify(table).passed


def test_paths_go_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a document undoes what writing it did; names of what is in no file stay."""
    monkeypatch.chdir(tmp_path)
    document = {"model": {"path": "models/a.onnx", "adapters": ["lora"]}, "rows": [{"path": "-"}, {"path": "b.onnx"}]}
    for file in (tmp_path / "plan.json", tmp_path / "deep/er/plan.json", tmp_path.parent / "plan.json"):
        written = relocated(document, file)
        assert written["rows"][0] == {"path": "-"}
        assert located(written, file) == document
    assert relocated(document, tmp_path / "plans/p.json")["model"]["path"] == "../models/a.onnx"


def test_pages_are_opened(laid_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser gets the address of the file; without one that is said, and the page is there."""
    pytest.importorskip("bokeh")
    opened: list[str] = []
    monkeypatch.setattr(
        "webbrowser.get", lambda: type("Browser", (), {"open": lambda self, url: opened.append(url) or True})()
    )
    page = laid_out / "page.html"
    mtpp.report(laid_out / "plans/plan.json", page, open_page=True)
    assert opened == [page.as_uri()]
    with pytest.raises(mtpp.InputError, match="open_page: shows a page in a file"):
        mtpp.report(laid_out / "plans/plan.json", open_page=True)


def test_places_that_were_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named as seen from the working folder, each once."""
    monkeypatch.chdir(tmp_path)
    stated = {"sha256": "0" * 64, "path": "../models/net.json"}
    for plan in (Path("plans/plan.json"), tmp_path / "plans" / "plan.json"):
        found = recorded_model(stated, plan, NamedFiles(1000))
        assert found.why == "its model is not at models/net.json, plans/net.json, ../models/net.json or net.json"
    assert recorded_model({**stated, "path": "net.json"}, None, NamedFiles(1000)).why == "its model is not at net.json"
