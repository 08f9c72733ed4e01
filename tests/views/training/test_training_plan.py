"""How plans for training are shown: every figure, at every width."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from given_plans import chain_problem, given_training_plan
from rich.console import Console

from mtpp.formats.io.source import Source
from mtpp.formats.results.training_plan import Planned, TrainingTask
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.training.micro_batches import MicroBatches
from mtpp.training.nested_plan import NestedPlan, Superstage
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import LayerStage, NoPlan, TimeBound, TrainingPlan
from mtpp.training.problem import Schemes
from mtpp.units import exact_bytes, parse_bytes
from mtpp.views import terminal as terminals
from mtpp.views.training.training_plan import training_plan_text
from mtpp.views.training.training_texts import LINES, size_text
from mtpp.wording import counted


def _task(problem: Any, **changes: Any) -> TrainingTask:
    batch = MicroBatches(64, "64 = 1,024 / (2 × 8)", 8)
    task = TrainingTask(Source("chain.json", b"", "ab", Path("chain.json")), problem, batch, "piper", "exact")
    return replace(task, **changes)


def _planned(plan: TrainingPlan | NestedPlan, **changes: Any) -> Planned:
    return replace(Planned(_task(plan.problem), 0.5, plan), **changes)


def _figures(text: str) -> dict[str, str]:
    """Return the lines below the table by their names."""
    lines = text.split("\n\n")[-1].splitlines()
    return {line[:17].strip(): line[17:] for line in lines}


def test_table_shows_every_figure_of_a_stage() -> None:
    """A wide table holds layers, degrees, devices, memory, times and configurations; the header echoes the system."""
    lines = training_plan_text(_planned(given_training_plan()), "table").splitlines()
    assert lines[0] == "chain: 6 layers, 5 edges on 8 devices of 2 GiB, 25 GB/s (times in ms)"
    assert " ".join(lines[1].split()) == (
        "stage layers first … last d t devices in flight memory of 2 GiB compute edges gradients time busy "
        "configurations"
    )
    assert " ".join(lines[2].split()) == (
        "0 3 layer 0 … layer 2 2 1 2 2 1.369 GiB 68.5% 50.00 0.17 12.58 62.75 100.0% 2 vanilla, 1 recompute"
    )
    assert " ".join(lines[4].split()) == "2 1 layer 5 1 1 1 1 440 MiB 21.5% 30.00 0.34 0.00 30.34 48.3% 1 vanilla"


def test_figures_below_say_what_a_customer_asks() -> None:
    """Time, throughput in micro-batches and samples, proof, devices, batch, memory, heuristic and rules."""
    figures = _figures(training_plan_text(_planned(given_training_plan(notes=["so it is"])), "table"))
    assert figures == {
        "time per sample": "62.75 ms a micro-batch (stage 0), planned by piper",
        "throughput": "15.94 micro-batches/s, 127.5 samples/s",
        "ratio": f"1, proven optimal among {LINES}: lower bound 62.75 ms by given, tier exact",
        "devices": "5 of 8 used, busy 70.6% of the time on average (steady state, without bubbles)",
        "micro-batches": "4 at once (Σ d), at most 64 = 1,024 / (2 × 8) allowed",
        "memory": "at most 1.369 GiB on a device (stage 0) of 2 GiB",
        "bang per buck": "would choose no slower configurations in any stage",
        "note": "so it is",
        "rules": "convention paper; data parallelism, tensor parallelism, recomputation",
    }


@pytest.mark.parametrize(
    ("lower", "shown"),
    [
        (
            Fraction(62 * 10**9),
            f"1.0121 proven, within 1.2% of optimal among {LINES}: lower bound 62.00 ms",
        ),
        (
            Fraction(20 * 10**9),
            f"3.1375 proven among {LINES}: lower bound 20.00 ms",
        ),
        (Fraction(0), "none proven: lower bound 0 ps"),
    ],
)
def test_ratio_says_how_close_the_plan_is(lower: Fraction, shown: str) -> None:
    """Small distances are said in percent as well, a bound of nothing proves nothing."""
    figures = _figures(training_plan_text(_planned(given_training_plan(lower=lower)), "table"))
    assert figures["ratio"].startswith(shown)


def test_a_ratio_just_above_1_does_not_read_as_1() -> None:
    """A plan that is not proven optimal never looks so."""
    plan = given_training_plan()
    close = given_training_plan(lower=plan.time_per_sample * Fraction(999_999, 1_000_000))
    assert _figures(training_plan_text(_planned(close), "table"))["ratio"].startswith("1.000001 proven, within 0.0001%")


@pytest.mark.parametrize(
    ("width", "missing"),
    [(80, "devices, in flight, memory, gradients"), (100, "devices, in flight, memory"), (120, "")],
)
def test_narrow_terminals_lose_columns_and_say_which(monkeypatch: pytest.MonkeyPatch, width: int, missing: str) -> None:
    """No line is wider than the terminal; what is left out is named, configurations move below the table."""
    monkeypatch.setattr(terminals, "result_terminal", lambda **_: Console(file=io.StringIO(), width=width))
    text = training_plan_text(_planned(given_training_plan()), "table")
    assert max(map(len, text.splitlines())) <= width
    figures = _figures(text)
    assert figures["configurations"].startswith("stage 0: 2 vanilla, 1 recompute; stage 1: 2 vanilla; stage 2: 1")
    assert figures.get("not shown", "").startswith(missing)
    for column in ("stage", "layers", "first … last", " d ", " t ", "of 2 GiB", "time", "busy"):
        assert column in text.splitlines()[1]


def test_names_lose_their_middles_where_room_is_short() -> None:
    """Both ends of a stage stay recognisable."""
    (short,) = terminals._shortened(["decoder.layers.10 … decoder.layers.31"], 23)
    assert short == "deco…rs.10 … deco…rs.31"


def test_what_all_layers_run_as_is_said_once() -> None:
    """A column of the same in all rows is none."""
    text = training_plan_text(
        _planned(given_training_plan(stages=[LayerStage([0, 1, 2, 3, 4, 5], 4, 2, [0] * 6)])), "table"
    )
    assert "configurations  " not in text.splitlines()[1]
    assert _figures(text)["configurations"] == "vanilla for all 6 layers"


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"heuristic_differs": [2]}, "would make stage 2 slower, or find nothing that fits"),
        ({"heuristic_differs": [0, 2]}, "would make stages 0, 2 slower, or find nothing that fits"),
    ],
)
def test_stages_where_the_heuristic_would_be_slower_are_named(changes: dict[str, Any], shown: str) -> None:
    """Exact and heuristic choice are held against each other."""
    assert _figures(training_plan_text(_planned(given_training_plan(), **changes), "table"))["bang per buck"] == shown


def test_names_are_safe_to_show() -> None:
    """Neither lines nor what a terminal takes for orders come out of a file, and one thing is no plural."""
    plan = given_training_plan()
    model = plan.problem.model
    layers = [replace(model.layers[0], name="la\x1b[2Jyer\n0"), *model.layers[1:]]
    unruly = replace(plan, problem=replace(plan.problem, model=replace(model, name="a\nb", layers=layers)))
    for output_format, bracket in (("table", "["), ("markdown", r"\[")):
        text = training_plan_text(_planned(unruly), output_format)
        assert r"a\nb: 6 layers, 5 edges on 8 devices" in text.splitlines()[0]
        assert rf"la\x1b{bracket}2Jyer\n0 … layer 2" in text
    assert [counted(1, "edge"), counted(1000, "edge"), counted(0, "edge")] == ["1 edge", "1,000 edges", "0 edges"]
    assert [counted(1, "micro-batch"), counted(4, "micro-batch")] == ["1 micro-batch", "4 micro-batches"]


def test_the_heuristic_itself_and_planners_without_one_say_so() -> None:
    """What chose the configurations is said only where something was chosen."""
    plan = given_training_plan()
    heuristic = _planned(plan, task=_task(plan.problem, knapsack="heuristic"))
    said = "chose the configurations (--knapsack heuristic): no others are faster"
    assert _figures(training_plan_text(heuristic, "table"))["bang per buck"] == said
    open_plan = replace(plan, lower=TimeBound(Fraction(1), "work", "exact"))
    heuristic = _planned(open_plan, task=_task(plan.problem, knapsack="heuristic"))
    said = "chose the configurations (--knapsack heuristic): others may be faster"
    assert _figures(training_plan_text(heuristic, "table"))["bang per buck"] == said
    equi = _planned(plan, task=_task(plan.problem, planner="equi"))
    assert "bang per buck" not in training_plan_text(equi, "table")


def test_rules_and_limits_are_echoed() -> None:
    """Exact sums of degrees, forbidden schemes, the convention and an early end are all said."""
    problem = chain_problem(
        exact_micro_batches=True, micro_batches=4, convention="program", schemes=Schemes(recompute=False)
    )
    stages = [LayerStage([0, 1, 2], 2, 1, [0, 0, 0]), LayerStage([3, 4, 5], 2, 2, [0, 0, 0])]
    plan = given_training_plan(problem, stages, stopped="time-limit")
    figures = _figures(training_plan_text(_planned(plan), "table"))
    assert figures["micro-batches"].startswith("4 at once (Σ d), exactly 64")
    assert figures["rules"] == "convention program; data parallelism, tensor parallelism; no recomputation"
    assert figures["stopped"] == "time limit: best plan and bound so far"


def test_no_plan_says_the_least_memory_that_would_do() -> None:
    """The memory is rounded up to what can be given, and a lack of proof is said."""
    none = NoPlan(chain_problem(), "piper", True, 700 * 2**20 + 1, "finished", "nothing fits")
    text = training_plan_text(Planned(_task(chain_problem()), 0.1, no_plan=none), "table")
    assert text.splitlines() == [
        "chain: 6 layers, 5 edges on 8 devices of 2 GiB, 25 GB/s",
        "no plan        nothing fits",
        "least memory   700 MiB a device (734,003,201 bytes): --memory 701MiB would do",
        "micro-batches  at most 64 = 1,024 / (2 × 8) at once",
        "rules          convention paper; data parallelism, tensor parallelism, recomputation",
    ]
    unproven = replace(none, proven=False, least_memory_bytes=None)
    text = training_plan_text(Planned(_task(chain_problem()), 0.1, no_plan=unproven), "markdown")
    assert "- **no plan**: nothing fits (not proven that there is none)\n- **least memory**: not known\n" in text
    assert training_plan_text(Planned(_task(chain_problem()), 0.1, no_plan=none), "csv").count("\n") == 1


def test_csv_and_markdown_hold_the_same_stages() -> None:
    """CSV has plain numbers in the model's unit, markdown the cells of the table."""
    plan = given_training_plan()
    rows = list(csv.DictReader(io.StringIO(training_plan_text(_planned(plan), "csv"))))
    assert [row["configurations"] for row in rows] == ["2 vanilla, 1 recompute", "2 vanilla", "1 vanilla"]
    assert [row["first"] + ">" + row["last"] for row in rows] == [
        "layer 0>layer 2",
        "layer 3>layer 4",
        "layer 5>layer 5",
    ]
    assert float(rows[0]["time"]) == float(plan.time_per_sample / 10**9)
    assert {row["time_unit"] for row in rows} == {"ms"}
    markdown = training_plan_text(_planned(plan), "markdown")
    assert markdown.startswith("### chain: 6 layers")
    assert "| 1 | 2 | layer 3 … layer 4 | 1 | 2 | 2 | 2 |" in markdown
    assert "- **ratio**: 1, proven optimal" in markdown


