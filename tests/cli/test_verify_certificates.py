"""``mtpp verify`` on tables of certificates and on forged documents: rows checked, exit codes, what is false."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from certificate_documents import certificate_row, table_to_write
from forged_documents import edited
from graph_strategies import LINK, chain, random_graph
from plan_documents import plan_document
from processes import printed, refused, run
from seeds import sampled
from verified_documents import CASES

from mtpp.formats.graphs.native import write_native

GRAPHS = {
    "chain.json": chain([10, 20, 30, 40], [1, 2, 3], "ms"),
    "random.json": random_graph(5, 6, time_unit="us"),
}


def write_models(folder: Path) -> dict[str, str]:
    """Write the graphs as files and return their SHA-256."""
    folder.mkdir(exist_ok=True)
    for name, graph in GRAPHS.items():
        (folder / name).write_text(write_native(graph))
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in GRAPHS}


def write_table(table: Path, digests: dict[str, str], **changes: Any) -> Path:
    """Write a table with rows for 1 and 2 stages of each graph; *changes* to the second row."""
    rows = [
        certificate_row(graph, LINK, k, [0] * graph.op_count, path=f"models/{name}", sha256=digests[name])
        for name, graph in GRAPHS.items()
        for k in (1, 2)
    ]
    document = table_to_write(rows)
    document["rows"][1].update(changes)
    table.write_text(json.dumps(document))
    return table


def test_models_are_found_where_the_rows_say(tmp_path: Path) -> None:
    """Seen from the table's folder, and from the current one."""
    output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"))
    lines = printed("verify", output, stderr="").splitlines()
    assert [line.split()[0] for line in lines[:-2]] == ["ok"] * 8 + ["–"]
    assert lines[-3].startswith("–   4 rows: system ")
    assert "models/chain.json" in lines[1]
    assert "k = 2" in lines[1]
    assert "partition and ratio; simple: " in lines[1]
    assert lines[-1] == "valid: all 4 rows hold, every bound checked again"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    output.rename(elsewhere / "table.json")
    assert run("verify", elsewhere / "table.json", cwd=tmp_path).returncode == 0


def test_models_are_found_by_what_is_in_them(tmp_path: Path) -> None:
    """Among files and in folders, under any name, beside files that are something else."""
    write_models(tmp_path / "models")
    digests = write_models(tmp_path / "others")
    output = write_table(tmp_path / "table.json", digests)
    (tmp_path / "others" / "chain.json").rename(tmp_path / "others" / "another name.json")
    (tmp_path / "others" / "notes.txt").write_text("no graph")
    for name in GRAPHS:
        (tmp_path / "models" / name).write_text(write_native(GRAPHS["chain.json"]).replace("10", "11"))
    assert run("verify", output).returncode == 1
    assert run("verify", output, "--model", tmp_path / "others").returncode == 0
    files = [argument for path in sorted((tmp_path / "others").iterdir()) for argument in ("--model", path)]
    assert run("verify", output, *files).returncode == 0


def test_a_missing_model_leaves_its_rows_unchecked_and_a_changed_one_fails_them(tmp_path: Path) -> None:
    """The other rows are checked all the same."""
    output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"))
    (tmp_path / "models" / "random.json").unlink()
    shown = printed("verify", output, code=3)
    assert [line.split()[0] for line in shown.splitlines()[:4]] == ["ok", "ok", "unchecked", "unchecked"]
    assert "no model with its SHA-256" in shown
    assert shown.splitlines()[-1] == (
        "NOT PROVEN: 2 of 4 rows and 4 of 4 means merely claim a part of what they say; 2 of 4 rows are proven"
    )
    assert run("verify", output, "--accept-unchecked").returncode == 0
    (tmp_path / "models" / "random.json").write_text(write_native(GRAPHS["chain.json"]))
    assert "the row was made from SHA-256" in printed("verify", output, code=1)


