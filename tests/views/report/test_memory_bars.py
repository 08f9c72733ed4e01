"""Bars of memory: pieces are the bytes that the plan states, on the scale of the largest limit, in any window."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from headless import Browser
from saved_parts import check_saving

import mtpp
from mtpp.formats.graphs.native import graph_from_document
from mtpp.views.report.memory_section import memory_sections, text_of_ops
from mtpp.views.report.page import MemoryBars, TableBlock
from mtpp.views.report.stated import StatedPlan

MIB = 2**20
LAYERS = [f"layers.{i}" for i in range(4)]
MACHINE = """
order = "fixed"
[[device]]
name = "large-accelerator-of-rack-seven"
count = 2
memory = "40MiB"
[[device]]
name = "small"
memory = "20MiB"
"""


def ends(name: str) -> dict[str, str]:
    """Return the input and the output of a layer's cache."""
    return {"input": f"in {name}", "output": f"out {name}"}


def chain_graph() -> dict[str, Any]:
    """Return an embedding, four layers with caches, and a head that shares its weights with the embedding."""
    names = ["embedding", *LAYERS, "head"]
    return {
        "format": "mtpp-graph",
        "version": 1,
        "name": "chain",
        "time_unit": "ms",
        "ops": [{"name": name, "work": 1, "param_bytes": 5 * MIB if name in LAYERS else MIB} for name in names],
        "tensors": [
            {"name": f"from {one}", "producer": one, "consumers": [other], "bytes": MIB}
            for one, other in pairwise(names)
        ],
        "weights": [{"name": "tied", "bytes": 3 * MIB, "readers": ["embedding", "head"]}],
        "states": [{"name": f"cache of {name}", "bytes": MIB, "readers": [name], **ends(name)} for name in LAYERS],
    }


def cut(tmp_path: Path, stages: list[int]) -> dict[str, Any]:
    """Return the document of a cut of the chain on two large devices and a small one, with two sequences."""
    (tmp_path / "machine.toml").write_text(MACHINE)
    model = mtpp.read(chain_graph(), machine=tmp_path / "machine.toml", sequences=2, peak="order")
    return mtpp.evaluate(model, stages).document()


def drawn(document: dict[str, Any]) -> tuple[MemoryBars, TableBlock]:
    """Return the blocks of the section."""
    graph = graph_from_document(chain_graph(), "chain")
    stages = [document["assignment"][name] for name in graph.op_names]
    (bars,), (table,) = (one.blocks for one in memory_sections(StatedPlan.of(document), graph, stages))
    assert isinstance(bars, MemoryBars)
    assert isinstance(table, TableBlock)
    return bars, table


def test_pieces_are_the_bytes_of_the_plan(tmp_path: Path) -> None:
    """Weights op by op, tied ones at their first reader of each stage; caches of all sequences; activations; free."""
    bars, table = drawn(cut(tmp_path, [0, 0, 0, 1, 1, 2]))
    scale = 100 / 40
    pieces = [[(piece.kind, piece.percent / scale) for piece in bar.pieces] for bar in bars.bars]
    assert pieces[0] == [
        *[("weights", pytest.approx(size)) for size in (4, 5, 5)],
        *(("states", pytest.approx(4)), ("activations", pytest.approx(2)), ("free", pytest.approx(20))),
    ]
    assert [size for kind, size in pieces[2]] == [pytest.approx(size) for size in (4, 1, 15)]
    assert [bar.limit for bar in bars.bars] == [100, 100, 50]
    assert [bar.detail for bar in bars.bars] == ["embedding, layers.0–1", "layers.2–3", "head"]
    names = [
        "stage 0 on large-accelerator-of-rack-seven (device 0)",
        "stage 1 on large-accelerator-of-rack-seven (device 1)",
        "stage 2 on small",
    ]
    assert [bar.name for bar in bars.bars] == names
    for row in table.table.rows:
        _, _, weights, states, activations, held, limit, free = row
        assert weights + states + activations == held == limit - free


def test_more_than_the_limit(tmp_path: Path) -> None:
    """A document that claims more than a device holds says so, and its bar goes beyond the mark."""
    document = cut(tmp_path, [0, 0, 0, 1, 1, 2])
    document["stages"][2]["param_bytes"] = 30 * MIB
    bars, table = drawn(document)
    over = bars.bars[2]
    assert (over.over, over.told) == (True, "31 MiB of 20 MiB, 11 MiB too much")
    assert [piece.kind for piece in over.pieces] == ["weights", "activations"]
    assert table.table.cells[2][-1] == "−11 MiB"


def test_limits_far_away_are_not_drawn(tmp_path: Path) -> None:
    """Bars stay readable where devices hold many times as much; the text has the limits all the same."""
    document = cut(tmp_path, [0, 0, 0, 1, 1, 2])
    for device in document["machine"]["devices"]:
        device["stage_memory_bytes"] = 1000 * MIB
    bars, _ = drawn(document)
    assert {piece.kind for bar in bars.bars for piece in bar.pieces} == {"weights", "states", "activations"}
    assert {bar.limit for bar in bars.bars} == {None}
    assert bars.bars[0].told == "20 MiB of 1000 MiB"
    assert bars.caption.endswith("limits are too far beyond it to be drawn")


def test_names_of_runs() -> None:
    """Consecutive numbers are a range; gaps, other words and numbers with zeros in front are not."""
    assert text_of_ops(["h.0", "h.1", "h.3", "g.4"]) == "h.0–1, h.3, g.4"
    assert text_of_ops(["h.08", "h.09", "h.10"]) == "h.08, h.09, h.10"
    assert text_of_ops(["a", "b", "c", "d", "e", "f"]) == "a … f (6 ops)"
    assert text_of_ops([]) == ""


@pytest.mark.parametrize("width", [1280, 400])
def test_bars_in_a_browser(browser: Browser, tmp_path: Path, width: int) -> None:
    """Bars are as long as they say and stay within the page; hints say what a piece is."""
    document = cut(tmp_path, [0, 0, 0, 1, 1, 2])
    mtpp.report(document, tmp_path / "page.html", chain_graph())
    browser.open(tmp_path / "page.html", width=width)
    lengths = browser.run(
        "return [...document.querySelectorAll('#memory-bars .bar')].map((bar) => [...bar.querySelectorAll('.piece')]"
        ".map((piece) => piece.getBoundingClientRect().width / bar.getBoundingClientRect().width))"
    )
    assert [sum(row) for row in lengths] == pytest.approx([1, 1, 0.5], abs=1e-3)
    assert lengths[0] == pytest.approx([0.1, 0.125, 0.125, 0.1, 0.05, 0.5], abs=1e-3)
    hint = browser.run("return document.querySelector('#memory-bars .bar .piece').title")
    assert hint == "embedding: 4 MiB of weights"
    assert browser.run("return document.documentElement.scrollWidth") <= width
    room = browser.run(
        "const root = Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === 'requests');"
        "return root.inner_width / document.getElementById('requests').clientWidth"
    )
    assert room > 0.6
    if width == 400:
        check_saving(browser)
    assert (browser.complaints(), browser.hosts()) == ([], [])
