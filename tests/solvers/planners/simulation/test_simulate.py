"""Simulation of stage graphs: figures of the paper, a second simulator, a closed form, and orders that never end."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pipeline_events import random_stage_graph, simulate_events

from mtpp.errors import Deadlock
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.stage_graph import stage_graph_from_document
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.simulation import Simulation
from mtpp.training.stage_graph import PipelineStage, StageGraph, StageTransfer, interleaved_order

COMPARED = (
    "first_forward_start",
    "first_backward_start",
    "last_forward_end",
    "last_backward_end",
    "busy",
    "peak_in_flight",
)


def simulated(document: dict[str, Any]) -> Simulation:
    """Return the simulation of a document."""
    return simulate(stage_graph_from_document(parse_json(json.dumps(document).encode(), "x"), "x"))


def figures(simulation: Simulation) -> dict[str, Any]:
    """Return what the second simulator returns."""
    stages = [{key: asdict(one)[key] for key in COMPARED} for one in simulation.stages]
    return {"iteration": simulation.iteration, "stages": stages}


def test_reference_simulations(shared_reference: Path) -> None:
    """Iterations and figures of all stages are those of the reference, and of the second simulator."""
    cases = json.loads((shared_reference / "graphpipe.json").read_text())["simulations"]
    assert len(cases) == 12
    for case in cases:
        expected = {"iteration": case["iteration"], "stages": case["stages"]}
        assert figures(simulated(case["graph"])) == expected
        assert simulate_events(case["graph"]) == expected


def _line(case: dict[str, Any]) -> dict[str, Any]:
    forward, backward = map(Fraction, case["forward_backward_per_sample"])
    stages = [
        {
            "micro_batch": size,
            "forward": int(forward * size),
            "backward": int(backward * size),
            "in_flight": -(-samples // size),
        }
        for size, samples in zip(case["micro_batch"], case["in_flight_samples"], strict=True)
    ]
    ends = [(s, s + 1) for s in range(len(stages) - 1)]
    if "side by side" in case["name"]:
        ends = [(s, len(stages) - 1) for s in range(len(stages) - 1)]
    transfers = [{"source": a, "target": b, "forward": 0, "backward": 0} for a, b in ends]
    return {
        "format": "mtpp-stage-graph", "version": 1, "time_unit": "ps", "mini_batch": case["samples"],
        "stages": stages, "transfers": transfers,
    }  # fmt: skip


def test_figures_of_the_paper(shared_reference: Path) -> None:
    """Figures 1, 2 and 5 of Jeon et al. (2025)."""
    cases = json.loads((shared_reference / "graphpipe.json").read_text())["figures"]
    assert len(cases) == 5
    for case in cases:
        simulation = simulated(_line(case))
        assert simulation.iteration == case["iteration"], case["name"]
    top, bottom = (simulated(_line(case)) for case in cases[1:3])
    assert (top.graph.depth, bottom.graph.depth) == (4, 2)
    assert (top.phases.warm_up, bottom.phases.warm_up) == (4, 2)


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_a_second_simulator_agrees(first: int) -> None:
    """Random stage graphs of any sizes and orders: the same times, or waiting for each other in both."""
    ended = 0
    for seed in range(first, first + 100):
        document = random_stage_graph(seed, shuffled=seed % 3 == 0)
        expected = simulate_events(document)
        if expected is None:
            with pytest.raises(Deadlock, match=r"wait for each other: ([FB]\d+ of stage \d+ waits for|…)"):
                simulated(document)
        else:
            assert figures(simulated(document)) == expected, seed
            ended += 1
    assert 30 < ended < 100


def test_spans_are_those_of_the_clock() -> None:
    """No pass begins before its messages have arrived, no two messages of a channel overlap."""
    for seed in range(200):
        document = random_stage_graph(seed)
        if simulate_events(document) is None:
            continue
        simulation = simulated(document)
        stages = document["stages"]
        for c, channel in enumerate(simulation.channels):
            messages = simulation.messages(c)
            assert len(messages) == channel.messages
            assert sum(one.end - one.start for one in messages) == channel.busy
            assert all(one.end <= other.start for one, other in pairwise(messages))
            sent = {one.number: one.end for one in simulation.passes(channel.source)}
            begun = {one.number: one.start for one in simulation.passes(channel.target)}
            sign = 1 if channel.forward else -1
            sizes = [stages[s]["micro_batch"] for s in (channel.source, channel.target)]
            for one in messages:
                assert one.start >= sent[one.number]
                first_sample = (abs(one.number) - 1) * sizes[0] + 1
                for number, start in begun.items():
                    if number * sign > 0 and abs(number) * sizes[1] >= first_sample:
                        assert start >= one.end


def test_critical_paths() -> None:
    """Passes from the start to the end of the iteration; between two of them there is nothing but messages."""
    switched = 0
    for seed in range(200):
        document = random_stage_graph(seed)
        if simulate_events(document) is None:
            continue
        simulation = simulated(document)
        timeline, path = simulation.timeline, simulation.critical
        assert (path[0].start, path[-1].end) == (0, simulation.iteration)
        spans = [{(bar.start, bar.end) for bar in row.bars} for row in timeline.rows]
        assert all((one.start, one.end) in spans[one.row] for one in path)
        for one, other in pairwise(path):
            reached, bars = {one.end}, [bar for row in timeline.channels for bar in row.bars]
            for bar in sorted(bars, key=lambda bar: bar.start):
                reached |= {bar.end} if bar.start in reached else set()
            assert other.start in reached, seed
            switched += one.row != other.row
    assert switched > 50


def test_equal_stages_take_micro_batches_and_depth() -> None:
    """Free transfers, as few in flight as the depth asks for: (M + depth − 1) · (f + g), whatever the stage graph."""
    draw = random.Random(5)
    for _ in range(300):
        count, micro_batches = draw.randint(1, 9), draw.randint(1, 12)
        ends = [(a, b) for a in range(count) for b in range(a + 1, count) if draw.random() < 0.4]
        below = [1] * count
        for a in reversed(range(count)):
            below[a] += max((below[b] for source, b in ends if source == a), default=0)
        forward, backward = draw.randint(1, 9), draw.randint(1, 9)
        stages = [
            PipelineStage(str(s), 2, forward, backward, 0, interleaved_order(micro_batches, below[s]))
            for s in range(count)
        ]
        graph = StageGraph("x", "ps", 2 * micro_batches, stages, [StageTransfer(a, b, 0, 0) for a, b in ends])
        assert graph.depth == max(below)
        assert simulate(graph).iteration == (micro_batches + graph.depth - 1) * (forward + backward)


def test_gpipe_on_a_line() -> None:
    """All forward passes first: (M + S − 1) · (f + g) as well (Huang et al. 2019)."""
    stages = [PipelineStage(str(s), 1, 3, 5, 0, interleaved_order(6, 6, 6)) for s in range(4)]
    graph = StageGraph("x", "ps", 6, stages, [StageTransfer(s, s + 1, 0, 0) for s in range(3)])
    simulation = simulate(graph)
    assert simulation.iteration == (6 + 4 - 1) * (3 + 5)
    assert [one.peak_in_flight for one in simulation.stages] == [6] * 4
    assert simulation.phases.steady == 0


def test_phases_and_bubbles_add_up() -> None:
    """Warm-up, steady state and cool-down are the iteration; so are work, gradients and bubbles of each stage."""
    for seed in range(100):
        document = random_stage_graph(seed)
        if simulate_events(document) is None:
            continue
        simulation = simulated(document)
        phases = simulation.phases
        assert min(phases.warm_up, phases.steady, phases.cool_down) >= 0
        assert phases.warm_up + phases.steady + phases.cool_down == simulation.iteration
        assert all(one.busy + one.bubble + one.synchronisation == simulation.iteration for one in simulation.stages)


def test_a_deadlock_names_the_passes() -> None:
    """Two stages that run their micro-batches in opposite orders, and one whose backward pass comes first."""
    order = {"micro_batch": 1, "forward": 1, "backward": 1}
    base = {"format": "mtpp-stage-graph", "version": 1, "time_unit": "ps", "mini_batch": 2}
    link = {"source": 0, "target": 1, "forward": 0, "backward": 0}
    opposite = [{**order, "order": "F1 B1 F2 B2"}, {**order, "order": "F2 F1 B2 B1"}]
    with pytest.raises(Deadlock) as caught:
        simulated({**base, "stages": opposite, "transfers": [link]})
    assert caught.value.exit_code == 1
    cycle = str(caught.value).split(": ")[-1].split(";")[0].replace(", which", "").split(" waits for ")
    assert cycle[0] == cycle[-1]
    assert {"B1 of stage 0", "F2 of stage 0", "F2 of stage 1"} <= set(cycle)
    alone = [{**order, "order": "B1 F1 F2 B2"}]
    with pytest.raises(Deadlock, match="B1 of stage 0 waits for F1 of stage 0, which waits for B1 of stage 0"):
        simulated({**base, "stages": alone, "transfers": []})