def test_a_false_row_fails_and_says_why(tmp_path: Path) -> None:
    """One line says which row and what is wrong with it; JSON has all checks."""
    digests = write_models(tmp_path / "models")
    output = write_table(tmp_path / "table.json", digests, optimal=True)
    shown = printed("verify", output, code=1)
    assert "optimal: the row says true, but the lower bound is below the bottleneck" in shown.splitlines()[1]
    report = json.loads(printed("verify", output, "--format", "json", code=1))
    assert (report["format"], report["version"], report["valid"]) == ("mtpp-verification", 2, False)
    assert [row["valid"] for row in report["rows"]] == [True, False, True, True]
    assert (report["rows"][1]["path"], report["rows"][1]["k"]) == ("models/chain.json", 2)
    assert [check["verdict"] for check in report["summary"]] == ["ok", "ok", "false", "ok"]


def test_false_means_fail_the_table(tmp_path: Path) -> None:
    """Rows may be true and what is said of all of them not."""
    output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"))
    document = json.loads(output.read_text())
    document["summary"][1]["geomean_ratio"] = 1.0
    output.write_text(json.dumps(document))
    shown = printed("verify", output, code=1)
    assert "false  means for k = 2: geomean_ratio is " in shown
    assert shown.splitlines()[-1] == "INVALID: 1 of 4 means have something false in them"


def test_a_required_tier_holds_for_every_row(tmp_path: Path) -> None:
    """Each row that does not reach it is named."""
    digests = write_models(tmp_path / "models")
    output = write_table(tmp_path / "table.json", digests, tier="solver", lower_method="exact-mip", lower_proof={})
    document = json.loads(output.read_text())
    document["summary"] = []
    row = document["rows"][1]
    row["bounds"] |= {"exact-mip": row["lower"]}
    output.write_text(json.dumps(document))
    shown = printed("verify", output, code=3)
    assert "rests on the MIP solver's word" in shown
    assert "lower bound, ratio and optimal unchecked" in shown
    assert run("verify", output, "--require-tier", "solver").returncode == 3
    done = run("verify", output, "--require-tier", "exact")
    assert done.returncode == 1
    expected = (
        "unmet: --require-tier exact: models/chain.json, k = 2: the bound is of tier solver, and was not checked\n"
    )
    assert done.stderr == expected


def test_a_compressed_table_and_one_from_standard_input(tmp_path: Path) -> None:
    """Tables are read like all inputs; without a folder of its own, paths are seen from the current one."""
    output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"))
    (tmp_path / "table.json.gz").write_bytes(gzip.compress(output.read_bytes()))
    assert run("verify", tmp_path / "table.json.gz").returncode == 0
    assert run("verify", "-", stdin=output.read_bytes(), cwd=tmp_path).returncode == 0


def test_a_table_without_rows_is_none(tmp_path: Path) -> None:
    """It proves nothing, which is not what passing a check means."""
    (tmp_path / "table.json").write_text(json.dumps(table_to_write([])))
    done = run("verify", tmp_path / "table.json")
    assert (done.returncode, done.stdout.strip()) == (1, "INVALID: the table has no rows")


@pytest.mark.slow
def test_what_certify_and_bound_write_is_true(tmp_path: Path) -> None:
    """Rows of both commands pass with their means and those of single bounds; with another k none does."""
    folder = tmp_path / "models"
    folder.mkdir()
    for seed in range(3):
        (folder / f"{seed}.json").write_text(write_native(random_graph(seed, 14, time_unit="ns", largest_cost=30)))
    for command in ("certify", "bound"):
        bounds = ("--bounds", "simple,node,crossings,fraction,configuration", "--time-limit", "2")
        printed(command, folder, "-k", "2,5", *bounds, "-q", "-o", tmp_path / "table.json")
        shown = printed("verify", tmp_path / "table.json", "--model", folder)
        assert len([line for line in shown.splitlines() if line.startswith("ok ")]) == 6 + 2 + 2
        document = json.loads((tmp_path / "table.json").read_text())
        assert len(document["summary"]) == 2
        for row in document["rows"]:
            row["k"] = 7 - row["k"]
            row["lower"] += row["lower"]
        (tmp_path / "false.json").write_text(json.dumps(document))
        shown = printed("verify", tmp_path / "false.json", "--model", folder, code=1)
        assert shown.splitlines()[-1].startswith("INVALID: 6 of 6 rows")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_table_names_no_device_and_no_pipe(tmp_path: Path) -> None:
    """They may never come to an end; a row that names one has no model."""
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "pipe", "models"):
        changes: dict[str, Any] = {"path": path, "sha256": "0" * 64}
        output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"), **changes)
        shown = printed("verify", output, "--time-limit", "60", code=3)
        assert "no model with its SHA-256, nor a file where it says" in shown.splitlines()[1]


