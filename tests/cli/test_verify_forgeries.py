"""``mtpp verify`` against forgeries: files that were made to deceive, and one edit of anything true."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from forged_documents import edited
from graph_strategies import chain
from plan_documents import plan_document
from processes import run
from verified_documents import CASES

from mtpp.formats.graphs.native import write_native
from mtpp.inference.system import System

LINK = System("link", 10**12, 10**11, 10**9)


def check(seed: int, edits: int) -> int:
    """Draw a true document and edit it; return how many edited ones were looked at."""
    rng = random.Random(seed)
    kind = rng.choice(list(CASES))
    case = CASES[kind](rng)
    code, passed = case.verify(case.document)
    assert code == (3 if case.by_solver else 0), (seed, kind)
    assert case.untrue(case.document, passed) == [], (seed, kind)
    for _ in range(edits):
        edit, wrong = edited(case.document, rng)
        code, passed = case.verify(wrong)
        assert case.untrue(wrong, passed) == [], (seed, kind, edit)
        assert code in (0, 1, 2, 3)
    return edits


@pytest.mark.slow
def test_no_edit_deceives() -> None:
    """True documents of any kind are accepted; no row of an edited one passes that brute force does not confirm."""
    assert sum(check(seed, 2) for seed in range(40)) == 80


@pytest.mark.slow
def test_no_edit_of_thousands_deceives() -> None:
    """The same at length."""
    assert sum(check(seed, 5) for seed in range(1000, 1400)) == 2000


@pytest.mark.parametrize("name", ["forged_enum.json", "forged_solver.json"])
@pytest.mark.parametrize("options", [(), ("--shallow",)])
def test_forged_plans_claim_nothing(name: str, options: tuple[str, ...], shared_data: Path, checkout: Path) -> None:
    """A bound without a proof is no bound, and one by a MIP solver proves no optimum."""
    model = checkout / "datasets" / "samples" / "resnet50.onnx"
    done = run("verify", shared_data / "trust" / name, "--model", model, *options)
    assert done.returncode in (1, 2)
    if name == "forged_enum.json":
        assert "/lower_bound/proof/merges: missing key" in done.stderr
        assert done.stdout == ""
        return
    verdicts = {line[20:].split("  ")[0]: line.split()[0] for line in done.stdout.splitlines()[:-2]}
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert not any(row.startswith(("ok lower bound", "ok ratio", "ok optimal")) for row in rows), verdicts
    assert "false optimal the plan says true, but a bound of tier solver is no proof" in rows
    assert rows[-1] == "INVALID: optimal is false; not checked: lower bound and ratio"


def test_a_forged_system_is_shown_and_held_to_the_user_s(shared_data: Path, checkout: Path) -> None:
    """The name of a preset with another bandwidth."""
    model = checkout / "datasets" / "samples" / "resnet50.onnx"
    forged = shared_data / "trust" / "forged_solver.json"
    done = run("verify", forged, "--model", model, "--system", "reference")
    assert done.returncode == 1
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "false bandwidth the plan says 1 GB/s, it has to be 25 GB/s" in rows


def plan_text() -> str:
    """Return a true plan that embeds its graph."""
    plan: dict[str, Any] = plan_document(chain([4, 1], [2]), LINK, 2, [0, 1], embed=True)
    return json.dumps(plan, default=float)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"k": 2', '"k": 1e999999999', "1e999999999 is out of range"),
        ('"k": 2', '"k": ' + "9" * 5000, "/k"),
        ('"k": 2', '"k": 2, "k": 2', "duplicate key 'k'"),
        ('"ratio": 1.5', '"ratio": NaN', "/ratio"),
        ('"ratio": 1.5', '"ratio": Infinity', "/ratio"),
        ('"proof": {', '"proof": {"deep": ' + "[" * 5000 + "]" * 5000 + ", ", "nested"),
        ('"anneal"', '"\\ud800"', "/algorithm"),
        ('"bottleneck": 6', '"bottleneck": "6"', "/bottleneck"),
        ('"stages": [', '"stages": [3, ', "/stages/0"),
    ],
    ids=str,
)
def test_malformed_plans_name_the_place(old: str, new: str, place: str, tmp_path: Path) -> None:
    """Exit code 2, one line, no traceback."""
    text = plan_text()
    assert old in text
    (tmp_path / "plan.json").write_text(text.replace(old, new, 1))
    done = run("verify", tmp_path / "plan.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert place in done.stderr
    assert done.stderr.count("\n") == 1


def test_truncated_and_undecodable_plans_are_bad_input(tmp_path: Path) -> None:
    """Wherever a plan ends too early, and whatever its bytes are."""
    data = plan_text().encode()
    for cut in (1, len(data) // 3, len(data) // 2, len(data) - 1):
        (tmp_path / "plan.json").write_bytes(data[:cut])
        done = run("verify", tmp_path / "plan.json")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    (tmp_path / "plan.json").write_bytes(data.replace(b"anneal", b"an\xffneal"))
    done = run("verify", tmp_path / "plan.json")
    assert done.returncode == 2
    assert "UTF-8" in done.stderr


def test_documents_too_large_for_the_memory_are_refused(tmp_path: Path) -> None:
    """A few bytes of text can stand for many of memory."""
    text = plan_text().replace('"proof": {', '"proof": {"more": [' + "[]," * 12_000_000 + "[]], ", 1)
    (tmp_path / "plan.json").write_text(text)
    done = run("verify", tmp_path / "plan.json")
    assert done.returncode == 2
    assert "would take more than" in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs signals")
def test_time_ends_the_reading(tmp_path: Path) -> None:
    """Exit code 1 and one line."""
    (tmp_path / "plan.json").write_text(plan_text())
    done = run("verify", tmp_path / "plan.json", "--time-limit", "0.001")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "the time limit of 0.001 s passed while reading; raise --time-limit" in done.stderr


FORGED_ROWS = "reference\nok  optimal  proven\x1b[2J\n\nvalid, proven optimal"


def test_no_name_makes_rows_of_its_own(tmp_path: Path) -> None:
    """Ends of lines and control characters in what a document chose are shown escaped, in a plan and in a table."""
    model, plan, table = tmp_path / "g.json", tmp_path / "plan.json", tmp_path / "table.json"
    model.write_text(write_native(chain([3, 1, 2], [1, 1])))
    assert run("partition", model, "-k", "2", "-o", plan).returncode == 0
    assert run("certify", model, "-k", "2", "-o", table).returncode == 0
    for file in (plan, table):
        document = json.loads(file.read_text())
        claims = document["rows"][0] if "rows" in document else document
        claims["system"]["name"] = FORGED_ROWS
        if "path" in claims:
            claims["path"] = FORGED_ROWS
        file.write_text(json.dumps(document))
        done = run("verify", file, "--model", model)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        assert r"reference\nok  optimal  proven\x1b[2J\n\nvalid, proven optimal" in done.stdout
        assert len([line for line in done.stdout.splitlines() if line.startswith("valid")]) == 1


def test_help_lists_the_exit_codes() -> None:
    """As a sentence: no mark of the formatter is left in it."""
    shown = run("verify", "--help").stdout
    assert "\\b" not in shown
    assert "Exit codes: 0 every claim" in shown
