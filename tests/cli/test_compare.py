"""``mtpp compare`` as a process: means by hand, formats, folders, bad input, limits, interruption."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from math import sqrt
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from graph_strategies import chain, random_graph
from onnx_text import built
from plans_beside_models import without_times
from processes import LONGEST_S, MTPP, ROOT, environment, interrupted, refused, run, run_afresh

from mtpp.formats.graphs.native import write_native
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.registry import PARTITIONERS, PartitionerEntry, own_rule
from mtpp.solvers.variants import default_variants

ROW_KEYS = [
    "model", "source", "ops", "k", "algorithm", "time_unit", "ticks_per_unit", "bottleneck", "simple_bound", "ratio",
    "evaluations", "seconds", "stopped", "found_by", "problem",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of two chains and two files that are no graphs.

    In 2 stages, ``a`` takes 61 of at least 50 ms and ``b`` 25 of at least 15; in 4 stages, 41 of 40 ms and 20 of 10.
    """
    path = tmp_path / "models"
    path.mkdir()
    (path / "b.json").write_text(write_native(chain([10, 10, 10], [5, 5])))
    (path / "a.json").write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    (path / "notes.txt").write_text("[not JSON")
    (path / "config.json").write_text('{"layers": 12}')
    return path


def _document(*arguments: str | Path, start: Callable[..., subprocess.CompletedProcess[str]] = run) -> dict[str, Any]:
    done = start("compare", *arguments, "-q", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_table_of_geometric_means(folder: Path) -> None:
    """Ratios 61/50 and 25/15, and 41/40 and 20/10, each with the square root of their product."""
    done = run("compare", folder, "-k", "2,4", "--algorithms", "slice,random-1", "-j", "1")
    assert done.returncode == 0
    assert done.stderr == f"warning: {folder}: not graphs, left out: config.json, notes.txt\n"
    means = [f"{sqrt(61 / 50 * 25 / 15):.3f}", f"{sqrt(41 / 40 * 20 / 10):.3f}"]
    lines = done.stdout.splitlines()
    assert lines[0] == "Bottleneck / simple lower bound: geometric means over 2 graphs, 7 ops in all"
    assert lines[1].split("  ") == ["algorithm", "k = 2", "k = 4", "seconds"]
    for line, name in zip(lines[2:4], ("slice", "random-1"), strict=True):
        assert line.split()[:-1] == [name, *means]
        assert re.fullmatch(r"\d+\.\d+", line.split()[-1])
    assert lines[4:] == [
        "",
        "simple bound  max(largest op, work / k); a ratio of 1 is optimal, lower is better",
        "seconds       of search, in all runs that the means rest on, on 1 thread",
        "limits        seed 0",
        "assumptions   system reference: link 25 GB/s, no fast-memory limit",
    ]


def test_json_is_the_documented_contract(folder: Path, tmp_path: Path) -> None:
    """Stable keys, one row per run and one mean per algorithm and k; ``-o`` writes the same."""
    output = tmp_path / "comparison.json"
    arguments = (folder / "a.json", folder / "b.json", "-k", "2,4", "--algorithms", "slice,random-3", "--seed", "7")
    document = _document(*arguments, "-o", output)
    assert without_times(json.loads(output.read_text())) == without_times(document)
    assert list(_document(*arguments)) == [
        "format", "version", "system", "k", "algorithms", "seed", "time_limit_s", "work_limit", "interrupted", "models",
        "rows", "summary", "elapsed_s",
    ]  # fmt: skip
    assert (document["format"], document["version"], document["seed"]) == ("mtpp-comparison", 1, 7)
    assert (document["k"], document["algorithms"]) == ([2, 4], ["slice", "random-3"])
    assert [(model["name"], model["ops"], model["tensors"]) for model in document["models"]] == [
        ("chain", 4, 3),
        ("chain", 3, 2),
    ]
    rows = document["rows"]
    assert list(_document(*arguments)["rows"][0]) == ROW_KEYS
    assert [(Path(row["source"]).name, row["k"], row["algorithm"]) for row in rows] == [
        (name, k, algorithm) for name in ("a.json", "b.json") for k in (2, 4) for algorithm in ("slice", "random-3")
    ]
    first = rows[0]
    assert (first["bottleneck"], first["simple_bound"], first["ratio"]) == (61 * 10**9, 50 * 10**9, 1.22)
    assert (first["time_unit"], first["ticks_per_unit"]) == ("ms", 10**9)
    assert (first["evaluations"], first["stopped"], first["found_by"], first["problem"]) == (
        1, "finished", "slice", None,
    )  # fmt: skip
    assert [(mean["algorithm"], mean["k"], mean["models"]) for mean in document["summary"]] == [
        ("slice", 2, 2), ("slice", 4, 2), ("random-3", 2, 2), ("random-3", 4, 2),
    ]  # fmt: skip
    assert document["summary"][0]["geomean_ratio"] == pytest.approx(sqrt(61 / 50 * 25 / 15), rel=1e-14)


def test_csv_has_a_line_per_run(folder: Path) -> None:
    """Ticks, bound, ratio, evaluations, seconds and what stopped it; the bound is not rounded."""
    done = run("compare", folder / "b.json", "-k", "2,4,7", "--algorithms", "slice", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["k"], row["bottleneck"], row["simple_bound"], row["ratio"]) for row in rows] == [
        ("2", "25", "15", str(25 / 15)), ("4", "20", "10", "2.0"), ("7", "20", "10", "2.0"),
    ]  # fmt: skip
    assert {(row["model"], row["ops"], row["algorithm"], row["stopped"], row["evaluations"]) for row in rows} == {
        ("chain", "3", "slice", "finished", "1")
    }
    done = run("compare", folder / "a.json", "-k", "3", "--algorithms", "slice", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (float(row["simple_bound"]), float(row["ratio"])) == (40 * 10**9, 41 / 40)


def test_markdown_marks_the_best(tmp_path: Path) -> None:
    """The paper's layout as a pipe table; of two rows the better one is bold in each column, of equal ones both."""
    model = tmp_path / "model.json"
    model.write_text(write_native(random_graph(3, 40)))
    arguments = ("compare", model, "-k", "1,4", "--algorithms", "slice,random-200", "--format", "markdown")
    lines = run(*arguments).stdout.splitlines()
    assert lines[0] == "### Bottleneck / simple lower bound: random, 40 ops"
    assert lines[2:4] == ["| algorithm | k = 1 | k = 4 | seconds |", "|---|---:|---:|---:|"]
    assert re.fullmatch(r"\| slice \| \*\*1\.000\*\* \| \d\.\d{3} \| [\d.]+ \|", lines[4])
    assert re.fullmatch(r"\| random-200 \| \*\*1\.000\*\* \| \*\*\d\.\d{3}\*\* \| [\d.]+ \|", lines[5])
    assert "- **limits**: seed 0" in lines


def test_folders_give_their_graphs_by_name(folder: Path) -> None:
    """Compressed files and files without a suffix are found; hidden ones, subfolders and weights are not looked for."""
    (folder / "d.json.gz").write_bytes(gzip.compress(write_native(chain([1, 2], [1])).encode()))
    (folder / "c").write_text(write_native(chain([1, 2], [1])))
    (folder / ".hidden.json").write_text("{")
    (folder / "more").mkdir()
    (folder / "more" / "e.json").write_text("{")
    (folder / "weights.bin").write_bytes(b"\x00" * 5000)
    done = run("compare", folder, folder / "a.json", "-k", "2", "--algorithms", "slice", "--format", "csv")
    assert [Path(row["source"]).name for row in csv.DictReader(io.StringIO(done.stdout))] == [
        "a.json", "b.json", "c", "d.json.gz",
    ]  # fmt: skip
    assert done.stderr == f"warning: {folder}: not graphs, left out: config.json, notes.txt, weights.bin\n"


def test_the_same_file_counts_once(folder: Path) -> None:
    """However its path is written; the first time decides the order, and standard input may be one of them."""
    paths = (folder / "b.json", folder, folder / ".." / "models" / "b.json", "-", "-")
    text = write_native(chain([3], [])).encode()
    done = run("compare", *paths, "-k", "2", "--algorithms", "slice", "--format", "csv", "-q", stdin=text)
    assert [row["source"] for row in csv.DictReader(io.StringIO(done.stdout))] == [
        str(folder / "b.json"), str(folder / "a.json"), "'-",
    ]  # fmt: skip


def _symbolic_onnx(path: Path, dim: str) -> None:
    onnx.save(built("y = Relu(x)", {"x": [dim, 1024]}, {"y": [dim, 1024]}), path)


def test_each_model_takes_the_dimensions_it_has(folder: Path, tmp_path: Path) -> None:
    """``--dim`` serves the models that have it; one that none of them has is a mistake."""
    _symbolic_onnx(folder / "c.onnx", "batch")
    _symbolic_onnx(folder / "d.onnx", "rows")
    dims = ("--dim", "batch=4", "--dim", "rows=2")
    document = _document(folder, "-k", "2", "--algorithms", "slice", *dims)
    assert [model["dims"] for model in document["models"]] == [{}, {}, {"batch": 4}, {"rows": 2}]
    said = refused("compare", folder, "-k", "2", "--dim", "batch=4", "-q")
    assert said.startswith(f"error: {folder / 'd.onnx'}: ")
    assert "--dim rows=1" in said
    said = refused("compare", folder, "-k", "2", *dims, "--dim", "depth=4", "-q")
    assert said.startswith("error: --dim: no model has a dimension 'depth'; ")


def test_repeated_stage_counts_count_once(folder: Path) -> None:
    """Columns stand in the order given."""
    document = _document(folder / "a.json", "-k", "4, 2,4", "--algorithms", "slice")
    assert document["k"] == [4, 2]
    assert len(document["rows"]) == 2


def test_broken_files_are_named_before_anything_is_run(folder: Path, tmp_path: Path) -> None:
    """A broken graph in a folder, a file that is none, and a folder without any are errors, not gaps."""
    (tmp_path / "empty").mkdir()
    for path, words in (
        (tmp_path / "empty", ("no file in this folder",)),
        (tmp_path / "missing.json", ("no such file",)),
        (folder / "config.json", ("not a graph",)),
    ):
        said = refused("compare", folder / "a.json", path, "-k", "2", "-v")
        assert said.startswith(f"error: {path}: ")
        assert all(word in said for word in words)
    (folder / "z.json").write_text('{"format": "mtpp-graph", "version": 1')
    assert refused("compare", folder, "-k", "2", "-v").startswith(f"error: {folder / 'z.json'}: line 1, column ")
    (tmp_path / "empty" / "notes.md").write_text("hello")
    assert "no graph in this folder, only notes.md" in run("compare", tmp_path / "empty", "-k", "2").stderr
    assert run("compare").stderr == "error: Missing argument 'PATH...'; see `mtpp compare --help`\n"


def test_models_without_work_are_left_out(folder: Path) -> None:
    """Their bound is 0; with nothing else there is nothing to compare."""
    idle = folder / "idle.json"
    idle.write_text(write_native(chain([0, 0], [3])))
    done = run("compare", folder / "a.json", idle, "-k", "2", "--algorithms", "slice")
    assert done.returncode == 0
    assert done.stderr == f"warning: {idle}: left out: no op takes time, so its simple bound is 0\n"
    assert done.stdout.startswith("Bottleneck / simple lower bound: chain, 4 ops\n")
    said = refused("compare", idle, "-k", "2", "--algorithms", "slice")
    assert said == f"error: {idle}: no op takes time, so there is nothing to compare\n"


@pytest.mark.slow
def test_same_seed_gives_the_same_rows_for_any_jobs(random_file: Path, folder: Path) -> None:
    """Apart from the seconds, the JSON does not depend on --jobs or the seed of hashes."""
    arguments = (random_file, folder, "-k", "3,5", "--seed", "3", "--algorithms", "random-500,auto")
    one, two = (without_times(_document(*arguments, "--jobs", jobs, start=run_afresh)) for jobs in ("1", "2"))
    assert one == two


def test_the_rows_of_the_paper_by_default(chain_file: Path) -> None:
    """All that the registry has, in the paper's order, then ours; a work limit bounds each run."""
    document = _document(chain_file, "-k", "2", "--work-limit", "30")
    assert document["algorithms"] == [variant.name for variant in default_variants()]
    assert {"random-1", "random-100", "random-10000", "slice", "auto"} <= set(document["algorithms"])
    assert max(row["evaluations"] for row in document["rows"]) == 30
    assert document["work_limit"] == 30


def test_the_time_limit_is_for_each_run(random_file: Path) -> None:
    """Every run has the seconds for itself, though the process is older than that when the first begins."""
    document = _document(random_file, "-k", "2,4,5", "--algorithms", "random", "--time-limit", "0.3")
    assert [row["stopped"] for row in document["rows"]] == ["time-limit"] * 3
    assert all(row["evaluations"] > 1 for row in document["rows"])
    assert document["time_limit_s"] == 0.3


def test_verbose_notes_every_run(folder: Path) -> None:
    """One line on standard error for each."""
    done = run("compare", folder / "a.json", "-k", "1,2", "--algorithms", "slice", "-v")
    notes = done.stderr.splitlines()
    assert len(notes) == 2
    assert notes[0].startswith("chain, k = 1, slice: 100.0 ms, ratio 1.0000, 1 evaluation in ")
    assert notes[1].startswith("chain, k = 2, slice: 61.00 ms, ratio 1.2200, 1 evaluation in ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_shows_what_is_done(folder: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM give the table, exit code 130, and a row with the graphs that each column rests on."""
    big, output = tmp_path / "big.json", tmp_path / "comparison.json"
    big.write_text(write_native(random_graph(11, 300)))
    command = ("compare", big, folder / "a.json", "-k", "1,8", "--algorithms", "slice,random", "--time-limit", "120")
    code, stdout, stderr = interrupted(*command, "-o", output, after="random, k = 8, slice: ", number=number)
    assert code == 130
    done = re.search(r"warning: interrupted after (\d) of 8 runs\n", stderr)
    assert done is not None
    lines = [line.split() for line in stdout.splitlines()]
    assert lines[2][:3] == ["slice", "1.000", "–"]
    assert lines[3][:3] == ["random", "1.000", "–"]
    assert lines[4] == ["graphs", "1", "0"]
    assert (
        f"interrupted   after {done[1]} of 8 runs; a column rests on the graphs that all algorithms finished" in stdout
    )
    document = json.loads(output.read_text())
    assert document["interrupted"] is True
    assert len(document["rows"]) == int(done[1])
    assert {row["stopped"] for row in document["rows"][3:]} <= {"interrupted"}


def test_a_terminal_sees_the_progress(folder: Path) -> None:
    """On standard error alone, and gone at the end; standard output holds the table as it is without a terminal."""
    pty = pytest.importorskip("pty")
    arguments = ("compare", folder / "a.json", "-k", "2", "--algorithms", "slice,random-5", "--format", "csv")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*MTPP, *map(str, arguments)], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    shown: list[bytes] = []

    def watch() -> None:
        with suppress(OSError):  # which is how a terminal says that nobody writes to it any more
            while piece := os.read(ours, 1 << 16):
                shown.append(piece)

    watcher = Thread(target=watch)  # a terminal holds a few seconds of progress; compiling takes longer
    watcher.start()
    stdout, _ = process.communicate(timeout=LONGEST_S)
    watcher.join()
    os.close(ours)
    seen = b"".join(shown).decode()
    assert "chain · k = 2 · random-5" in seen
    assert "k = 2 · " not in stdout
    assert len(stdout.splitlines()) == 3


def test_rules_that_do_not_fit_say_over_how_many_graphs_they_are(tmp_path: Path) -> None:
    """A graph on which the one answer of a rule exceeds the memory counts for all others."""
    for name, sizes in (("even", (10, 10, 10, 10)), ("ragged", (15, 10, 10, 5))):
        ops = [Op(f"op{i}", 10 + 2 * i, param_bytes=size) for i, size in enumerate(sizes)]
        graph = CostGraph.build(name=name, time_unit="ms", ops=ops, tensors=[])
        (tmp_path / f"{name}.json").write_text(write_native(graph))
    asked = ("compare", tmp_path, "-k", "2", "--algorithms", "downset,fill", "--stage-memory", "20B")
    done = run(*asked, "-o", tmp_path / "found")
    assert done.returncode == 0, done.stderr
    why = "none found: a stage of the rule 'fill' exceeds the memory of its device"
    said = f"{tmp_path / 'ragged.json'}: left out of the mean of fill for k = 2: {why}"
    assert done.stderr.splitlines()[-1] == f"warning: {said}"
    lines = done.stdout.splitlines()
    assert lines[2].split()[:2] == ["downset", "1.000"]
    assert lines[3].split()[:4] == ["fill", "1.154", "over", "1"]
    assert "over          so many graphs: on others the rule of the engine exceeds the memory of a device" in lines
    summary = json.loads((tmp_path / "found").read_text())["summary"]
    assert [(row["algorithm"], row["models"]) for row in summary] == [("downset", 2), ("fill", 1)]
    alone = run("compare", tmp_path / "ragged.json", *asked[2:]).stdout.splitlines()
    assert alone[3].split()[:2] == ["fill", "–"]
    assert "–             the rule of the engine exceeds the memory of a device" in alone
    assert not [line for line in alone if line.startswith("over ")]


def _fits_no_milliseconds(instance: Instance, limits: SearchLimits) -> SearchResult:
    from mtpp.errors import Infeasible

    if instance.timed:
        raise Infeasible("none found: it does not fit")
    return PARTITIONERS["slice"].load()(instance, limits)


def test_what_an_algorithm_cannot_do_is_left_out_and_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column rests on the other graph; with no graph left the exit code is 1."""
    from mtpp.cli.compare import command

    module = ModuleType("made_up_solver")
    module.partition = _fits_no_milliseconds  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(PARTITIONERS, "picky", PartitionerEntry("picky", module.__name__, own_rule))
    arguments = ["-k", "2,4", "--algorithms", "picky,slice"]
    done = CliRunner().invoke(command, [str(folder / "a.json"), str(folder / "b.json"), *arguments])
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        f"warning: {folder / 'a.json'}: left out of the means for k = 2, 4: picky: none found: it does not fit\n"
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2][:3] == ["picky", "1.667", "2.000"]
    assert lines[3][:3] == ["slice", "1.667", "2.000"]
    assert lines[4] == ["graphs", "1", "1"]
    alone = CliRunner().invoke(command, [str(folder / "a.json"), *arguments])
    assert alone.exit_code == 1
    assert [line.split()[:3] for line in alone.stdout.splitlines()[2:4]] == [["picky", "–", "–"], ["slice", "–", "–"]]
