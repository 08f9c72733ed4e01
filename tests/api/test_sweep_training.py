"""Sweeps from Python: the table of the command, its cells, and parameters that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from given_plans import chain_model
from planning import plan_with, sweep_with
from processes import run

from mtpp.api.sweep_training import default_devices, default_sums
from mtpp.errors import Infeasible, InputError
from mtpp.formats.training.native import write_training_model

SYSTEM: dict[str, Any] = {"memory": "2GiB", "bandwidth": "25GB/s", "max_micro_batches": 4}


def test_devices_by_default_are_all_then_eight_to_a_doubling() -> None:
    """Up to 64 each number; then a grid that grows with the numbers, holds powers of two, and ends at K."""
    assert default_devices(5) == [1, 2, 3, 4, 5]
    large = default_devices(2048)
    assert large[:64] == list(range(1, 65))
    assert large[64:74] == [72, 80, 88, 96, 104, 112, 120, 128, 144, 160]
    assert {128, 256, 512, 1024, 2048} <= set(large)
    assert large[-1] == 2048
    assert default_devices(100)[-3:] == [88, 96, 100]
    assert default_devices(65)[-1] == 65


def test_sums_by_default_are_n_and_what_binds_below() -> None:
    """N, and a half and a quarter of what the devices can reach."""
    assert default_sums(2048, 960) == [240, 480, 960]
    assert default_sums(64, 1920) == [16, 32, 1920]
    assert default_sums(1, 1) == [1]


def test_cells_are_those_of_plans() -> None:
    """Each time is that of the best plan on so many devices, and grows with neither devices nor degrees."""
    sweep = sweep_with(chain_model(4), devices=[4, 1, 2], sums=[4], **SYSTEM)
    assert (sweep.devices, sweep.sums, sweep.stopped) == ((1, 2, 4), (4,), "finished")
    for devices in sweep.devices:
        cell = sweep.cell(devices, 4)
        try:
            plan = plan_with(chain_model(4), devices=devices, **SYSTEM)
        except Infeasible:
            assert cell is not None
            assert cell.time is None
            assert sweep.time_per_sample_s(devices, 4) is None
        else:
            assert cell is not None
            assert cell.time == cell.lower
            assert sweep.time_per_sample_s(devices, 4) == plan.time_per_sample_s
    with pytest.raises(InputError, match="the table has no 3") as caught:
        sweep.cell(3, 4)
    assert caught.value.parameter == "devices"


def test_the_command_gives_the_same_table(tmp_path: Path) -> None:
    """Document and text are those that the command writes and prints."""
    path = tmp_path / "chain.json"
    path.write_text(write_training_model(chain_model(4)))
    options = ("--devices", "4", "--memory", "2GiB", "--bandwidth", "25GB/s", "--max-micro-batches", "4")
    done = run("plan", path, "--sweep", "1-4", *options, "-o", tmp_path / "command.json")
    sweep = sweep_with(path, devices=range(1, 5), **SYSTEM)
    sweep.save(tmp_path / "function.json")
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("command", "function"))
    assert first.pop("elapsed_s") >= 0
    assert second.pop("elapsed_s") >= 0
    assert first == second
    assert repr(sweep) == done.stdout.rstrip("\n")
    assert sweep.rows() == first["rows"]
    assert sweep._repr_html_().startswith("<div><p><b>chain: best time per sample")


def test_one_number_of_devices_is_the_largest() -> None:
    """Those below are chosen as the command chooses them."""
    assert sweep_with(chain_model(2), devices=3, sums=[1], **SYSTEM).devices == (1, 2, 3)


def test_no_plan_at_all_is_infeasible() -> None:
    """The error says that it is proven."""
    with pytest.raises(Infeasible, match="no plan fits on any of these numbers of devices"):
        sweep_with(chain_model(2), devices=2, **{**SYSTEM, "memory": "1MiB"})
