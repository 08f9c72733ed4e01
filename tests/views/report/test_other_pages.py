"""Pages of tables, training plans and simulations in a browser: figures of the documents, contrast, scopes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from certificate_documents import certificate_row, table
from graph_strategies import LINK, chain
from headless import Browser
from planning import plan_with
from saved_parts import check_saving

import mtpp
from mtpp.api.recipes import MultiModalTransformer
from mtpp.checker.tables.single_bounds import without_proof
from mtpp.colours import STAGES, text_on
from mtpp.formats.training.native import write_training_model
from mtpp.views.report.colours import NO_RATIO, ON_FILL, PARTS, RATIOS
from mtpp.views.report.stated import StatedRow
from mtpp.views.report.table_report import bound_ladders
from mtpp.views.report.training.memory_over_time import held
from mtpp.views.report.training.scales import SizeScale

ROOT = Path(__file__).resolve().parents[3]


def shown_peaks(browser: Browser, rows: int) -> tuple[list[float], set[str]]:
    """Return the height that each row of the chart of memory reaches over that of the highest, and its texts."""
    parts = [browser.columns("in-flight", part) for part in ("fixed", "kept")]
    reached = [0.0] * rows
    for part in parts:
        for top, bottom in zip(part["top"], part["bottom"], strict=True):
            row = int((top + bottom) / 2 + 0.5)
            reached[row] = max(reached[row], row + 0.46 - top)
    return [one / max(reached) for one in reached], set(parts[1]["bytes"])


@pytest.fixture(scope="module")
def tabled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return the page of a table of certificates, and the table."""
    path = tmp_path_factory.mktemp("table") / "page.html"
    models = [str(mtpp.datasets.sample_path("resnet50"))]
    table = mtpp.certify(models, [2, 4, 8])
    assert mtpp.report(table, path, models).passed
    return path, table.document()


def test_cells_are_those_of_the_table(browser: Browser, tabled: tuple[Path, dict[str, Any]]) -> None:
    """The map has a box for each cell with its ratio, and the table sorts."""
    path, table = tabled
    browser.open(path)
    cells = browser.columns("cells", "cells")
    assert cells["k"] == [str(row["k"]) for row in table["rows"]]
    assert cells["ratio"] == ["1"] * 3
    bars = browser.columns("k-0-bottleneck", "bars")
    assert bars["top"] == pytest.approx([row["upper"] / 10**6 for row in table["rows"]])
    keys = browser.run(
        "return [...document.getElementById('cell-table').tBodies[0].rows]"
        ".map((row) => [row.cells[5].dataset.key, row.cells[7].dataset.key])"
    )
    assert keys == [[str(row["upper"]), str(row["lower"])] for row in table["rows"]]
    browser.driver.find_elements("css selector", "#cell-table thead button")[5].click()
    shown = [int(row[2]) for row in browser.table("cell-table")]
    assert shown == [row["k"] for row in sorted(table["rows"], key=lambda row: row["upper"])]
    assert (browser.complaints(), browser.hosts()) == ([], [])


@pytest.mark.parametrize("kind", ["us", "1"])
def test_figures_against_the_number_of_stages(browser: Browser, tmp_path: Path, kind: str) -> None:
    """Bars are the figures of the range, and a line stands after the knee; without a unit of time no rate is drawn."""
    graph = chain([10, 20, 30, 40], [1, 2, 3], kind)
    found = mtpp.partition(graph, range(1, 6))
    document = found.document()
    assert mtpp.report(found, tmp_path / "page.html", graph).passed
    browser.open(tmp_path / "page.html", width=400)
    rows = document["rows"]
    for figure in ("bottleneck", "latency"):
        bars = browser.columns(f"k-{figure}", "bars")
        assert bars["k"] == [f"k = {row['k']}" for row in rows]
        scale = rows[0][figure] / bars["top"][0]
        assert bars["top"] == pytest.approx([row[figure] / scale for row in rows])
    assert document["knee"] in (3, 4)
    assert browser.columns("k-bottleneck", "knee")["xs"] == [[document["knee"] - 0.5] * 2]
    drawn = browser.run("return Object.keys(JSON.parse(document.getElementById('mtpp-data').textContent).charts)")
    assert ("k-throughput" in drawn) == (kind != "1")
    if kind != "1":
        rates = browser.columns("k-throughput", "bars")["top"]
        assert rates == pytest.approx([row["throughput_per_s"] for row in rows])
        check_saving(browser)
    assert browser.run("return document.documentElement.scrollWidth") <= 400
    assert (browser.complaints(), browser.hosts()) == ([], [])


