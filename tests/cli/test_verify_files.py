"""``mtpp verify FILE…`` and ``--beside``, as a process: sections, exit codes and the list in JSON."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from plans_beside_models import plan_of, write_model, write_plan
from processes import printed, refused, run

from mtpp.datasets import sample_path
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.formats.training.native import write_training_model


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository: a model and its plan at the root, its plan in a subfolder, and a false one."""
    (tmp_path / ".git").mkdir()
    graph = write_model(tmp_path / "chain.json")
    plan = plan_of(tmp_path / "chain.json", graph)
    write_plan(tmp_path / "good.plan.json", plan)
    write_plan(tmp_path / "plans" / "deep" / "good.plan.json", plan)
    write_plan(tmp_path / "false.plan.json", {**plan, "bottleneck": plan["bottleneck"] - 1})
    return tmp_path


def document_of(*arguments: str | Path, cwd: Path) -> dict[str, Any]:
    """Return the list that ``mtpp verify --format json`` prints, after holding its exit code to that of the process."""
    done = run("verify", *arguments, "--format", "json", cwd=cwd)
    document: dict[str, Any] = json.loads(done.stdout)
    assert (document["format"], document["version"]) == ("mtpp-verifications", 1)
    assert document["exit_code"] == done.returncode
    return document


def test_each_file_has_a_section(repository: Path) -> None:
    """Name, model found and the report that the file gets alone; the last line counts."""
    shown = printed("verify", "--beside", "good.plan.json", "plans/deep/good.plan.json", cwd=repository, stderr="")
    alone = run("verify", "good.plan.json", "--model", "chain.json", cwd=repository)
    titles = ("good.plan.json, model chain.json", "plans/deep/good.plan.json, model chain.json")
    sections = shown.split("== ")[1:]
    assert [section.splitlines()[0] for section in sections] == list(titles)
    assert all(section.split("\n", 1)[1].startswith(alone.stdout) for section in sections)
    assert shown.splitlines()[-1] == "2 files: 2 valid"