def test_several_levels_show_copies_and_how_busy_links_are() -> None:
    """Devices count all copies of a stage; superstages are listed with what their links do."""
    problem = NestedProblem.build(
        chain_problem().model,
        Machine.of_levels((Level(4, Link(10**11)), Level(2, Link(10**9))), 2**31),
        micro_batches=64,
    )
    inside = [LayerStage([0, 1, 2], 2, 1, [0, 0, 0]), LayerStage([3, 4, 5], 1, 2, [0, 0, 0])]
    plan = NestedPlan(problem, "piper", [Superstage(2, inside)], TimeBound(Fraction(0), "given", "exact"), "finished")
    text = training_plan_text(_planned(plan), "table")
    assert (
        text.splitlines()[0] == "chain: 6 layers, 5 edges on 8 devices of 2 GiB, 4 × 100 GB/s, 2 × 1 GB/s (times in ms)"
    )
    assert " ".join(text.splitlines()[2].split()).startswith("0 3 layer 0 … layer 2 2 1 4 4 2 ")
    figures = _figures(text)
    assert figures["time per sample"] == "629.1 ms a micro-batch (links of level 2 around stages 0–1), planned by piper"
    assert figures["level 2"] == "stages 0–1 × 2, links busy 100.0%"
    assert figures["devices"].startswith("8 of 8 used")


@pytest.mark.parametrize(
    ("count", "exact", "shown"),
    [
        (8 * 2**30, "8GiB", "8 GiB"),
        (80 * 10**9, "80GB", "80 GB"),
        (5 * 2**29, "2560MiB", "2.5 GiB"),
        (25_000 * 2**30, "25000GiB", "25,000 GiB"),
        (1_288_490_188, "1288490188B", "1.2 GiB"),
    ],
)
def test_sizes_are_echoed_as_they_were_given(count: int, exact: str, shown: str) -> None:
    """Exact sizes read back, shown ones are short."""
    assert (exact_bytes(count), size_text(count)) == (exact, shown)
    assert parse_bytes(exact) == count
