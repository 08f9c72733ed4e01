"""``mtpp report`` and ``partition --report`` as processes: files, exit codes, and what they refuse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ROOT, environment, printed, refused, run

MADE = re.compile(r'<p id="made">.*')
"""Line on when and by which command a page was made."""

BEGINNING = '<!DOCTYPE html>\n<html lang="en">'


@pytest.fixture
def plan(chain_file: Path, tmp_path: Path) -> Path:
    """Return a plan of the chain for two stages, without its graph."""
    path = tmp_path / "plan.json"
    assert run("partition", chain_file, "-k", "2", "-o", path, "-q").returncode == 0
    return path


def test_a_page_of_a_plan(chain_file: Path, plan: Path, tmp_path: Path) -> None:
    """The page is written, what is proven is said on standard error, and standard output stays empty."""
    page = tmp_path / "page.html"
    done = run("report", plan, "--model", chain_file, "-o", page)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1].startswith(f"{page}: valid, proven optimal")
    first = page.read_text()
    assert first.startswith(BEGINNING)
    assert run("report", plan, "--model", chain_file, "-o", page, "-q").stderr == ""
    assert MADE.sub("", page.read_text()) == MADE.sub("", first)
    piped = run("report", "-", "--model", chain_file, "-o", "-", stdin=plan.read_bytes())
    assert MADE.sub("", piped.stdout) == MADE.sub("", first)


def test_a_false_plan_has_a_page_and_exit_code_1(chain_file: Path, plan: Path, tmp_path: Path) -> None:
    """The page says first that verification failed."""
    document = json.loads(plan.read_text())
    document["bottleneck"] -= 1
    plan.write_text(json.dumps(document))
    done = run("report", plan, "--model", chain_file, "-o", tmp_path / "page.html")
    assert done.returncode == 1
    assert "INVALID: bottleneck" in done.stderr
    text = (tmp_path / "page.html").read_text()
    assert text.index("Verification failed") < text.index("<main>")


@pytest.mark.slow
def test_assignments_that_are_no_partition(chain_file: Path, plan: Path, tmp_path: Path) -> None:
    """What cannot be drawn is left out and says why; stages that run backwards and stages out of range alike."""
    for stages in ([1, 1, 0, 0], [0, 0, 7, 9]):
        document = json.loads(plan.read_text())
        document["assignment"] = dict(zip(document["assignment"], stages, strict=True))
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(document))
        done = run("report", changed, "--model", chain_file, "-o", tmp_path / "page.html")
        assert (done.returncode, done.stdout) == (1, "")
        assert "Not drawn: the assignment is no partition of this model." in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_what_is_unchecked_says_so(chain_file: Path, plan: Path, tmp_path: Path) -> None:
    """Without the search, its claims are unchecked in the page, which exits 0."""
    printed("report", plan, "--model", chain_file, "--shallow", "-o", tmp_path / "page.html")
    assert 'data-verdict="unchecked"' in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_embedded_graphs_need_no_model(chain_file: Path, tmp_path: Path) -> None:
    """A plan with its graph is drawn alone; its tensors still pay for bytes under other bandwidths."""
    plan = tmp_path / "plan.json"
    assert run("partition", chain_file, "-k", "2", "-o", plan, "--embed", "-q").returncode == 0
    assert run("report", plan, "-o", tmp_path / "page.html").returncode == 0
    assert "every tensor states the time that it takes to move" in (tmp_path / "page.html").read_text()


def test_partition_writes_one_too(chain_file: Path, tmp_path: Path) -> None:
    """The table goes to standard output as ever, and the page to its file."""
    page = tmp_path / "page.html"
    shown = printed("partition", chain_file, "-k", "2", "--report", page)
    assert shown == run("partition", chain_file, "-k", "2").stdout
    assert page.read_text().startswith(BEGINNING)


@pytest.mark.slow
def test_nothing_of_the_users_is_written_over(chain_file: Path, plan: Path, tmp_path: Path) -> None:
    """Inputs, and files that are no earlier report, stay as they are."""
    notes = tmp_path / "notes.html"
    notes.write_text("<p>mine</p>")
    (tmp_path / "link.html").symlink_to(chain_file)
    before = {path: path.read_bytes() for path in (chain_file, plan, notes)}
    for target in (chain_file, plan, notes, tmp_path / "link.html"):
        assert refused("report", plan, "--model", chain_file, "-o", target).count("\n") == 1
        assert run("partition", chain_file, "-k", "2", "--report", target).returncode == 2
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(("module", "library"), [("bokeh", "Bokeh"), ("igraph", "igraph"), ("jinja2", "Jinja")])
def test_missing_libraries(chain_file: Path, plan: Path, tmp_path: Path, module: str, library: str) -> None:
    """Without the extra, one line says how to install it, before the work."""
    arguments = ["mtpp", "report", str(plan), "--model", str(chain_file), "-o", str(tmp_path / "page.html")]
    code = f"import sys; sys.modules[{module!r}] = None; sys.argv = {arguments!r}; import mtpp.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: a report needs {library} ")
    assert done.stderr.endswith("run: pip install 'mtpp[report]'\n")


@pytest.mark.slow
def test_simulations_find_their_pipeline(tmp_path: Path) -> None:
    """By its path and SHA-256; without these, or where it changed, it is unchecked, and the reason names the option."""
    simulated, page = tmp_path / "simulated.json", tmp_path / "page.html"
    pipeline = tmp_path / "towers.json"
    pipeline.write_bytes((ROOT / "datasets" / "samples" / "three-towers.json").read_bytes())
    assert run("simulate", pipeline, "-o", simulated, "-q").returncode == 0
    assert json.loads(simulated.read_text())["pipeline"]["path"] == "towers.json"
    found = run("report", simulated, "-o", page)
    assert found.stderr.splitlines()[-1] == f"{page}: valid, every figure is what simulating the pipeline again gives"
    told = "NOT PROVEN: nothing could be checked: {}; give it, and the model of a plan, with --model"
    pipeline.write_text(pipeline.read_text().replace('"name"', '"name" ', 1))
    alone = run("report", simulated, "-o", page)
    assert alone.returncode == 0
    missing = "its pipeline towers.json is not here any more, or has changed"
    assert alone.stderr.splitlines()[-1] == f"{page}: {told.format(missing)}"
    assert run("simulate", "-", "-o", simulated, "-q", stdin=pipeline.read_bytes()).returncode == 0
    alone = run("report", simulated, "-o", page)
    assert alone.stderr.splitlines()[-1] == f"{page}: {told.format('no pipeline was given to simulate again')}"
    assert "‹model›" not in page.read_text()
