"""Pages of training plans: ``mtpp plan --report`` makes that of ``mtpp report``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from processes import run

pytest.importorskip("bokeh")

SIZES = ("--batch-size", "8", "--micro-batch-size", "1", "--memory", "16GiB", "--bandwidth", "10GB/s")


def without_origin(page: Path) -> str:
    """Return a page without its time and the command that made it."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|mtpp (?:plan|report) [^<]*", "", page.read_text())


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("transformer-training", ("--devices", "2", *SIZES)),
        ("mmt", ("--planner", "graphpipe", "--devices", "2", "--batch-size", "8", *SIZES[4:])),
        ("transformer", ("--planner", "pfeife", "--devices", "2", "--micro-batches", "4")),
    ],
)
def test_the_page_is_that_of_the_report(kind: str, more: tuple[str, ...], tmp_path: Path) -> None:
    """For each kind of plan, with what is proven said on standard error."""
    size = () if kind == "mmt" else ("--layers", "2")
    model = tmp_path / "model.json"
    model.write_text(run("generate", kind, *size).stdout)
    done = run("plan", "model.json", *more, "-o", "plan.json", "--report", "one.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "one.html: valid" in done.stderr
    assert run("report", "plan.json", "-o", "two.html", "--model", "model.json", cwd=tmp_path).returncode == 0
    assert without_origin(tmp_path / "one.html") == without_origin(tmp_path / "two.html")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-", "--devices", "2", "--report", "page.html"), "give a file in place of standard input"),
        (("model.json", "--devices", "2", "--sweep", "--report", "page.html"), "leave out --sweep"),
        (("model.json", "--devices", "2", "--report", "-"), "name it report.html"),
        (("model.json", "--devices", "2", "--open"), "give --report FILE too"),
        (("model.json", "--devices", "2", "--title", "Mine"), "give --report FILE too"),
    ],
)
def test_what_has_no_page_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Before any work is done."""
    (tmp_path / "model.json").write_text("{}")
    done = run("plan", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (tmp_path / "page.html").exists()
