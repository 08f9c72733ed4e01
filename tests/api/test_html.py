"""Results in notebooks: what the terminal shows as HTML tables, names escaped."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain
from stage_folders import bypass

import mtpp
from mtpp.datasets import sample_path
from mtpp.formats.graphs.native import to_document

NAME = "<script>alert(1)</script>"


def _cells(result: Any) -> list[str]:
    """Return the texts of a result's HTML, which has nothing but tables in it."""
    html = result._repr_html_()
    assert NAME not in html
    tags = set(re.findall(r"<(\w+)", html))
    assert tags <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    return [unescape(text) for text in re.findall(r"<(?:b|th|td)[^>]*>([^<]*)", html)]


def _graph() -> dict[str, Any]:
    graph = to_document(chain([10, 20, 5], [1, 1], "ms"))
    graph["ops"][0]["name"] = graph["tensors"][0]["producer"] = NAME
    return graph


def test_a_verification() -> None:
    """A row for each line, below the sentence."""
    document = mtpp.partition(_graph(), 2).document(embed=True)
    found = mtpp.verify(document)
    cells = _cells(found)
    assert cells[0] == found.sentence
    for row in found.rows:
        assert [row.verdict or "–", row.claim, row.detail] in [cells[i : i + 3] for i in range(len(cells))]


def test_a_verification_of_a_table(tmp_path: Path) -> None:
    """A row for each of the table's, then means and settings."""
    (tmp_path / "<b>.json").write_text(json.dumps(_graph()))
    table = mtpp.certify(tmp_path / "<b>.json", [2, 3], jobs=1)
    found = mtpp.verify(table, tmp_path / "<b>.json")
    cells = _cells(found)
    assert cells[0] == found.sentence
    assert cells.count("k = 2") == cells.count("k = 3") == 1
    assert sum(cell.startswith("2 rows: system") for cell in cells) == 1
    assert {f"{mean['name']}: {mean['detail']}" for mean in found.document()["summary"]} <= set(cells)


def test_a_split(tmp_path: Path) -> None:
    """The files of the stages, and the check below."""
    model = sample_path("resnet50")
    parts = mtpp.split(model, mtpp.partition(model, 2, algorithm="slice"), tmp_path / "stages")
    cells = _cells(parts)
    assert cells[0] == "resnet50: 122 ops in 2 stages"
    assert {"stage-0.onnx", "stage-1.onnx", "written to"} <= set(cells)


@pytest.mark.filterwarnings("ignore::mtpp.api.observer.MtppWarning")
def test_a_run_of_a_pipeline(tmp_path: Path) -> None:
    """Stages measured, and the figures of the whole."""
    pytest.importorskip("onnxruntime")
    bypass(tmp_path / "stages")
    run = mtpp.run_pipeline(tmp_path / "stages", batches=2, warmup=0)
    cells = _cells(run)
    assert cells[0] == repr(run).splitlines()[0]
    assert {"bottleneck", "throughput", "correlation", "outputs"} <= set(cells)
    assert all(line.split()[0] in cells for line in repr(run).splitlines()[2:6])


@pytest.mark.slow
def test_a_profile(tmp_path: Path) -> None:
    """Kinds of ops, and the most expensive ones."""
    pytest.importorskip("onnxruntime")
    measured = mtpp.profile(sample_path("resnet50"), repeats=1, warmup=0)
    cells = _cells(measured)
    assert cells[0] == "resnet50"
    assert {"machine", "one run", "kernels", "modelled", "Conv", "most expensive ops"} <= set(cells)