def test_only_verified_optima_are_green(browser: Browser, tabled: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """A cell that is false has no ratio's colour, and one that was not checked in full not that of optima."""
    table = json.loads(json.dumps(tabled[1]))
    table["rows"][0]["upper"] -= 1
    models = [str(mtpp.datasets.sample_path("resnet50"))]
    page = mtpp.report(table, tmp_path / "page.html", models, shallow=True)
    assert page.false
    browser.open(tmp_path / "page.html")
    cells = browser.columns("cells", "cells")
    assert cells["ratio"] == ["1 ✗", "1 ?", "1 ?"]
    assert cells["fill"] == [NO_RATIO[0], RATIOS[1][1], RATIOS[1][1]]
    browser.open(tabled[0])
    assert set(browser.columns("cells", "cells")["fill"]) == {RATIOS[0][1]}


def test_ladders_are_those_of_the_chosen_cell(browser: Browser, tabled: tuple[Path, dict[str, Any]]) -> None:
    """A click on a cell of the map, or on its line, shows all its bounds in the order tried."""
    path, table = tabled
    browser.open(path)
    row = table["rows"][2]
    browser.run(
        "Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === 'cells').renderers"
        ".find((one) => one.name === 'cells').data_source.selected.indices = [2];"
    )
    browser.wait("document.getElementById('ladder-title').dataset.cell === '2'")
    rungs = browser.columns("ladder", "rungs")
    assert rungs["name"] == list(row["bounds"])
    unit = 10**6  # µs
    assert rungs["right"] == pytest.approx([(value or 0) / unit for value in row["bounds"].values()])
    browser.driver.find_element("css selector", '#cell-table tr[data-cell="0"]').click()
    browser.wait("document.getElementById('ladder-title').dataset.cell === '0'")
    browser.driver.find_element("css selector", '#cell-table tr[data-cell="1"]').send_keys("\ue007")  # Enter
    browser.wait("document.getElementById('ladder-title').dataset.cell === '1'")
    browser.driver.find_element("css selector", '#cell-table tr[data-cell="0"]').send_keys(" ")
    browser.wait("document.getElementById('ladder-title').dataset.cell === '0'")
    assert browser.columns("ladder", "rungs")["name"] == list(table["rows"][0]["bounds"])
    check_saving(browser)


def test_training_plans(browser: Browser, tmp_path: Path) -> None:
    """A plan of a schedule shows its passes at their times, its critical path, and its devices."""
    model = json.loads(mtpp.convert(ROOT / "datasets" / "samples" / "resnet50.onnx"))
    plan = plan_with(model, planner="pfeife", devices=3, micro_batches=4)
    page = mtpp.report(plan, tmp_path / "page.html", model)
    assert not page.false
    browser.open(tmp_path / "page.html", dark=True)
    simulated = mtpp.simulate(plan)
    passes = browser.columns("gantt", "passes")
    starts = {name: left for name, left in zip(passes["pass"], passes["left"], strict=True) if "→" not in name}
    assert starts == pytest.approx({name: start / 10**9 for name, start in simulated.starts.items()})
    critical = browser.columns("gantt", "critical")["xs"]
    assert len(critical) == sum("→" not in name for name in simulated.critical_path)
    assert critical[-1][1] == pytest.approx(simulated.iteration_ticks / 10**9)
    peaks = [max(one.in_flight for one in held(row)) for row in simulated.record.timeline.rows]
    assert peaks == [device.peak_in_flight for device in simulated.devices]
    assert max(map(int, browser.columns("in-flight", "kept")["flying"])) == max(peaks)
    devices = plan.document()["devices"]
    needed = [device["peak_bytes"] for device in devices]
    reached, texts = shown_peaks(browser, len(devices))
    assert reached == pytest.approx([one / max(needed) for one in needed])
    assert {SizeScale.of(max(needed)).text(one) for one in needed} <= texts
    assert [row[5] for row in browser.table("device-table")] == [
        SizeScale.of(max(needed)).number(one) for one in needed
    ]
    assert [row[0] for row in browser.table("device-table")] == [str(device["index"]) for device in devices]
    check_saving(browser)


@pytest.mark.parametrize("planner", ["piper", "graphpipe"])
def test_plans_of_layers(browser: Browser, tmp_path: Path, planner: str) -> None:
    """Plans of the other planners show their stages, and their iterations simulated."""
    model = json.loads(write_training_model(MultiModalTransformer(branches=2, layers=2).make()))
    given: dict[str, Any] = {"devices": 4, "memory": "16GiB", "bandwidth": "12.5GB/s", "planner": planner}
    given |= {"batch_size": 16}
    if planner == "piper":
        given |= {"micro_batch_size": 1, "bandwidth": "1000GB/s", "data_parallel": False, "tensor_parallel": False}
    plan = plan_with(model, **given)
    page = mtpp.report(plan, tmp_path / "page.html", model)
    assert not page.false
    browser.open(tmp_path / "page.html")
    stages = plan.document()["stages"]
    assert [row[1] for row in browser.table("stage-table")] == [str(len(stage["layers"])) for stage in stages]
    assert len(browser.columns("gantt", "passes")["left"]) > 2 * len(stages)
    needed = [stage["memory_bytes"] for stage in stages]
    limit = 2**34
    sizes = SizeScale.of(max(needed))
    told = browser.run(
        "return [...document.querySelectorAll('#memory li p:first-child span')].map((one) => one.textContent)"
    )
    assert told == [f"{sizes.text(one)} of {sizes.text(limit)}, {one / limit:.1%}" for one in needed]
    reached, texts = shown_peaks(browser, len(stages))
    assert reached == pytest.approx([one / max(needed) for one in needed])
    assert {sizes.text(one) for one in needed} <= texts
    assert browser.columns("gantt", "critical")["xs"][0][0] == 0
    boxes = browser.run(
        "return [...document.querySelectorAll('#stage-diagram .box .name')].map((one) => one.textContent)"
    )
    assert [one.split(" on ")[0] for one in boxes] == [f"stage {stage['index']}" for stage in stages]
    arrows = browser.run("return document.querySelectorAll('#stage-diagram .arrow').length")
    assert arrows == len(browser.table("flow-table"))
    assert ("Simulated with 16 samples, each device taking 1 at once" in page.html) == (planner == "piper")
    _read_the_schedule(browser)
    check_saving(browser)


def _read_the_schedule(browser: Browser) -> None:
    """Every pass that is zoomed in on has its micro-batch; transfers are shown when asked for."""
    passes = browser.columns("gantt", "passes")
    micro_batches = {int(one) for one in passes["label"] if one}
    assert micro_batches == set(range(len(micro_batches)))
    zoom = browser.driver.find_element("css selector", '[data-time="zoom in"]')
    later = browser.driver.find_element("css selector", '[data-time="later"]')
    for _ in range(3):
        zoom.click()
    later.click()
    start, end = browser.run(
        "const root = Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === 'gantt');"
        "return [root.x_range.start, root.x_range.end]"
    )
    inside = [
        i
        for i, (left, right) in enumerate(zip(passes["left"], passes["right"], strict=True))
        if start <= left and right <= end and passes["label"][i]
    ]
    written = browser.columns("gantt", "micro-batches")
    places = {(x, y): text for x, y, text in zip(written["x"], written["y"], written["text"], strict=True)}
    assert inside
    for i in inside:
        middle = (passes["left"][i] + passes["right"][i]) / 2, (passes["top"][i] + passes["bottom"][i]) / 2
        assert places[middle] in (passes["pass"][i], passes["label"][i])
    height = "return document.getElementById('gantt').clientHeight"
    folded = browser.run(height)
    browser.driver.find_element("id", "gantt-transfers").send_keys(" ")
    channels = len({*browser.columns("gantt", "transfers")["top"]})
    browser.wait(f"document.getElementById('gantt').clientHeight === {folded + 32 * channels}")


def test_simulations(browser: Browser, tmp_path: Path) -> None:
    """A simulation is held against its pipeline; alone it is unchecked, and changed it is false."""
    pipeline = ROOT / "datasets" / "samples" / "three-towers.json"
    simulated = mtpp.simulate(pipeline)
    document = simulated.document()
    assert mtpp.report(document, tmp_path / "page.html", pipeline).passed
    browser.open(tmp_path / "page.html")
    rows = browser.table("stage-table")
    assert [row[1] for row in rows] == [stage["name"] for stage in document["stages"]]
    passes = browser.columns("gantt", "passes")
    synchronised = len(document["stages"])
    drawn = [name for name, top in zip(passes["pass"], passes["top"], strict=True) if top < len(rows) - 0.5]
    assert len(drawn) - synchronised == sum(2 * stage["micro_batches"] for stage in document["stages"])
    check_saving(browser)
    assert mtpp.report(document).passed
    document.pop("pipeline")
    alone = mtpp.report(document, tmp_path / "alone.html")
    assert alone.verification.verdict == "unchecked"
    browser.open(tmp_path / "alone.html")
    assert browser.run("return document.body.dataset.verdict") == "unchecked"
    document["iteration_ticks"] += 1
    changed = mtpp.report(document, None, pipeline)
    assert [row.claim for row in changed.verification.rows if row.verdict == "false"] == ["iteration"]
    assert mtpp.report(pipeline).passed


STYLE = (Path(__file__).resolve().parents[3] / "views" / "report" / "page.css").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:root|paper) \{(.*?)\}", STYLE, re.DOTALL)
SCHEMES = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in BLOCKS]


