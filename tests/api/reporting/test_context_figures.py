"""Figures at other contexts against the same stages scored, and the best plans found, by reading the model anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from language_models import LLAMA

import mtpp
from mtpp.api.inputs.model_source import model_source
from mtpp.api.reporting.context_figures import context_figures, graphs_of_degrees
from mtpp.errors import InvalidPartition
from mtpp.units import format_bytes
from mtpp.views.report.context_section import ContextCurve, tokens_text

WIDE = LLAMA | {
    "num_hidden_layers": 6, "hidden_size": 64, "intermediate_size": 256, "vocab_size": 1000,
    "max_position_embeddings": 32768,
}  # fmt: skip
MACHINE = """
order = "free"
[[device]]
name = "fast"
count = 2
speed = 3
memory = "12MB"
[[device]]
name = "slow"
memory = "8MB"
"""


NODES = """
order = "free"
[[device]]
name = "node"
count = 2
memory = "6MB"
tensor_parallel = [1, 2]
tensor_link = "20GB/s"
[[device]]
name = "alone"
memory = "9MB"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with a configuration, and a machine file."""
    place = tmp_path / "tiny"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(WIDE))
    (tmp_path / "machine.toml").write_text(MACHINE)
    return place


def read(folder: Path, context: int | None, sequences: int = 6, **asked: Any) -> Any:
    """Read the model for a context, with two sequences in a step."""
    return mtpp.read(
        folder, machine=folder.parent / "machine.toml", context=context, sequences=sequences, batch=2, **asked
    )


def curve_of(plan: Any, folder: Path) -> ContextCurve:
    """Return the figures of a plan."""
    found = context_figures(plan.document(), model_source(str(folder), 2**30))
    assert isinstance(found, ContextCurve)
    return found


@pytest.mark.parametrize(("phase", "machine"), [("decode", MACHINE), ("prefill", MACHINE), ("decode", NODES)])
def test_points_are_what_reading_anew_gives(folder: Path, phase: str, machine: str) -> None:
    """Bottleneck, slowest and fullest stage, sequences that fit, and the best plan, at every context of the chart."""
    (folder.parent / "machine.toml").write_text(machine)
    plan = mtpp.partition(read(folder, 2048, phase=phase))
    curve = curve_of(plan, folder)
    assert (curve.planned, curve.batch, curve.sequences, curve.phase) == (2048, 2, 6, phase)
    assert [point.context for point in curve.points][:2] == [1024, 2048]
    assert curve.points[-1].context == 32768
    path = folder.parent / "plan.json"
    plan.save(path)
    for point in curve.points:
        tokens = 2 if phase == "decode" else 2 * point.context
        model = read(folder, point.context, phase=phase)
        if point.fits:
            again = mtpp.evaluate(model, path)
            rows = again.document()["stages"]
            assert point.tokens_per_s == pytest.approx(tokens * 10**12 / again.bottleneck)
            assert rows[point.slowest]["cost"] == again.bottleneck
            row = rows[point.fullest]
            assert point.held == row["param_bytes"] + row["state_bytes"] + row["peak_bytes"]
            best = mtpp.partition(model)
            assert point.best_tokens_per_s == pytest.approx(tokens * 10**12 / best.bottleneck)
        else:
            with pytest.raises(InvalidPartition):
                mtpp.evaluate(model, path)
        assert point.sequences is not None
        if point.sequences >= 2:
            mtpp.evaluate(read(folder, point.context, point.sequences, phase=phase), path)
        with pytest.raises(InvalidPartition):
            mtpp.evaluate(read(folder, point.context, max(2, point.sequences + 1), phase=phase), path)


def test_the_largest_context(folder: Path) -> None:
    """The stages hold all sequences at it, and not at one token more."""
    plan = mtpp.partition(read(folder, 2048))
    path = folder.parent / "plan.json"
    plan.save(path)
    curve = curve_of(plan, folder)
    assert curve.largest is not None
    assert curve.largest in [point.context for point in curve.points]
    mtpp.evaluate(read(folder, curve.largest), path)
    with pytest.raises(InvalidPartition):
        mtpp.evaluate(read(folder, curve.largest + 1), path)


def test_no_limit(folder: Path) -> None:
    """Without limits any context fits, and any number of sequences."""
    model = mtpp.read(folder, context=512, sequences=4)
    curve = curve_of(mtpp.partition(model, 2), folder)
    assert curve.largest is None
    assert {point.sequences for point in curve.points} == {None}
    assert all(point.fits and point.limit is None for point in curve.points)
    assert curve.points[0].context == 512


def test_reasons_for_no_figures(folder: Path) -> None:
    """A plan whose costs are not those of its stages has none."""
    document = mtpp.partition(read(folder, 2048)).document()
    source = model_source(str(folder), 2**30)
    document["stages"][0]["param_bytes"] += 1
    assert context_figures(document, source) == "the costs that the plan states are not those of its assignment"


def test_pages_have_the_figures(folder: Path, tmp_path: Path) -> None:
    """The page of a plan of a language model, verified with its folder, has both charts and the table."""
    pytest.importorskip("bokeh")
    plan = mtpp.partition(read(folder, 2048))
    page = mtpp.report(plan, tmp_path / "page.html", str(folder))
    assert page.passed
    for text in ('id="tokens"', 'id="sequences"', 'id="context-table"', "Tokens per second</dt>", "caches"):
        assert text in page.html


def test_numbers_of_tokens() -> None:
    """Multiples of 1,024 are short."""
    assert [tokens_text(one) for one in (1024, 3 * 1024, 2**20, 1000, 104202)] == ["1k", "3k", "1M", "1,000", "104,202"]


def test_shares_of_a_gpu(folder: Path, tmp_path: Path) -> None:
    """Weights of the layers of a stage on several GPUs add up to those of one GPU, as the plan has them."""
    pytest.importorskip("bokeh")
    (folder.parent / "machine.toml").write_text(NODES)
    plan = mtpp.partition(read(folder, 2048))
    document = plan.document()
    shares = graphs_of_degrees(document, model_source(str(folder), 2**30))
    assert shares.keys() == {2}
    sizes = dict(zip(shares[2].op_names, shares[2].param_bytes.tolist(), strict=True))
    for row in document["stages"]:
        if row["tensor_parallel"] == 2:
            held = sum(sizes[name] for name, stage in document["assignment"].items() if stage == row["index"])
            assert held == row["param_bytes"]
    page = mtpp.report(plan, tmp_path / "page.html", str(folder))
    assert page.html.count('of weights"') == len(document["assignment"])


def test_a_graph_alone(folder: Path, tmp_path: Path) -> None:
    """A page without the model says why it has no other contexts."""
    pytest.importorskip("bokeh")
    plan = mtpp.partition(read(folder, 2048))
    document = plan.document(embed=True)
    del document["model"]["path"]
    assert "Not drawn: the plan&#39;s own graph is of its context alone" in mtpp.report(document).html


def test_plans_for_capacity(folder: Path, tmp_path: Path) -> None:
    """The largest context of the stages is the capacity that the plan proves, which the page says first."""
    pytest.importorskip("bokeh")
    plan = mtpp.partition(read(folder, None), objective="context")
    capacity = plan.document()["capacity"]
    assert curve_of(plan, folder).largest == capacity["value"]
    html = mtpp.report(plan, tmp_path / "page.html", str(folder)).html
    assert f"<dt>Capacity</dt><dd>{capacity['value']:,} tokens <small>of 6 sequences" in html
    assert "no cut of consecutive ops for 3 devices within the memory limits holds more tokens" in html


def test_plans_for_both_phases(folder: Path, tmp_path: Path) -> None:
    """Working memory of prompts counts: stages hold no larger context than at prefill, nor at decode."""
    pytest.importorskip("bokeh")
    plan = mtpp.partition(read(folder, 2048, phase="both"), max_latency="1s")
    document = plan.document()
    curve = curve_of(plan, folder)
    path = folder.parent / "plan.json"
    plan.save(path)
    assert curve.largest is not None
    for phase in ("decode", "prefill"):
        mtpp.evaluate(read(folder, curve.largest, phase=phase), path)
    beyond = 0
    for phase in ("decode", "prefill"):
        try:
            mtpp.evaluate(read(folder, curve.largest + 1, phase=phase), path)
        except InvalidPartition:
            beyond += 1
    assert beyond
    html = mtpp.report(plan, tmp_path / "page.html", str(folder)).html
    assert "<dt>First token</dt>" in html
    assert "with a first token within 1.000 s" in html
    held = max(row["peak_bytes"] for row in document["first_token"]["stages"])
    assert f"{format_bytes(held)} of activations" in html
