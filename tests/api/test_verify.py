"""``mtpp.api.verify``: the command's verdicts in memory, and parameters refused at the door."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import training_oracles
from graph_strategies import chain
from plan_documents import plan_document
from processes import printed, run
from training_models import random_problem
from training_plan_documents import training_plan_document

from mtpp.api.inputs.model import Model, read_model
from mtpp.api.observer import Observer
from mtpp.api.options.reading import Reading
from mtpp.api.verify import verify
from mtpp.datasets import sample_path
from mtpp.errors import InputError, Interrupted, LimitReached
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.io.json_text import dump_json, parse_json
from mtpp.formats.io.source import read_source
from mtpp.formats.training.native import training_model_from_document, write_training_model
from mtpp.machine.presets import load_device


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, a plan for it, and a table of certificates of it."""
    where = tmp_path_factory.mktemp("results")
    works, transfers = [7, 10, 4, 1, 11, 19, 13, 14], [6, 11, 4, 1, 3, 0, 0]
    (where / "model.json").write_text(write_native(chain(works, transfers)))
    printed("partition", where / "model.json", "-k", "3", "-o", where / "plan.json")
    printed("certify", where / "model.json", "-k", "2,3", "-o", where / "table.json")
    return where


def _printed(*arguments: str | Path) -> Any:
    return json.loads(run("verify", *arguments, "--format", "json").stdout)


class Result:
    """Anything that knows its document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def document(self) -> dict[str, Any]:
        """Return it."""
        return self._document


@pytest.mark.parametrize("name", ["plan.json", "table.json"])
def test_every_form_of_a_result_gets_the_command_s_verdict(folder: Path, name: str) -> None:
    """A path, bytes, a parsed document and an object that has one: the JSON is the command's."""
    path, model = folder / name, folder / "model.json"
    document = json.loads(path.read_text())
    due = _printed(path, "--model", model)
    assert due["verdict"] == "ok"
    for result in (path, str(path), path.read_bytes(), document, Result(document), parse_json(path.read_bytes(), "it")):
        found = verify(result, model)
        assert found.document() == due
        assert (found.passed, found.exit_code) == (True, 0)
    assert repr(found) + "\n" == run("verify", path, "--model", model).stdout


def test_a_model_may_be_at_hand(folder: Path) -> None:
    """As read, whose system it is held to, or its graph alone; of several, a table takes the one that it needs."""
    model = read_model(str(folder / "model.json"), Reading(), print)
    plan = json.loads((folder / "plan.json").read_text())
    printed = _printed(folder / "plan.json", "--model", folder / "model.json", "--system", "reference")
    assert verify(plan, model).document() == printed
    bare = verify(plan, model.graph)
    assert bare.passed
    assert "nothing holds the plan to a file" in repr(bare)
    table = json.loads((folder / "table.json").read_text())
    assert verify(table, [model, sample_path("gpt2")]).passed


@pytest.mark.parametrize("name", ["plan.json", "table.json"])
def test_rows_say_all_that_the_report_says(folder: Path, name: str) -> None:
    """What claims nothing as well, such as that there is no file to hold a plan to."""
    found = verify(folder / name, read_native((folder / "model.json").read_bytes(), "model"), shallow=True)
    document = found.document()
    checks = [check for row in document.get("rows", [document]) for check in row["checks"]]
    due = [(check["verdict"], check["detail"]) for check in checks + document.get("summary", [])]
    assert [(row.verdict, row.detail) for row in found.rows] == due
    if name == "plan.json":
        printed = [line.split(None, 2) for line in repr(found).splitlines()[:-2]]
        assert [words[0] for words in printed] == [row.verdict or "–" for row in found.rows]
        assert any(row.verdict is None and "nothing holds the plan to a file" in row.detail for row in found.rows)


def test_a_model_read_for_another_machine_is_read_again(tmp_path: Path) -> None:
    """Work is modelled on the system that the plan names; that has to be the model's unless one is given."""
    plan = tmp_path / "plan.json"
    printed("partition", sample_path("resnet50"), "-k", "2", "-o", plan, "--algorithm", "slice")
    slow = load_device().overriding(peak_flops_per_s=10**9)
    model = read_model(str(sample_path("resnet50")), Reading(system=slow), print)
    assert [row.claim for row in verify(plan, model).rows if row.verdict == "false"] == ["system"]
    assert verify(plan, model, system="reference").verdict != "false"


def test_a_false_plan_fails(folder: Path) -> None:
    """Exit code 1, and a row that says what is false."""
    plan = json.loads((folder / "plan.json").read_text())
    plan["bottleneck"] -= 1
    found = verify(plan, folder / "model.json")
    assert (found.passed, found.verdict, found.exit_code) == (False, "false", 1)
    false = {row.claim: row.detail for row in found.rows if row.verdict == "false"}
    assert f"the plan says {plan['bottleneck']}, it is {plan['bottleneck'] + 1}" in false["bottleneck"]


