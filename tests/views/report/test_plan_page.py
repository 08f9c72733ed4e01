"""Pages of plans in a browser: what they show is what the plan says, and they ask nobody for anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from headless import Browser
from saved_parts import check_saving

import mtpp
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.machine import Machine

pass

HOSTILE = (
    "<script>document.title='run'</script>",
    "</script><img src=x onerror=alert(1)>",
    "a\u2028b\u2029c",
    "\"quoted\" & 'apostrophes'",
    "$$\\alpha$$ @{name} %s {{ 7*7 }}",
    "名前" * 40,
    "x" * 3000,
    "\u202egnp.exe",
)
"""Names that a page must show as text."""


def hostile_graph() -> dict[str, Any]:
    """Return a chain of ops whose names, kinds and tensors are markup."""
    ops = [{"name": name, "kind": name[:40], "work": 10 + i} for i, name in enumerate(HOSTILE)]
    tensors = [
        {"name": f"t {name}", "producer": name, "consumers": [reader], "bytes": 1000 * (i + 1)}
        for i, (name, reader) in enumerate(pairwise(HOSTILE))
    ]
    name = "<b>model</b>"
    return {"format": "mtpp-graph", "version": 1, "name": name, "time_unit": "us", "ops": ops, "tensors": tensors}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Any]]:
    """Return the page of a verified plan, and the plan."""
    path = tmp_path_factory.mktemp("plan") / "page.html"
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"))
    plan = mtpp.partition(model, 4)
    assert mtpp.report(plan, path, model).passed
    return path, plan.document()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_asked_of_any_host(
    browser: Browser, planned: tuple[Path, Mapping[str, Any]], dark: bool, width: int
) -> None:
    """No error on the console, no request, nothing wider than the page, and colours follow the reader's scheme."""
    browser.open(planned[0], dark=dark, width=width)
    assert (browser.complaints(), browser.hosts()) == ([], [])
    assert browser.run("return document.documentElement.scrollWidth") <= width
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
    ink = browser.run(
        "const root = Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === 'stages');"
        "return root.left[0].major_label_text_color"
    )
    assert ink == ("#e8ebee" if dark else "#1b1f24")


def test_stages_are_those_of_the_plan(browser: Browser, planned: tuple[Path, Mapping[str, Any]]) -> None:
    """Table and chart hold the exact figures of the document, and the verdict comes first."""
    path, plan = planned
    browser.open(path)
    assert browser.run("return document.querySelector('.headline').textContent").strip().startswith("✓ Proven optimal")
    keys = browser.run(
        "return [...document.getElementById('stage-table').tBodies[0].rows]"
        ".map((row) => [...row.cells].slice(4, 9).map((cell) => cell.dataset.key))"
    )
    parts = ("work", "input", "output", "overflow", "cost")
    assert keys == [[str(row[part]) for part in parts] for row in plan["stages"]]
    for part in parts[:-1]:
        drawn = browser.columns("stages", f"part-{part}")
        lengths = [right - left for left, right in zip(drawn["left"], drawn["right"], strict=True)]
        assert lengths == pytest.approx([row[part] / 10**6 for row in plan["stages"]], abs=1e-9)
    assert browser.columns("stages", "bound")["xs"][0][0] == pytest.approx(plan["lower_bound"]["value"] / 10**6)
    claims = browser.table("claims")
    assert {row[0] for row in claims} == {"–", "✓ ok"}
    check_saving(browser)


WRITTEN = """
const pen = document.createElement("canvas").getContext("2d");
return Bokeh.documents.map((one) => one.roots()[0]).filter((one) => one.name.startsWith("graph-")).flatMap((root) => {
  const part = (name) => root.renderers.find((one) => one.name === name);
  const scale = root.inner_width / Math.abs(root.x_range.end - root.x_range.start);
  return ["labels", "labels-light", "sizes"].filter((name) => part(name)?.visible).flatMap((name) => {
    const { x, y, text } = part(name).data_source.data, size = parseFloat(part(name).glyph.text_font_size.value);
    pen.font = `${size}px system-ui, sans-serif`;
    return [...text].map((one, i) => {
      const half = pen.measureText(one).width / 2, [across, down] = [x[i] * scale, y[i] * scale];
      return [root.name, name, one, across - half, down - size / 2, across + half, down + size / 2];
    });
  });
});
"""
"""Names and sizes of all graphs that are drawn, and the rectangles of the screen that they take."""