def luminance(colour: str) -> float:
    """Return the relative luminance of the Web Content Accessibility Guidelines."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return how much lighter one colour is than the other, from 1 to 21."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark", "paper"])
def test_text_can_be_read(scheme: dict[str, str]) -> None:
    """4.5 to 1 for text, 3 to 1 for parts of bars."""
    for ink in ("ink", "soft", "link", "ok", "false", "unchecked", "accent"):
        for ground in ("paper", "raised"):
            assert contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)
    for state in ("ok", "false", "unchecked", "held"):
        for ink in ("ink", "link" if state == "held" else state):
            assert contrast(scheme[ink], scheme[f"{state}-paper"]) >= 4.5, (ink, state)
    for colour in PARTS.values():
        assert contrast(colour, scheme["paper"]) >= 3


def test_labels_can_be_read_on_fills() -> None:
    """Those of boxes of all stages, and of cells of every class."""
    cells = [colour for _, colour, _ in RATIOS] + [NO_RATIO[0]]
    assert min(contrast(fill, ON_FILL) for fill in cells) >= 4.5
    assert min(contrast(fill, text_on(fill)) for fill in (*STAGES, *PARTS.values())) >= 4.5


_MODEL = {
    "format": "mtpp-graph",
    "version": 1,
    "name": "two",
    "time_unit": "ns",
    "ops": [{"name": "a", "work": 5}, {"name": "b", "work": 7}],
    "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 1}],
}


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (None, "Ratio under looped schedules asked for, with whole backward passes"),
        ("zero-bubble", "Ratio under the schedule asked for"),
    ],
)
def test_the_ratio_over_schedules_names_them(tmp_path: Path, schedule: str | None, said: str) -> None:
    """A schedule of halves may be faster than a bound on schedules of whole backward passes."""
    plan = plan_with(_MODEL, planner="pfeife", devices=2, micro_batches=2, loops=[1], schedule=schedule, jobs=1)
    plan.save(tmp_path / "plan.json")
    page = mtpp.report(tmp_path / "plan.json", model=_MODEL).html
    assert f">{said}<" in page


def texts(row: dict[str, Any]) -> dict[str, str]:
    """Return what the ladder of a row says of each bound."""
    stated = StatedRow.of(row)
    data: dict[str, Any] = {}
    bound_ladders([stated], {stated.path: "net"}, {}, data, [without_proof(row)])
    (cell,) = data["cells"]
    return dict(zip(cell["names"], cell["texts"], strict=True))


def test_bounds_without_a_proof_are_called_unchecked() -> None:
    """The best one has its own verdict, the simple one is derived, others rest on a proof in the row."""
    graph = chain([10, 20, 30, 40], [1, 2, 3], "ms")
    row = table([certificate_row(graph, LINK, 2, [0, 0, 0, 1])])["rows"][0]
    row["bounds"] |= {"node": 40 * 10**9, "crossings": 41 * 10**9}
    row["proofs"] = {"crossings": {"tier": "exact", "proof": {}}}
    said = texts(row)
    assert {name for name, text in said.items() if text.endswith("unchecked")} == {"node"}
    assert said["bottleneck"].startswith("nothing proven")
    solver = {**row, "tier": "solver", "lower_method": "exact-mip", "lower": 51 * 10**9}
    solver["bounds"] = {**row["bounds"], "exact-mip": 51 * 10**9}
    assert texts(solver)["exact-mip"].endswith("unchecked")
