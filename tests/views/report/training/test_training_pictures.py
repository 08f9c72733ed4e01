"""Units, drawings of stages, and what flows between them."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from machines import on_machine
from planning import plan_with
from training_models import four_layers
from training_plan_documents import no_plan_document

import mtpp
from mtpp.api.recipes import MultiModalTransformer
from mtpp.api.reporting.stage_flows import graph_flows, line_flows
from mtpp.formats.training.native import write_training_model
from mtpp.training.problem import PlanningProblem
from mtpp.training.timeline import RowMemory
from mtpp.views.report.headline import training_headline
from mtpp.views.report.training.memory_peaks import peaks_section, stated_peaks
from mtpp.views.report.training.scales import SizeScale, TimeScale, rate_text
from mtpp.views.report.training.stage_diagram import DrawnStage, stage_diagram
from mtpp.views.report.training.stage_flows import StageFlow

ROOT = Path(__file__).resolve().parents[4]


def test_one_unit_for_all_times_and_sizes() -> None:
    """The unit follows from the largest; small ones keep two figures, and times of no unit are plain."""
    scale = TimeScale.of(5_064_440_672, 1, timed=True)
    assert (scale.label, scale.text(5_064_440_672), scale.text(0)) == ("time (ms)", "5.064 ms", "0.000 ms")
    assert scale.number(250_000) == "0.00025"
    assert TimeScale.of(Fraction(999, 2), 1, timed=True).text(Fraction(999, 2)) == "499.5 ps"
    plain = TimeScale.of(120, 10, timed=False)
    assert (plain.label, plain.text(125), plain.headed("busy")) == ("time in the unit of the file", "12.5", "busy")
    sizes = SizeScale.of(16 * 2**30)
    assert [sizes.text(one) for one in (16 * 2**30, 2**20, 0)] == ["16 GiB", "1 MiB", "0 GiB"]
    assert SizeScale.of(1000).text(1000) == "1,000 B"
    assert sizes.pair(10 * 2**20 + 2**18, 2**30) == "10.25 MiB of 1 GiB"
    assert sizes.pair(2**29, 2**30) == "0.5 of 1 GiB"
    assert SizeScale.of(2**20).pair(2**20, 16 * 2**30) == "1 MiB of 16 GiB"
    assert [rate_text(one) for one in (19_541.3, 884.0, 1.23456, 0)] == ["19,540", "884", "1.235", "0"]


def drawn(count: int, pairs: list[tuple[int, int]]) -> Any:
    """Return the drawing of stages that hand each other a mebibyte."""
    stages = [DrawnStage(s, [f"stage {s}", "a layer"], "") for s in range(count)]
    return stage_diagram(stages, [StageFlow(u, v, 2**20, 2**20) for u, v in pairs], "stages")


LINE = [(s, s + 1) for s in range(11)]


@pytest.mark.parametrize(
    ("count", "pairs"),
    [
        (1, []),
        (12, LINE),
        (12, [*LINE, (0, 11), (2, 5)]),
        (8, [(0, 4), (1, 5), (2, 6), (3, 7), (4, 7), (5, 7), (6, 7), (0, 7)]),
        (4, []),
    ],
    ids=["one", "line", "skips", "graph", "apart"],
)
def test_boxes_are_apart_and_inside(count: int, pairs: list[tuple[int, int]]) -> None:
    """No box covers another or leaves the picture, an arrow of a graph leads on, and each has its bytes beside it."""
    picture = drawn(count, pairs)
    assert (len(picture.boxes), len(picture.arrows)) == (count, len(pairs))
    for one, other in combinations(picture.boxes, 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        above = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert beside or above
    for box in picture.boxes:
        assert 0 <= box.x <= box.x + box.width <= picture.width
        assert 0 <= box.y <= box.y + box.height <= picture.height
    assert {arrow.label for arrow in picture.arrows} <= {"1 MiB"}
    for arrow in picture.arrows:
        assert 0 <= arrow.x <= picture.width
        assert 0 <= arrow.y <= picture.height


def test_flows_are_those_of_the_model() -> None:
    """Each edge between stages counts once, for the samples of a micro-batch; a line has arrows without bytes too."""
    model = MultiModalTransformer(branches=3, layers=2).make()
    given: dict[str, Any] = {"devices": 4, "memory": "16GiB", "bandwidth": "1000GB/s"}
    plan = plan_with(model, planner="graphpipe", batch_size=16, **given).document()
    flows = {(one.source, one.target): one for one in graph_flows(plan, model)}
    assert set(flows) == {(one["source"], one["target"]) for one in plan["transfers"]}
    place = {layer: s for s, row in enumerate(plan["stages"]) for layer in row["layers"]}
    due: dict[tuple[int, int], int] = {}
    for edge in model.edges:
        pair = place[edge.source], place[edge.target]
        samples = plan["stages"][pair[0]]["micro_batch"]
        due[pair] = due.get(pair, 0) + -(-edge.communication_bytes * samples // plan["rules"]["times_of"])
    assert {pair: one.forward_bytes for pair, one in flows.items()} == {
        pair: size for pair, size in due.items() if pair[0] != pair[1]
    }
    line = plan_with(model, max_micro_batches=4, data_parallel=False, **given).document()
    listed = line_flows(line, model, 1)
    assert {(s, s + 1) for s in range(len(line["stages"]) - 1)} <= {(one.source, one.target) for one in listed}


def test_flows_of_splits_are_what_crosses() -> None:
    """From neighbour to neighbour all that later stages need goes; straight to readers, what they read."""
    graph = json.loads(mtpp.convert(ROOT / "datasets" / "samples" / "resnet50.onnx"))
    for transport in ("neighbours", "direct"):
        given = {"devices": 3, "micro_batches": 3, "loops": [1], "transport": transport, "time_limit_s": 5}
        plan = plan_with(graph, planner="pfeife", **given)  # type: ignore[arg-type]
        rows = plan.document()["stages"]
        place = {op: s for s, row in enumerate(rows) for op in row["layers"]}
        due: dict[tuple[int, int], int] = {}
        for tensor in graph["tensors"]:
            source = place[tensor["producer"]]
            readers = {place[one] for one in tensor["consumers"]}
            pairs = [(source, one) for one in readers - {source}]
            if transport == "neighbours":
                pairs = [(s, s + 1) for s in range(source, max(readers, default=source))]
            for pair in pairs:
                due[pair] = due.get(pair, 0) + tensor["bytes"]
        html = mtpp.report(plan, None, graph).html
        for (source, target), size in due.items():
            told = f"stage {source} → stage {target}: {SizeScale.of(size).text(size)} for each micro-batch"
            assert told in html


def test_peaks_stand_against_limits() -> None:
    """A bar is split where both parts are known, ends in what is free, and says where it is over its limit."""
    memory = [RowMemory(2, [1]), RowMemory(9, [1])]
    peaks = stated_peaks(["device 0", "device 1", "device 2"], [4, 10, 8], [8, 8, None], [*memory, RowMemory(20, [1])])
    (bars,) = peaks_section(peaks, "here").blocks
    first, second, third = bars.bars  # type: ignore[union-attr]
    assert [(piece.kind, piece.percent) for piece in first.pieces] == [
        ("weights", 20.0),
        ("activations", 20.0),
        ("free", 40.0),
    ]
    assert (first.told, first.limit, first.over) == ("4 B of 8 B, 50.0%", 80.0, False)
    assert (second.told, second.over) == ("10 B of 8 B, 125.0%", True)
    assert (third.told, third.limit, [piece.kind for piece in third.pieces]) == ("8 B", None, ["weights"])


def test_no_plan_names_the_memory_that_would_do() -> None:
    """The page that no plan fits says which devices there are, and which memory they would need."""
    rest = {"devices": 6, "memory_bytes": 13, "bandwidth_bytes_per_s": 3 * 10**9, "micro_batches": 6}
    document = no_plan_document(PlanningProblem(four_layers(), **on_machine(**rest)), 50)
    page = mtpp.report(json.loads(json.dumps(document, default=float)), None, four_layers()).html
    assert re.search(r"<dt>Memory</dt><dd>13 B <small>of each device</small>", page)
    assert re.search(r"<dt>Memory needed</dt><dd>50 B <small>of each device would do", page)


def test_models_of_plans_are_text(tmp_path: Path) -> None:
    """Names of layers stand in drawings as text."""
    model = json.loads(write_training_model(MultiModalTransformer(branches=2, layers=1).make()))
    text = json.dumps(model).replace("branch 0 layer 0", "<script>alert(1)</script>")
    given: dict[str, Any] = {"devices": 2, "memory": "16GiB", "bandwidth": "1000GB/s", "batch_size": 4}
    page = mtpp.report(plan_with(json.loads(text), planner="graphpipe", **given), None, json.loads(text))
    assert "<script>alert" not in page.html
    assert "&lt;script&gt;alert(1" in page.html


def test_headlines_end_as_sentences_do() -> None:
    """What is said of the fastest pipeline ends with its rules; where more follows, a comma stands between."""
    system = {"data_parallel": True, "tensor_parallel": False, "recompute": True}
    plan = {"feasible": True, "optimal": False, "ratio": 1.25, "planner": "equi", "system": system}
    said, sign = training_headline(plan)
    assert (said, sign) == (
        "Proven to be within a factor of 1.25 of the fastest pipeline of stages in a line, "
        "with or without data parallelism or recomputation",
        "≤",
    )
    assert training_headline({**plan, "optimal": True})[0].endswith("recomputation, is faster")