def overlapping(found: list[list[Any]]) -> list[tuple[str, str]]:
    """Return the texts of a graph that cover each other."""
    return [
        (one[2], other[2])
        for i, one in enumerate(found)
        for other in found[i + 1 :]
        if one[0] == other[0] and one[3] < other[5] and other[3] < one[5] and one[4] < other[6] and other[4] < one[6]
    ]


def test_labels_do_not_pile_up(
    browser: Browser, planned: tuple[Path, Mapping[str, Any]], shared_data: Path, tmp_path: Path
) -> None:
    """Names and sizes never cover each other, though a stage sends to all others; on a phone they are readable."""
    path = shared_data / "pages" / "overlapping-labels.json"
    model = mtpp.read(path)
    stages = {name: i * 16 // model.graph.op_count for i, name in enumerate(model.graph.op_names)}
    mtpp.report(mtpp.evaluate(model, stages), tmp_path / "page.html", model)
    for page, level, least in ((tmp_path / "page.html", 0, 28), (planned[0], 2, 20)):
        for width in (1400, 400):
            browser.open(page, width=width)
            browser.driver.find_elements("name", "graph-level")[level].click()
            browser.wait(f"!document.getElementById('graph-{level}').hidden")
            found = [one for one in browser.run(WRITTEN) if one[0] == f"graph-{level}"]
            assert len([one for one in found if one[1] == "sizes"]) >= least
            assert overlapping(found) == []
            assert min(one[6] - one[4] for one in found) >= 8.5
            assert browser.complaints() == []


@pytest.mark.parametrize(("choice", "numerator", "denominator"), [(0, 1, 2), (2, 2, 1)])
def test_other_bandwidths(
    browser: Browser, planned: tuple[Path, Mapping[str, Any]], choice: int, numerator: int, denominator: int
) -> None:
    """The same assignment costs what the objective says, and the page says that the bound is not proven."""
    path, plan = planned
    browser.open(path)
    browser.driver.find_elements("name", "what-if")[choice].click()
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"))
    bandwidth = model.system.link.bandwidth_bytes_per_s * numerator // denominator
    instance = Instance.build(model.graph, Machine.uniform(4, model.system.overriding(bandwidth_bytes_per_s=bandwidth)))
    stages = [plan["assignment"][name] for name in model.graph.op_names]
    costs = stage_costs(instance, Partition.from_stages(instance, stages))
    keys = browser.run(
        "return [...document.getElementById('stage-table').tBodies[0].rows].map((row) => row.cells[8].dataset.key)"
    )
    assert keys == [str(cost) for cost in costs.cost.tolist()]
    note = browser.run("return document.getElementById('what-if-note').textContent")
    assert "The lower bound is not proven for this bandwidth" in note
    assert f"(stage {int(costs.cost.argmax())})" in note
    hidden = (
        "return Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === 'stages')"
        ".renderers.find((one) => one.name === 'bound').visible"
    )
    assert browser.run(hidden) is False
    browser.driver.find_elements("name", "what-if")[1].click()
    assert browser.run(hidden) is True
    assert (browser.complaints(), browser.hosts()) == ([], [])


def test_search_and_clicks(browser: Browser, planned: tuple[Path, Mapping[str, Any]]) -> None:
    """An op is found by a part of its name, and its box, stage and tensors are shown; a box can be clicked."""
    path, plan = planned
    browser.open(path)
    field = browser.driver.find_element("id", "graph-search")
    field.send_keys("LAYER2.1.CONV1")
    assert browser.run("return document.getElementById('graph-matches').textContent") == "1 of 122"
    browser.driver.find_element("css selector", "#graph-found button").click()
    browser.wait("document.getElementById('graph-details').dataset.op === 'layer2.1.conv1/Conv'")
    told = browser.run("return document.getElementById('graph-details').innerText")
    assert f"stage\n{plan['assignment']['layer2.1.conv1/Conv']}" in told
    assert "layer2.0.relu3/Relu" in told
    level = browser.run("return document.querySelector('input[name=graph-level]:checked').parentElement.innerText")
    assert level.split() == ["Ops", "122"]
    ops = browser.run("return JSON.parse(document.getElementById('mtpp-data').textContent).graph.levels.at(-1).name")
    boxes = browser.columns(ops, "boxes")
    assert {name: int(stage) for name, stage in zip(boxes["name"], boxes["stage"], strict=True)} == plan["assignment"]
    browser.run(
        "const roots = Bokeh.documents.map((one) => one.roots()[0]);"
        "const source = roots.find((one) => one.name === arguments[0]).renderers"
        ".find((one) => one.name === 'boxes').data_source; source.selected.indices = [0];",
        browser.run("return JSON.parse(document.getElementById('mtpp-data').textContent).graph.levels.at(-1).name"),
    )
    assert browser.run("return document.getElementById('graph-details').dataset.op") == boxes["name"][0]
    browser.driver.find_elements("name", "graph-level")[0].click()
    browser.wait("!document.getElementById('graph-0').hidden")
    assert browser.columns("graph-0", "boxes")["ops"] == [str(row["ops"]) for row in plan["stages"]]
    assert (browser.complaints(), browser.hosts()) == ([], [])


def test_charts_fit_on_paper(browser: Browser, planned: tuple[Path, Mapping[str, Any]]) -> None:
    """For a printer charts have the colours of paper, and are shrunk to its width, whatever that of the window."""
    for width in (1280, 400):
        browser.open(planned[0], dark=True, width=width)
        shown = "[...document.querySelectorAll('.plot:not([hidden])')].map((plot) => "
        drawn = browser.run(f"return {shown} plot.clientWidth)")
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        media = [{"name": "prefers-color-scheme", "value": "dark"}]
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": media})
        shrunk = browser.run(f"return {shown} Number(getComputedStyle(plot.firstElementChild).zoom))")
        assert [one * by for one, by in zip(drawn, shrunk, strict=True)] == pytest.approx(
            [min(one, 700) for one in drawn], abs=0.5
        )
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": media})
        browser.run("window.dispatchEvent(new Event('afterprint'))")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    assert browser.complaints() == []


def test_fingers_and_keys(browser: Browser, planned: tuple[Path, Mapping[str, Any]]) -> None:
    """Two fingers zoom about their middle, one moves; so do keys, and 0 shows all."""
    browser.open(planned[0], width=400)
    spans = "const root = Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === 'graph-2');"
    spans += "return [root.x_range.start, root.x_range.end, root.y_range.end, root.y_range.start]"
    place = "const plot = document.getElementById('graph-2'); plot.scrollIntoView({block: 'center'});"
    place += "const {left, top} = plot.getBoundingClientRect(); return [left, top]"
    left, top = browser.run(place)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        fingers = [{"x": left + x, "y": top + y, "id": i} for i, (x, y) in enumerate(points)]
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    before = browser.run(spans)
    touch("touchStart", (150, 200))
    touch("touchStart", (150, 200), (250, 200))
    touch("touchMove", (125, 200), (275, 200))
    touch("touchMove", (100, 200), (300, 200))
    touch("touchEnd")
    zoomed = browser.run(spans)
    assert zoomed[1] - zoomed[0] == pytest.approx((before[1] - before[0]) / 2, rel=0.02)
    assert zoomed[3] - zoomed[2] == pytest.approx((before[3] - before[2]) / 2, rel=0.02)
    width = browser.run("return document.getElementById('graph-2').clientWidth")
    middle = [low + (high - low) * 200 / width for low, high in (before[:2], zoomed[:2])]
    assert middle[0] == pytest.approx(middle[1], abs=12)
    touch("touchStart", (200, 200))
    for step in range(1, 6):
        touch("touchMove", (200 - 10 * step, 200))
    touch("touchEnd")
    moved = browser.run(spans)
    assert moved[0] > zoomed[0]
    assert moved[2:] == pytest.approx(zoomed[2:])
    plot = browser.driver.find_element("id", "graph-2")
    plot.send_keys("-")
    wider = browser.run(spans)
    assert wider[1] - wider[0] == pytest.approx((moved[1] - moved[0]) / 0.65)
    plot.send_keys("\ue012")  # arrow to the left
    assert browser.run(spans)[0] < wider[0]
    plot.send_keys("0")
    fitted = browser.run(spans)
    assert fitted[0] <= -24
    assert fitted[1] - fitted[0] > before[1] - before[0]
    assert browser.complaints() == []


@pytest.mark.slow
def test_tables_sort(browser: Browser, planned: tuple[Path, Mapping[str, Any]]) -> None:
    """A click on a heading sorts by the exact figures, a second one the other way round."""
    path, plan = planned
    browser.open(path)
    headings = browser.driver.find_elements("css selector", "#stage-table thead button")
    order = sorted(range(4), key=lambda s: plan["stages"][s]["work"])
    headings[4].click()
    assert [int(row[0]) for row in browser.table("stage-table")] == order
    headings[4].click()
    assert [int(row[0]) for row in browser.table("stage-table")] == order[::-1]


def test_names_are_text(browser: Browser, tmp_path: Path) -> None:
    """Names with markup, ends of lines, formulas and of any length are shown as they are, and nothing of them runs."""
    graph = hostile_graph()
    plan = mtpp.partition(graph, 2)
    page = mtpp.report(plan, tmp_path / "page.html", graph)
    assert page.passed
    for name in HOSTILE[:4]:
        assert name not in page.html
    browser.open(tmp_path / "page.html")
    assert browser.run("return document.title") == "<b>model</b>: plan for 2 stages"
    assert browser.run("return document.querySelector('h1').textContent") == "<b>model</b>"
    assert browser.run("return document.querySelectorAll('img, b b, h1 *').length") == 0
    names = browser.run("return JSON.parse(document.getElementById('mtpp-data').textContent).graph.ops.names")
    assert names[0] == HOSTILE[0]
    assert names[2] == "a\\u2028b\\u2029c"
    assert names[7] == "\\u202egnp.exe"
    browser.driver.find_element("id", "graph-search").send_keys("onerror")
    browser.driver.find_element("css selector", "#graph-found button").click()
    browser.wait(f"document.getElementById('graph-details').dataset.op === {json.dumps(HOSTILE[1])}")
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert (browser.complaints(), browser.hosts()) == ([], [])


def test_a_false_plan_says_so_first(browser: Browser, tmp_path: Path) -> None:
    """A plan with a mistake has a page all the same, whose first words are that it failed."""
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"))
    plan = mtpp.partition(model, 4).document()
    plan["lower_bound"]["value"] += 10**9  # above the bottleneck, even
    page = mtpp.report(plan, tmp_path / "page.html", model)
    assert page.false
    browser.open(tmp_path / "page.html")
    assert browser.run("return document.body.dataset.verdict") == "false"
    said = browser.run("return document.querySelector('.verdict').innerText")
    assert said.startswith("✗ Verification failed")
    assert "lower bound: " in said
    assert [row[1] for row in browser.table("claims") if row[0] == "✗ false"] == ["lower bound", "ratio", "optimal"]
    assert (browser.complaints(), browser.hosts()) == ([], [])


@pytest.mark.slow
def test_pages_stay_small(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a model of 1,571 ops is below 3 MB, and the same at the same time."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    model = mtpp.read(shared_data / "onnx" / "sd15-unet.onnx")
    plan = mtpp.evaluate(model, {name: i * 4 // model.graph.op_count for i, name in enumerate(model.graph.op_names)})
    page = mtpp.report(plan, tmp_path / "page.html", model)
    assert (tmp_path / "page.html").stat().st_size < 3_000_000
    assert mtpp.report(plan.document(), None, model).html == page.html