def test_a_search_left_out_leaves_its_claims_open(folder: Path) -> None:
    """Exit code 3; what Python prints names the parameter, what the command prints the flag."""
    found = verify(folder / "plan.json", folder / "model.json", shallow=True)
    due = run("verify", folder / "plan.json", "--model", folder / "model.json", "--shallow")
    assert found.exit_code == due.returncode == 3
    assert found.unmet("enumerated") == ["the bound is of tier enumerated, and was not checked"]
    bound = next(row for row in found.rows if row.claim == "lower bound")
    assert bound.verdict == "unchecked"
    assert bound.detail.endswith("the search behind it was left out by shallow")
    assert repr(found).replace("by shallow", "by --shallow") + "\n" == due.stdout


def test_rows_of_a_table_say_which_row_they_are_of(folder: Path) -> None:
    """Path and k come first, means last."""
    found = verify(folder / "table.json", folder / "model.json")
    named = {row.claim.partition(": ")[0] for row in found.rows if ": " in row.claim}
    assert named == {f"model.json, k = {k}" for k in (2, 3)}
    assert ": " not in found.rows[-1].claim


def test_a_system_that_a_plan_is_held_to(folder: Path) -> None:
    """Its own one passes, another one does not."""
    assert verify(folder / "plan.json", folder / "model.json", system="reference").passed
    other = load_device().overriding(bandwidth_bytes_per_s=10**9)
    found = verify(folder / "plan.json", folder / "model.json", system=other)
    assert [row.claim for row in found.rows if row.verdict == "false"] == ["bandwidth"]


def test_training_plans(tmp_path: Path) -> None:
    """The model as a file, and at hand."""
    for seed in range(100):
        problem = random_problem(seed, most_layers=5)
        text = write_training_model(problem.model)
        problem = replace(problem, model=training_model_from_document(parse_json(text.encode(), "model"), "model"))
        best = training_oracles.best_plan(problem)
        if best is not None and len(best[1]) == 3:
            break
    (tmp_path / "model.json").write_text(text)
    plan = training_plan_document(problem, best[1])
    plan["model"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (tmp_path / "plan.json").write_text(json.dumps(plan, default=float))
    found = verify(tmp_path / "plan.json", tmp_path / "model.json")
    assert found.passed
    assert found.document() == _printed(tmp_path / "plan.json", "--model", tmp_path / "model.json")
    assert verify(json.loads((tmp_path / "plan.json").read_text()), problem.model).passed
    with pytest.raises(InputError, match="the result is a training plan") as caught:
        verify(plan, chain([1, 2], [3]))
    assert caught.value.parameter == "model"
    with pytest.raises(InputError, match="give the model with model"):
        verify(tmp_path / "plan.json")


def test_malformed_results_are_refused_with_the_place(folder: Path) -> None:
    """The place is the command's; what is in no file is called by its parameter."""
    plan = json.loads((folder / "plan.json").read_text())
    plan["k"] = "3"
    broken = folder / "broken.json"
    broken.write_text(json.dumps(plan))
    with pytest.raises(InputError) as caught:
        verify(plan)
    assert (caught.value.parameter, caught.value.where) == ("result", "/k")
    said = str(caught.value)
    assert run("verify", broken).stderr == f"error: {said.replace('result', str(broken), 1)}\n"


def test_plans_with_exact_fractions_are_taken_as_they_are() -> None:
    """Numbers of a document keep all their digits."""
    system = load_device()
    graph = chain([4, 1], [2])
    plan = plan_document(graph, system, 2, [0, 1], embed=True)
    assert verify(plan).verdict == verify(dump_json(plan).encode()).verdict == "ok"


def test_a_limit_that_passes_while_reading(folder: Path) -> None:
    """There is nothing to return."""
    with pytest.raises(LimitReached, match="raise time_limit_s"):
        verify(folder / "plan.json", time_limit_s=1e-6)


def test_ctrl_c_is_an_interruption(folder: Path) -> None:
    """There is nothing to return; loops around it end too."""

    class Impatient(Observer):
        def note(self, text: str) -> None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        verify(folder / "table.json", observer=Impatient())


def test_in_another_thread_a_limit_ends_searches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no alarm can ring."""
    started = threading.Event()

    def endless(*arguments: Any) -> None:
        started.set()
        threading.Event().wait()

    monkeypatch.setattr("mtpp.solvers.recheck.downset.recheck_downset", endless)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(verify, folder / "plan.json", folder / "model.json", time_limit_s=0.5).result()
    assert started.is_set()
    assert found.verdict == "unchecked"
    assert "out of time" in next(row.detail for row in found.rows if row.claim == "lower bound")


def test_content_of_a_model_is_read_as_its_file(folder: Path) -> None:
    """Bytes have the digest of the file that they are from; others are not the plan's."""
    data = (folder / "model.json").read_bytes()
    assert verify(folder / "plan.json", data).passed
    assert verify(folder / "plan.json", data + b" ").verdict == "false"


def test_a_graph_of_a_model_in_no_file(folder: Path) -> None:
    """What a caller built or changed is the model that it says it is."""
    source = read_source(str(folder / "model.json"))
    graph = read_native(source.data, "model")
    model = Model(source, graph, load_device(), {})
    assert verify(folder / "plan.json", model).passed
    changed = Model(replace(source, sha256="0" * 64), graph, load_device(), {})
    false = [row.claim for row in verify(folder / "plan.json", changed).rows if row.verdict == "false"]
    assert false == ["model file"]