def test_rows_without_a_model_are_held_to_the_user_s_system(tmp_path: Path) -> None:
    """What a row says of its system is false whether or not the rest can be checked."""
    changes: dict[str, Any] = {"path": "nowhere", "sha256": "0" * 64}
    output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"), **changes)
    printed("verify", output, "--accept-unchecked")
    shown = printed("verify", output, "--accept-unchecked", "--bandwidth", "3GB/s", code=1)
    assert shown.splitlines()[1].startswith("false")


@pytest.mark.slow
def test_time_ends_tables_of_many_rows_and_means(tmp_path: Path) -> None:
    """What is left unchecked takes next to no time, whatever the rows and the means multiply to."""
    output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"))
    document = json.loads(output.read_text())
    entry = document["summary"][0]
    document["rows"] *= 8000  # which take three times as long as there is
    document["summary"] = [{**entry, "k": k} for k in range(1, 8000)]
    output.write_text(json.dumps(document))
    done = run("verify", output, "--time-limit", "5", "--format", "json")
    if done.returncode == 1:  # on a slow machine it passed while reading
        assert "passed while reading" in done.stderr
        return
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (3, "unchecked")
    assert (len(report["rows"]), len(report["summary"])) == (32_000, 7999)
    assert report["rows"][-1]["checks"][-1] == {"name": "optimal", "verdict": "unchecked", "detail": "out of time"}


def test_a_dimension_that_no_row_has_is_bad_input(tmp_path: Path) -> None:
    """It would hold nothing to anything, unseen."""
    output = write_table(tmp_path / "table.json", write_models(tmp_path / "models"))
    said = refused("verify", output, "--dim", "batch=8")
    assert said == "error: --dim: no row has a dimension 'batch'; leave it out, or correct it\n"


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
@pytest.mark.parametrize(("seeds", "edits"), [(range(40), 2), (sampled(range(1000, 1400), 200), 5)])
def test_no_edit_deceives(seeds: range, edits: int) -> None:
    """True documents of any kind are accepted; no row of an edited one passes that brute force does not confirm."""
    assert sum(check(seed, edits) for seed in seeds) == edits * len(seeds)


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
    shown = printed("verify", forged, "--model", model, "--system", "reference", code=1)
    rows = [" ".join(line.split()) for line in shown.splitlines()]
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
    said = refused("verify", tmp_path / "plan.json")
    assert place in said
    assert said.count("\n") == 1


def test_truncated_and_undecodable_plans_are_bad_input(tmp_path: Path) -> None:
    """Wherever a plan ends too early, and whatever its bytes are."""
    data = plan_text().encode()
    for cut in (1, len(data) // 3, len(data) // 2, len(data) - 1):
        (tmp_path / "plan.json").write_bytes(data[:cut])
        refused("verify", tmp_path / "plan.json")
    (tmp_path / "plan.json").write_bytes(data.replace(b"anneal", b"an\xffneal"))
    assert "UTF-8" in refused("verify", tmp_path / "plan.json")


def test_documents_too_large_for_the_memory_are_refused(tmp_path: Path) -> None:
    """A few bytes of text can stand for many of memory."""
    text = plan_text().replace('"proof": {', '"proof": {"more": [' + "[]," * 12_000_000 + "[]], ", 1)
    (tmp_path / "plan.json").write_text(text)
    assert "would take more than" in refused("verify", tmp_path / "plan.json")


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
        shown = printed("verify", file, "--model", model)
        assert "\x1b" not in shown
        assert r"reference\nok  optimal  proven\x1b[2J\n\nvalid, proven optimal" in shown
        assert len([line for line in shown.splitlines() if line.startswith("valid")]) == 1


def test_help_lists_the_exit_codes() -> None:
    """As a sentence: no mark of the formatter is left in it."""
    shown = run("verify", "--help").stdout
    assert "\\b" not in shown
    assert "Exit codes: 0 every claim" in shown
