"""``mtpp plan --sweep`` and plans of irregular models: devices and sums, how the table looks, what is proven."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from given_plans import chain_problem
from irregular_campaign import piper_problem, read_model, split_plan
from irregular_commands import graph_options, line_options, split_options
from irregular_freedoms import freed, freed_graph, freed_split, written_anew
from irregular_graph_oracle import best_graph_plan
from irregular_models import irregular_graph_case, irregular_line_case, irregular_split_case
from training_oracles import best_time

from mtpp.api.sweep_training import Sweep
from mtpp.cli.main import root
from mtpp.errors import InputError
from mtpp.formats.io.source import Source
from mtpp.formats.results.training_plan import TrainingTask
from mtpp.formats.results.training_sweep import Swept
from mtpp.training.micro_batches import MicroBatches
from mtpp.training.plan import SweepCell
from mtpp.views.training.training_sweep import sweep_text

MS = 10**9


def _swept(
    times: Mapping[tuple[int, int], tuple[int, int] | None], devices: Sequence[int], sums: Sequence[int]
) -> Swept:
    """Return a table of (time, lower bound) in ms, or None where no plan fits."""
    cells = {
        place: SweepCell(None, Fraction(0), None)
        if pair is None
        else SweepCell(Fraction(pair[0] * MS), Fraction(pair[1] * MS), place[0])
        for place, pair in times.items()
    }
    source = Source("chain.json", b"", "ab", Path("chain.json"))
    task = TrainingTask(source, chain_problem(), MicroBatches(64, "64"), "piper", "exact")
    return Swept(task, devices, sums, cells, "finished", 0.5)


TABLE = {(1, 2): None, (1, 8): None, (2, 2): (50, 50), (2, 8): (40, 40), (4, 2): (30, 30), (4, 8): (20, 19)}


def test_table_has_devices_down_and_sums_across() -> None:
    """Each cell is a time, with its distance to the bound where it is not proven optimal."""
    lines = sweep_text(_swept(TABLE, [1, 2, 4], [2, 8]), "table").splitlines()
    assert lines[0] == "chain: best time per sample on up to 8 devices of 2 GiB, 25 GB/s (ms)"
    assert [" ".join(line.split()) for line in lines[1:5]] == [
        "devices Σ d ≤ 2 Σ d ≤ 8 stages micro-batches/s speed-up",
        "1 – – – – –",
        "2 50.000 40.000 2 25 1.00×",
        "4 30.000 20.000 (5.3%) 4 50 2.00×",
    ]
    assert "optimal       3 of 4, proven; (x%): at most x% above the best time that there can be" in lines
    assert "–             no plan fits, proven: 2 of 6" in lines


def test_cells_without_a_plan_and_cells_not_reached_differ() -> None:
    """A dash is a proof that there is no plan, a question mark is none; JSON and CSV tell them apart as well."""
    swept = replace(_swept({(1, 2): None, (2, 2): (5, 5)}, [1, 2, 4], [2]), stopped="interrupted")
    text = sweep_text(swept, "markdown")
    assert "|---:|---:|---:|---:|---:|" in text
    assert "| 1 | – | – | – | – |" in text
    assert "| 4 | ? | – | – | – |" in text
    assert "- **–**: no plan fits, proven: 1 of 3\n- **?**: not reached, so not known: 1 of 3" in text
    assert "- **stopped**: interrupted: best times and bounds so far" in text
    assert [row["feasible"] for row in json.loads(Sweep(swept).to_json())["rows"]] == [False, True, None]
    rows = csv.DictReader(io.StringIO(sweep_text(swept, "csv")))
    assert [row["feasible"] for row in rows] == ["False", "True", ""]


def test_tables_without_a_plan_say_whether_that_is_proven() -> None:
    """Where cells are open there may be one."""
    assert _swept({(1, 2): (5, 5)}, [1, 2], [2]).problem is None
    assert _swept({(1, 2): None}, [1], [2]).problem == "no plan fits on any of these numbers of devices"
    assert _swept({(1, 2): None}, [1, 2], [2]).problem == "no plan was found before the search ended"
    assert sweep_text(_swept({}, [1], [2]), "table").splitlines()[0].endswith("on up to 8 devices of 2 GiB, 25 GB/s")


def test_json_and_csv_hold_every_cell() -> None:
    """Exact times are there, and none where no plan fits."""
    swept = _swept(TABLE, [1, 2, 4], [2, 8])
    document = json.loads(Sweep(swept).to_json())
    assert (document["format"], document["version"], document["planner"]) == ("mtpp-training-sweep", 1, "piper")
    assert (document["devices"], document["degrees_sums"]) == ([1, 2, 4], [2, 8])
    assert document["rows"][0] == {
        "devices": 1, "degrees_sum": 2, "feasible": False, "time_per_sample": None, "time_per_sample_ticks": None,
        "throughput_per_s": None, "lower_bound_ticks": None, "ratio": None, "optimal": False, "stages": None,
    }  # fmt: skip
    assert document["rows"][-1] == {
        "devices": 4, "degrees_sum": 8, "feasible": True, "time_per_sample": 20.0,
        "time_per_sample_ticks": [20 * MS, 1], "throughput_per_s": 50.0, "lower_bound_ticks": [19 * MS, 1],
        "ratio": 20 / 19, "optimal": False, "stages": 4,
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(sweep_text(swept, "csv"))))
    assert [(row["devices"], row["degrees_sum"], row["time_per_sample"]) for row in rows][1:3] == [
        ("1", "8", ""),
        ("2", "2", "50.0"),
    ]


def test_nothing_feasible_is_known() -> None:
    """The command exits with 1 then."""
    assert _swept(TABLE, [1, 2, 4], [2, 8]).feasible
    assert not _swept({(1, 2): None}, [1], [2]).feasible


@pytest.mark.parametrize("total", [0, 1])
def test_bounds_of_nothing_prove_no_ratio(total: int) -> None:
    """A lower bound of 0 leaves the ratio open, unless the time is 0 as well."""
    document = json.loads(Sweep(_swept({(1, 2): (total, 0)}, [1], [2])).to_json())
    assert document["rows"][0]["ratio"] == (None if total else 1.0)


FEW = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 24))]


def planned(folder: Path, model: Any, options: list[str]) -> Any:
    """Run ``plan`` and ``verify``; return the plan's document, None where the request is refused."""
    file, plan = folder / "model.json", folder / "plan.json"
    file.write_text(json.dumps(model))
    done = CliRunner().invoke(root, ["plan", str(file), *options, "-q", "-o", str(plan)])
    if not plan.exists():
        assert getattr(done.exception, "exit_code", done.exit_code) in (1, 2), (done.output, done.exception)
        return None
    verified = CliRunner().invoke(root, ["verify", str(plan), "--model", str(file)])
    assert verified.exit_code == 0, verified.output
    return json.loads(plan.read_text())


