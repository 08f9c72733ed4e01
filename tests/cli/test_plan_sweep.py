"""``mtpp plan --sweep``: which devices and sums, and how the table looks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from given_training_plans import chain_problem

from mtpp.api.sweep_training import Sweep
from mtpp.formats.io.source import Source
from mtpp.formats.results.training_plan import TrainingTask
from mtpp.formats.results.training_sweep import Swept
from mtpp.training.micro_batches import MicroBatches
from mtpp.training.sweep_cell import SweepCell
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
        "4 30.000 20.000 (5.3 %) 4 50 2.00×",
    ]
    assert "optimal       3 of 4, proven; (x %): at most x % above the best time that there can be" in lines
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
