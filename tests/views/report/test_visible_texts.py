"""Texts that readers of pages see: quantities with units, and each number written in one way."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain
from planning import plan_with
from processes import run

import mtpp
from mtpp.api.cells.overlapping import bound_overlapping
from mtpp.api.recipes import MultiModalTransformer
from mtpp.checker.facts import factor
from mtpp.formats.graphs.native import to_document
from mtpp.formats.training.native import write_training_model

ROOT = Path(__file__).resolve().parents[3]

RAW = re.compile(r"\bticks?\b|\d bytes\b|(?<![\d.,])\d{7,}(?![\d.,])|\d\.\d{7,}")
"""Counts of ticks or bytes, and digits that nobody reads."""

DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


class Texts(HTMLParser):
    """Texts of a page outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note labels, which are read aloud, and scripts and styles."""
        self.found += [text for name, text in attrs if name in ("aria-label", "title") and text]
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave a script or style."""
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        """Note what is shown."""
        if not self._inside and data.strip():
            self.found.append(data.strip())


def texts_of(html: str) -> list[str]:
    """Return what a reader sees of a page, and what is read aloud."""
    parser = Texts()
    parser.feed(html)
    return [DIGEST.sub("", text) for text in parser.found]


def made(kind: str, folder: Path) -> tuple[Any, Any]:
    """Return a result of a kind with its model."""
    graph = to_document(chain([10, 20, 30, 40], [1, 2, 3], "us"))
    mmt = json.loads(write_training_model(MultiModalTransformer(branches=2, layers=2).make()))
    asked: dict[str, Any] = {"devices": 4, "memory": "16GiB", "bandwidth": "12.5GB/s"}
    if kind == "plan":
        resnet = mtpp.datasets.sample_path("resnet50")
        model = mtpp.read(resnet, stage_memory="90MiB")
        stages = {name: i // 50 for i, name in enumerate(model.graph.op_names)}
        return mtpp.evaluate(model, stages), resnet
    if kind == "latency":
        return mtpp.partition(graph, 2, objective="latency", max_bottleneck="70us"), graph
    if kind == "range":
        return mtpp.partition(graph, [1, 2, 3]), graph
    if kind == "overlapping":
        layers = [{"name": f"op{i}", "work": 1} for i in range(40)]
        cuts = [{"name": f"t{i}", "producer": f"op{i}", "consumers": [f"op{i + 1}"], "transfer": 0} for i in range(39)]
        read = mtpp.read({**graph, "ops": layers, "tensors": cuts}, machine=ROOT / "examples" / "measured-layers.toml")
        return bound_overlapping(read).document(), None
    if kind == "pfeife":
        return plan_with(graph, planner="pfeife", devices=2, micro_batches=3, loops=[1, 2], jobs=1), graph
    if kind == "no plan":
        path = folder / "plan.json"
        (folder / "model.json").write_text(json.dumps(mmt))
        options = ("--devices", "4", "--memory", "1MiB", "--bandwidth", "12.5GB/s", "--max-micro-batches", "8")
        assert run("plan", folder / "model.json", *options, "-o", path).returncode == 1
        return json.loads(path.read_text()), folder / "model.json"
    if kind == "simulation":
        pipeline = ROOT / "datasets" / "samples" / "three-towers.json"
        return mtpp.simulate(pipeline).document(), pipeline
    sizes = {"max_micro_batches": 8} if kind == "piper" else {"batch_size": 16}
    return plan_with(mmt, planner=kind, **asked, **sizes), mmt


KINDS = ("plan", "latency", "range", "overlapping", "pfeife", "no plan", "simulation", "piper", "graphpipe")


@pytest.mark.parametrize("kind", KINDS)
def test_quantities_have_units(kind: str, tmp_path: Path) -> None:
    """No page of any kind says ticks or bytes, and a ratio is written as the verifier writes it and in no other way."""
    result, model = made(kind, tmp_path)
    document = result if isinstance(result, dict) else result.document()
    texts = texts_of(mtpp.report(result, model=model).html)
    assert [text for text in texts if RAW.search(text)] == []
    for key in ("ratio", "family_ratio"):
        ratio = document.get(key)
        if ratio is not None and ratio > 1:
            near = re.compile(r"(?<![\d.,])\d\.\d+(?![\d.]*(?: [µmn]?s\b|×| [KMGT]iB| GB))")
            written = {one for text in texts for one in near.findall(text) if abs(float(one) - ratio) < 2e-4}
            assert written == {factor(ratio)}


def test_pages_say_what_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, version and command, and the title that was asked for, as text."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    pipeline = ROOT / "datasets" / "samples" / "three-towers.json"
    page = mtpp.report(pipeline, title="<b>Towers</b>").html
    assert "<time>2023-11-14 22:13 UTC</time> by mtpp 0." in page
    assert "<code>mtpp.report in Python</code>" in page
    assert "<h1>&lt;b&gt;Towers&lt;/b&gt;</h1>" in page
    assert page == mtpp.report(pipeline, title="<b>Towers</b>").html
    with pytest.raises(mtpp.InputError, match="title: is empty"):
        mtpp.report(pipeline, title=" ")