@pytest.mark.parametrize("seed", FEW)
def test_stage_graphs(tmp_path: Path, seed: int) -> None:
    """The iteration of every plan is the shortest that there is."""
    document, asked = irregular_graph_case(seed)
    draw = random.Random(f"command {seed}")
    model = freed(document, draw)
    found, best = planned(tmp_path, written_anew(model, draw), graph_options(asked)), best_graph_plan(model, asked)
    assert (found and found["iteration_ticks"]) == (best and best.iteration)


@pytest.mark.parametrize("seed", FEW)
def test_pipelines_by_degrees(tmp_path: Path, seed: int) -> None:
    """The time per sample of every plan is the least that there is."""
    document, asked = irregular_line_case(seed)
    draw = random.Random(f"command {seed}")
    model = written_anew(freed(document, draw, degrees=True), draw)
    found = planned(tmp_path, model, line_options(asked))
    try:
        best = best_time(piper_problem(model, asked))
    except InputError:
        best = None
    assert (found and found.get("time_per_sample_ticks")) == (best and [best.numerator, best.denominator])


@pytest.mark.parametrize("seed", FEW)
def test_split_points(tmp_path: Path, seed: int) -> None:
    """The iteration is that of the plan in Python, which is held against brute force."""
    document, asked = irregular_split_case(seed)
    draw = random.Random(f"command {seed}")
    layers = "layers" in document
    model = written_anew(freed(document, draw) if layers else freed_graph(document, draw), draw)
    asked = freed_split(asked, draw)
    given = {key: asked[key] for key in ("devices", "micro_batches", "memory", "speed", "loops", "latency", "order")}
    given |= {key: asked[key] for key in ("transport", "buffers", "backward_ratio", "schedule")}
    given |= {"loops": (1,)} if asked["schedule"] else {key: asked[key] for key in ("loop_batch", "prefetch")}
    given |= {} if layers else {"state": asked["state"]}
    if layers or not all("transfer" in one for one in document["tensors"]):
        given["bandwidth"] = asked["bandwidth"]
    due, _ = split_plan(read_model(model) if layers else model, given)
    found = planned(tmp_path, model, split_options(given))
    assert (found and found["iteration_ticks"]) == (due and due.document()["iteration_ticks"])
