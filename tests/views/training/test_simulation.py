"""Tables, charts and traces of simulated pipelines."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from pipeline_events import random_stage_graph, simulate_events
from rich.console import Console

from mtpp.colours import PASSES
from mtpp.formats.results.pass_trace import write_trace
from mtpp.formats.training.stage_graph import stage_graph_from_document
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.simulation import Simulation
from mtpp.training.stage_graph import PipelineStage, StageGraph, StageTransfer, interleaved_order
from mtpp.views.terminal import Medium
from mtpp.views.training.gantt import gantt_text
from mtpp.views.training.gantt_svg import gantt_svg
from mtpp.views.training.simulation import simulation_text

SVG = "{http://www.w3.org/2000/svg}"


def line(micro_batches: int, *, transfer: int = 0, synchronisation: int = 0, name: str = "a line") -> Simulation:
    """Return three equal stages in a line."""
    stages = [
        PipelineStage(f"stage {s}", 1, 10, 20, synchronisation, interleaved_order(micro_batches, 3 - s))
        for s in range(3)
    ]
    transfers = [StageTransfer(s, s + 1, transfer, transfer) for s in range(2)]
    return simulate(StageGraph(name, "ps", micro_batches, stages, transfers))


@pytest.mark.parametrize("seed", range(16))
def test_charts_show_the_time_of_each_kind(seed: int) -> None:
    """Columns as wide as a tick show exactly what the stage does in it."""
    document = random_stage_graph(seed)
    if simulate_events(document) is None:
        return
    simulation = simulate(stage_graph_from_document(document, "x"))
    total = simulation.iteration
    if total < 20:
        return
    rows = gantt_text(simulation.timeline, total + len("stage 0") + 3).splitlines()
    for s, row in enumerate(rows[: len(simulation.graph.stages)]):
        cells = row[row.index("|") + 1 : -1]
        assert len(cells) == total
        expected = [" "] * total
        for one in simulation.passes(s):
            expected[one.start : one.end] = ("░" if one.number > 0 else "█") * (one.end - one.start)
            label = str(abs(one.number) - 1)
            if len(label) < one.end - one.start:
                expected[one.start : one.start + len(label)] = label
        end = simulation.ends[s]
        gradients = simulation.graph.stages[s].synchronisation_ticks
        expected[end : end + gradients] = "▒" * gradients
        assert cells == "".join(expected)


def test_a_crowded_chart_shows_both_kinds() -> None:
    """Where a column holds many passes, warm-up and cool-down still stand out."""
    rows = gantt_text(line(120).timeline, 110).splitlines()
    assert re.fullmatch(r"stage 0 \|░ ▓{90,}██\|", rows[0])
    assert rows[-1].strip() == "░ forward  █ backward  ▓ both in turns"


def test_pictures_hold_every_pass() -> None:
    """Well-formed SVG with a rectangle for each pass, message and synchronisation, at its time; names are escaped."""
    simulation = line(4, transfer=3, synchronisation=5, name='<b>&"')
    root = ElementTree.fromstring(gantt_svg(simulation.timeline))
    told = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert sum(text.startswith("F") for text in told) == 3 * 4 + 2 * 4
    assert sum(text.startswith("B") for text in told) == 3 * 4 + 2 * 4
    assert sum(text.startswith("synchronisation") for text in told) == 3
    assert "F1, stage 1: 23 ps to 33 ps" in told
    assert "F0, transfer 0 → 1: 10 ps to 13 ps" in told


def test_pictures_show_the_time_of_each_kind() -> None:
    """The area of each colour is what stages do, however short some passes are; nothing idle is drawn as work."""
    times = [(10**6, 10**12, 0), (10**12, 10**6, 10**11)]
    stages = [PipelineStage(f"stage {s}", 1, *one, interleaved_order(30, 2 - s)) for s, one in enumerate(times)]
    transfers = [StageTransfer(0, 1, 10**6, 10**10)]
    sparse = simulate(StageGraph("x", "ps", 30, stages, transfers))
    for simulation in (sparse, line(20_000, synchronisation=10**5)):
        picture = gantt_svg(simulation.timeline)
        for kind, colour, busy in (
            ("forward", PASSES["forward"], lambda one: one.micro_batches * one.forward_ticks),
            ("backward", PASSES["backward"], lambda one: one.micro_batches * one.backward_ticks),
            ("synchronisation", PASSES["synchronisation"], lambda one: one.synchronisation_ticks),
        ):
            drawn = re.findall(
                rf'y="(\S+)" width="(\S+)" height="(\S+)" fill="{colour}"><title>|'
                rf'y="(\S+)" width="(\S+)" height="(\S+)" fill="{colour}" stroke',
                picture,
            )
            area = sum(float(one[1] or one[4]) * float(one[2] or one[5]) for one in drawn)
            expected = 1200 * 22 * sum(map(busy, simulation.graph.stages)) / simulation.iteration
            assert area == pytest.approx(expected, abs=0.02 * expected + 22 * 0.1 * 60), kind
    assert "F0 … F1, stage 0: 0 ps to 2.000 µs" in gantt_svg(sparse.timeline)


def test_a_stage_that_mostly_waits_is_seen() -> None:
    """Many short passes in a column show, though the stage is idle for most of it."""
    stages = [
        PipelineStage(f"stage {s}", 1, 10 + 90 * s, 20 + 180 * s, 0, interleaved_order(500, 2 - s)) for s in (0, 1)
    ]
    simulation = simulate(StageGraph("x", "ps", 500, stages, [StageTransfer(0, 1, 0, 0)]))
    row = gantt_text(simulation.timeline, 100).splitlines()[0]
    assert simulation.stages[0].busy < 0.11 * simulation.iteration
    assert row.count(" ") < 20


def test_a_large_picture_is_small() -> None:
    """Passes that are narrower than half a pixel share rectangles."""
    assert gantt_svg(line(20_000).timeline).count("<rect") < 3 * 2 * 1200 * 2 * 1.1


def test_traces_are_events_side_by_side() -> None:
    """A thread for each stage and channel; within a thread, no two events overlap; durations add up."""
    simulation = line(5, transfer=3, synchronisation=7)
    events: list[dict[str, Any]] = json.loads(write_trace(simulation.timeline))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(names.values()) == ["stage 0", "stage 1", "stage 2"] + [
        f"channel {a} → {b}" for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))
    ]
    complete = [event for event in events if event["ph"] == "X"]
    assert {event["cat"] for event in complete} == {"forward", "backward", "transfer", "synchronisation"}
    for thread in names:
        here = sorted((e["ts"], e["ts"] + e["dur"]) for e in complete if e["tid"] == thread)
        assert all(first[1] <= second[0] + 1e-12 for first, second in pairwise(here))
    of_stages = sum(e["dur"] for e in complete if e["tid"] < 3) * 10**6
    assert of_stages == pytest.approx(sum(one.busy + one.synchronisation for one in simulation.stages))


def test_narrow_tables_leave_columns_out_and_no_figure_is_cut() -> None:
    """What is shown is whole; what is not shown is named."""
    simulation = line(4, transfer=5, synchronisation=7, name="narrow")
    wide = simulation_text(simulation, Medium("table", Console(width=200, force_terminal=True, color_system=None)))
    assert "not shown" not in wide
    narrow = simulation_text(simulation, Medium("table", Console(width=66, force_terminal=True, color_system=None)))
    title, header, *rest = narrow.splitlines()
    assert "…" not in header
    assert all(len(row) <= 66 for row in (title, header, *rest[:3]))
    assert re.search(r"not shown +last B ends", narrow)
    assert all(name in header for name in ("busy", "waits", "in flight"))
    assert "…" not in "".join(rest[:3])


def test_tables_say_the_same_in_every_format() -> None:
    """Iteration, phases and stages; a file's names cannot break out of a cell."""
    simulation = line(4, transfer=1)
    table = simulation_text(simulation, "table")
    assert "a line: 3 stages, 3 deep, mini-batch of 4 samples (times in ps)" in table
    assert f"iteration   {simulation.iteration} ps" in table
    assert "channels    busiest 0 → 1" in table
    rows = simulation_text(simulation, "csv").splitlines()
    assert rows[0].startswith("index,name,micro_batch,micro_batches,first_forward_start_ticks")
    assert len(rows) == 4
    assert simulation_text(simulation, "markdown").count("\n| ") == 1 + 3
    assert "gradients" not in table