@pytest.mark.parametrize(
    ("files", "code", "closing"),
    [
        (("good",), 0, "1 file: 1 valid"),
        (("good", "unchecked"), 3, "2 files: 1 valid; unchecked: unchecked.plan.json"),
        (("unchecked", "malformed"), 2, "2 files: 0 valid; not read: malformed.plan.json; "
         "unchecked: unchecked.plan.json"),
        (("malformed", "good", "absent"), 2, "3 files: 1 valid; not read: malformed.plan.json, absent.plan.json"),
        (("malformed", "false", "unchecked"), 1, "3 files: 0 valid; false: false.plan.json; not read: "
         "malformed.plan.json; unchecked: unchecked.plan.json"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_the_worst_file_decides(files: tuple[str, ...], code: int, closing: str, repository: Path) -> None:
    """False before malformed before unchecked, in whichever order they are given; all of them are looked at."""
    plan = json.loads((repository / "good.plan.json").read_text())
    plan["model"]["sha256"] = "0" * 64
    write_plan(repository / "unchecked.plan.json", plan)
    write_plan(repository / "malformed.plan.json", {"format": "mtpp-plan", "version": 1})
    names = [f"{name}.plan.json" for name in files]
    done = run("verify", "--beside", *names, cwd=repository)
    assert done.returncode == code
    assert done.stdout.splitlines()[-1] == closing
    errors = done.stderr.splitlines()
    unread = [name for name in names if name.startswith(("malformed", "absent"))]
    assert [line.split(": ")[:2] for line in errors] == [["error", name] for name in unread]
    document = document_of("--beside", *names, cwd=repository)
    assert [file["file"] for file in document["files"]] == names
    assert [file["exit_code"] for file in document["files"]] == [
        {"good": 0, "false": 1, "unchecked": 3}.get(name, 2) for name in files
    ]
    assert [file["verification"] is None for file in document["files"]] == [name in unread for name in names]
    assert document["valid"] is {0: True, 1: False}.get(code)


def test_a_model_that_has_changed_leaves_its_plans_unchecked(repository: Path) -> None:
    """Nothing is known of a plan whose model is gone; --accept-unchecked takes that, and figures are still compared."""
    graph = write_model(repository / "chain.json", (10, 20, 30, 41))
    shown = printed("verify", "--beside", "good.plan.json", cwd=repository, code=3)
    assert "unchecked  model file            no file in . has its SHA-256 " in shown
    assert "NOT PROVEN: nothing could be checked" in shown
    assert run("verify", "--beside", "--accept-unchecked", "good.plan.json", cwd=repository).returncode == 0
    plan = json.loads((repository / "good.plan.json").read_text())
    write_plan(repository / "good.plan.json", {**plan, "ratio": 1.0, "optimal": True})
    assert run("verify", "--beside", "good.plan.json", cwd=repository).returncode == 1
    write_plan(repository / "good.plan.json", plan_of(repository / "chain.json", graph))
    assert run("verify", "--beside", "good.plan.json", cwd=repository).returncode == 0


def test_an_embedded_graph_is_checked_without_its_file(tmp_path: Path) -> None:
    """All but that the plan is for a file; without --beside nobody looks for one."""
    graph = write_model(tmp_path / "chain.json")
    write_plan(tmp_path / "plan.json", plan_of(tmp_path / "chain.json", graph, embed=True))
    assert run("verify", "--beside", "plan.json", cwd=tmp_path).returncode == 0
    (tmp_path / "chain.json").unlink()
    shown = printed("verify", "--beside", "plan.json", cwd=tmp_path, code=3)
    assert "NOT PROVEN: model file is merely claimed; all else holds" in shown
    assert run("verify", "plan.json", cwd=tmp_path).returncode == 0


def test_a_plan_that_names_no_file_is_held_to_none(tmp_path: Path) -> None:
    """Its embedded graph may be any: --beside does not pass over the model that is there."""
    graph = write_model(tmp_path / "chain.json")
    plan = plan_of(tmp_path / "chain.json", graph, embed=True)
    plan["model"]["sha256"] = None
    write_plan(tmp_path / "plan.json", plan)
    shown = printed("verify", "--beside", "plan.json", cwd=tmp_path, code=3)
    assert "unchecked  model file            it names no file that could be beside it" in shown
    assert "1 file: 0 valid; unchecked: plan.json" in shown
    assert run("verify", "plan.json", cwd=tmp_path).returncode == 0


def test_damaged_plans_in_a_folder_are_not_passed_over(repository: Path) -> None:
    """Merge conflicts, half of a file, a later version: by name or by what is left; others' plans are theirs."""
    (repository / "false.plan.json").unlink()
    text = (repository / "good.plan.json").read_text()
    ordered = json.dumps(json.loads(text), sort_keys=True)
    (repository / "plan.json").write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> theirs\n")
    (repository / "half.json").write_text(ordered[: len(ordered) * 9 // 10])
    (repository / "packed-plan.json.gz").write_bytes(gzip.compress(text.encode())[:-20])
    (repository / "later.json").write_text(ordered.replace('"version": 1', '"version": 99'))
    (repository / "other-plan.json").write_text('{"planned_values": {}}')
    (repository / "half-of-other.json").write_text('{"planned_values": {')
    done = run("verify", "--beside", ".", cwd=repository)
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == (
        "6 files: 2 valid; not read: half.json, later.json, packed-plan.json.gz, plan.json"
    )


def test_only_the_repository_is_looked_through(repository: Path) -> None:
    """Not the folders beside a plan's own, unless they are given, nor those above without a repository."""
    (repository / "models").mkdir()
    shutil.move(repository / "chain.json", repository / "models" / "chain.json")
    deep = "plans/deep/good.plan.json"
    assert run("verify", "--beside", deep, cwd=repository).returncode == 3
    for given in ("models", "models/chain.json"):
        assert run("verify", "--beside", "--model", given, deep, cwd=repository).returncode == 0
    shutil.move(repository / "models" / "chain.json", repository / "chain.json")
    assert run("verify", "--beside", "good.plan.json", cwd=repository / "plans" / "deep").returncode == 0
    (repository / ".git").rmdir()
    assert run("verify", "--beside", deep, cwd=repository).returncode == 3


def test_folders_stand_for_the_results_in_them(repository: Path) -> None:
    """Recognised by content, keys in any order; models, hidden folders and other JSON are passed over."""
    (repository / "false.plan.json").unlink()
    plan = json.loads((repository / "good.plan.json").read_text())
    write_plan(repository / "sorted.json", plan, sort_keys=True, indent=2)
    (repository / "packed.json.gz").write_bytes(gzip.compress(json.dumps(plan).encode()))
    (repository / "settings.json").write_text('{"about": "mtpp-plan", "format": "none"}')
    (repository / "list.json").write_text("[1, 2]")
    (repository / ".hidden").mkdir()
    write_plan(repository / ".hidden" / "plan.json", {"format": "mtpp-plan"})
    document = document_of("--beside", ".", "good.plan.json", cwd=repository)
    found = [file["file"] for file in document["files"]]
    assert found == ["good.plan.json", "packed.json.gz", "sorted.json", "plans/deep/good.plan.json"]
    assert document["exit_code"] == 0
    assert run("verify", "--beside", ".hidden/..", "settings.json", "models", cwd=repository).returncode == 2
    (repository / "empty").mkdir()
    said = refused("verify", "empty", cwd=repository)
    assert said == "error: empty: no plan and no table of certificates in this folder; name the files\n"


def test_requirements_hold_for_each_file(repository: Path) -> None:
    """A tier that one bound misses makes the whole false, and says of which file."""
    done = run("verify", "--beside", "--shallow", "--require-tier", "exact", "good.plan.json", ".", cwd=repository)
    assert done.returncode == 1
    assert done.stderr == ""  # simple bounds are exact; the false plan needs no more words
    sample = sample_path("resnet50")
    run("partition", sample, "-k", "4", "-q", "-o", repository / "net.plan.json")
    shutil.copy(sample, repository / "net.onnx")
    done = run("verify", "--beside", "--require-tier", "exact", "net.plan.json", "good.plan.json", cwd=repository)
    assert done.returncode == 1
    assert done.stderr == "unmet: net.plan.json: --require-tier exact: the bound is of tier enumerated\n"
    assert done.stdout.splitlines()[-1] == "2 files: 1 valid; false: net.plan.json"


def test_pointers_of_git_lfs_are_named(repository: Path) -> None:
    """A model that was not fetched is no model that has changed."""
    digest = hashlib.sha256((repository / "chain.json").read_bytes()).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 5\n"
    (repository / "chain.json").write_text(pointer)
    shown = printed("verify", "--beside", "good.plan.json", cwd=repository, code=3)
    assert "chain.json is a pointer of Git LFS to it; run `git lfs pull`" in shown


def test_tables_find_their_models_beside_them(repository: Path) -> None:
    """Rows whose paths lead nowhere are checked all the same."""
    printed("certify", "chain.json", "-k", "2", "-q", "-o", "table.json", cwd=repository)
    (repository / "tables").mkdir()
    shutil.move(repository / "table.json", repository / "tables" / "table.json")
    shutil.move(repository / "chain.json", repository / "renamed.json")
    assert run("verify", "tables/table.json", cwd=repository / "tables").returncode == 2
    assert run("verify", "table.json", cwd=repository / "tables").returncode == 3
    assert run("verify", "--beside", "table.json", cwd=repository / "tables").returncode == 0


def test_measured_costs_are_found_as_well(tmp_path: Path) -> None:
    """A plan made with --costs needs them again; without them it is unchecked, not malformed."""
    write_model(tmp_path / "chain.json")
    costs = json.loads((tmp_path / "chain.json").read_text())
    for op in costs["ops"]:
        op["work"] = 5
    (tmp_path / "measured.json").write_text(json.dumps(costs))
    printed("partition", "chain.json", "--costs", "measured.json", "-k", "2", "-q", "-o", "plan.json", cwd=tmp_path)
    assert run("verify", "--beside", "plan.json", cwd=tmp_path).returncode == 0
    (tmp_path / "measured.json").unlink()
    done = run("verify", "--beside", "plan.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    assert "its measured costs are not here" in done.stdout


def test_training_plans_are_found_beside_their_models(tmp_path: Path) -> None:
    """Those of every planner; with their models gone, only the bandwidth asked for is compared."""
    branches, chain = tmp_path / "branches.json", tmp_path / "chain.json"
    branches.write_text(write_training_model(multi_branch_model("mmt", branches=2, layers=2)))
    write_model(chain)
    system = ("--devices", "2", "--memory", "16GiB", "--bandwidth", "12.5GB/s", "--batch-size", "8")
    plans = {
        "piper": (branches, *system, "--micro-batch-size", "1"),
        "graphpipe": (branches, "--planner", "graphpipe", *system),
        "pfeife": (chain, "--planner", "pfeife", "--devices", "2", "--micro-batches", "2", "--bandwidth", "12.5GB/s"),
        "impossible": (branches, "--devices", "2", "--memory", "1KiB", *system[4:], "--micro-batch-size", "1"),
    }
    for name, arguments in plans.items():
        made = run("plan", *arguments, "-q", "-o", tmp_path / f"{name}.plan.json", cwd=tmp_path)
        assert (made.returncode, made.stderr) == (0, "") or name == "impossible", made.stderr
    found = document_of("--beside", ".", cwd=tmp_path)
    assert {file["file"].split(".")[0]: file["exit_code"] for file in found["files"]} == dict.fromkeys(plans, 0)
    branches.unlink()
    chain.unlink()
    gone = document_of("--beside", ".", cwd=tmp_path)
    assert [file["exit_code"] for file in gone["files"]] == [3] * len(plans)
    assert all("nothing could be checked" in file["verification"]["sentence"] for file in gone["files"])
    held = document_of("--beside", ".", "--bandwidth", "12.5GB/s", cwd=tmp_path)
    assert [file["exit_code"] for file in held["files"]] == [3] * len(plans)
    other = document_of("--beside", ".", "--bandwidth", "13GB/s", cwd=tmp_path)
    assert [file["exit_code"] for file in other["files"]] == [1] * len(plans)


def test_names_are_no_sections_of_their_own(repository: Path) -> None:
    """A file whose name has a line break in it stays on its line."""
    name = "x\n== valid.plan.json"
    shutil.copy(repository / "false.plan.json", repository / name)
    done = run("verify", "--beside", name, cwd=repository)
    assert [line for line in done.stdout.splitlines() if line.startswith("== valid")] == []
    assert done.returncode == 1
