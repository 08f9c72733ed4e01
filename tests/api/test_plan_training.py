"""Plans for training from Python: those of the command, checked by the verifier, and parameters that cannot be."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from given_plans import chain_model, given_training_plan
from observers import Heard
from planning import plan_with
from plans_beside_models import without_times
from processes import run
from refusals import refusal

from mtpp.api.observer import MtppWarning
from mtpp.api.training.plan_results import TrainingPlanResult
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.solvers.planners.registry import PLANNERS
from mtpp.training.plan import NoPlan

SYSTEM: dict[str, Any] = {"devices": 4, "memory": "2GiB", "bandwidth": "25GB/s", "max_micro_batches": 4}
OPTIONS = ("--devices", "4", "--memory", "2GiB", "--bandwidth", "25GB/s", "--max-micro-batches", "4")


def test_the_command_gives_the_same_plan(training_chain: Path, tmp_path: Path) -> None:
    """Document and table are those that the command writes and prints, and the verifier agrees."""
    done = run("plan", training_chain, *OPTIONS, "-o", tmp_path / "command.json")
    plan = plan_with(training_chain, **SYSTEM)
    assert repr(plan) == done.stdout.rstrip("\n")
    plan.save(tmp_path / "function.json")
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("command", "function"))
    assert without_times(first) == without_times(second) == without_times(plan.document())
    assert run("verify", tmp_path / "function.json", "--model", training_chain).returncode == 0


def test_all_kinds_of_models_give_the_same_plan(training_chain: Path) -> None:
    """A path, bytes, a parsed document and a model differ in nothing but the hash of their bytes."""
    data = training_chain.read_bytes()
    models = (training_chain, str(training_chain), data, json.loads(data), chain_model())
    plans = [plan_with(model, planner="equi", **SYSTEM).document() for model in models]
    for plan in plans:
        plan["model"].pop("sha256")
        plan["model"].pop("path", None)
    assert all(without_times(plan) == without_times(plans[0]) for plan in plans)


def test_numbers_and_texts_with_units_are_the_same() -> None:
    """Memory and bandwidth may be whole numbers of bytes; sizes of a batch give N."""
    texts = plan_with(chain_model(), planner="equi", **SYSTEM)
    system = {"devices": 4, "memory": 2**31, "bandwidth": 25 * 10**9, "batch_size": 8, "micro_batch_size": 2}
    numbers = plan_with(chain_model(), planner="equi", **system)
    document = without_times(numbers.document())
    assert document.pop("batch") == {"samples": 8, "micro_batch_size": 2, "gradient_accumulation": 1}
    assert without_times(texts.document()) == document


def test_results_say_what_a_plan_is() -> None:
    """Stages cover all layers in order; times are in seconds, and bounded by the proof."""
    plan = plan_with(chain_model(), **SYSTEM)
    assert [name for stage in plan.stages for name in stage.layers] == [f"layer {i}" for i in range(6)]
    assert plan.time_per_sample_s == pytest.approx(max(stage.time_s for stage in plan.stages))
    assert (plan.optimal, plan.ratio, plan.lower_bound_s) == (True, 1.0, plan.time_per_sample_s)
    assert plan.devices_used == sum(stage.devices for stage in plan.stages) <= 4
    assert all(set(stage.configurations) == set(stage.layers) for stage in plan.stages)
    assert plan.stopped in ("finished", "optimal")
    assert plan._repr_html_().startswith("<div><p><b>chain: 6 layers")
    assert plan._repr_html_().count("<tr>") >= len(plan.stages) + 1


def test_levels_of_devices_are_a_parameter(tmp_path: Path) -> None:
    """A topology is an object or a file; one level is the flat network."""
    levels = Machine.of_levels((Level(2, Link(300 * 10**9)), Level(2, Link(25 * 10**9))))
    path = tmp_path / "levels.toml"
    path.write_text('[[levels]]\ndevices = 2\nbandwidth = "300GB/s"\n[[levels]]\ndevices = 2\nbandwidth = "25GB/s"\n')
    rest = {"memory": "2GiB", "max_micro_batches": 4}
    plans = [plan_with(chain_model(), topology=topology, **rest) for topology in (levels, path)]
    assert without_times(plans[0].document()) == without_times(plans[1].document())
    assert sum(stage.devices for stage in plans[0].stages) == plans[0].devices_used
    with pytest.raises(InputError, match="plans for one level of devices; use planner piper") as caught:
        plan_with(chain_model(), topology=levels, planner="equi", **rest)
    assert caught.value.parameter == "topology"


def test_sizes_that_the_model_contradicts_are_refused() -> None:
    """Samples a second would be of others than those that its times are of."""
    model = multi_branch_model("candle-uno", branches=2, layers=1)
    system: dict[str, Any] = {"devices": 2, "memory": "16GiB", "bandwidth": "25GB/s", "batch_size": 256}
    with pytest.raises(InputError, match=r"^micro_batch_size: the model's times are of 64 samples"):
        plan_with(model, micro_batch_size=8, **system)
    assert "samples/s" in repr(plan_with(model, micro_batch_size=64, **system))


def test_no_plan_is_infeasible_and_says_what_would_do() -> None:
    """The memory of the message suffices."""
    with pytest.raises(Infeasible, match=r"memory (\d+MiB) would do") as caught:
        plan_with(chain_model(), **{**SYSTEM, "memory": "100MiB"})
    least = str(caught.value).split("memory ")[-1].split(" ")[0]
    assert plan_with(chain_model(), **{**SYSTEM, "memory": least}).optimal


def test_what_is_missing_is_named() -> None:
    """The file's own numbers are offered, not taken."""
    with pytest.raises(InputError) as caught:
        plan_with(chain_model(), memory="2GiB", bandwidth="25GB/s")
    assert str(caught.value) == (
        "<model>: devices, max_micro_batches must be given; the file is written for devices 8 max_micro_batches 64"
    )


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("model", 7),
        ("model", ""),
        ("model", None),
        ("model", {"a": object()}),
        ("devices", "8"),
        ("devices", 0),
        ("devices", 10**7),
        ("devices", True),
        ("memory", "8"),
        ("memory", 1.5),
        ("memory", 0),
        ("bandwidth", [1]),
        ("bandwidth", "25"),
        ("topology", 3),
        ("max_micro_batches", "4"),
        ("batch_size", 0),
        ("exact_micro_batches", 1),
        ("convention", "both"),
        ("data_parallel", None),
        ("tensor_parallel", "no"),
        ("recompute", 0),
        ("knapsack", "greedy"),
        ("time_unit", 3),
        ("time_unit", "s"),
        ("time_limit_s", -1),
        ("time_limit_s", "60"),
        ("time_limit_s", float("nan")),
        ("jobs", 0),
        ("jobs", 1.5),
    ],
)
def test_bad_parameters_are_named(training_chain: Path, parameter: str, value: Any) -> None:
    """Wrong kinds, units and numbers out of range are refused at the door."""
    parameters = {"model": training_chain, **SYSTEM, parameter: value}
    if parameter == "topology":
        del parameters["devices"], parameters["bandwidth"]
    assert refusal(plan_with, **parameters).parameter == parameter


def test_parameters_that_say_the_same_are_refused() -> None:
    """Each quantity is given once."""
    with pytest.raises(InputError, match="max_micro_batches and batch_size say the same"):
        plan_with(chain_model(), batch_size=8, micro_batch_size=2, **SYSTEM)
    with pytest.raises(InputError, match="topology: says what devices does") as caught:
        plan_with(chain_model(), topology="levels.toml", **SYSTEM)
    assert caught.value.parameter == "topology"


def test_folders_and_missing_files_are_input_errors(tmp_path: Path) -> None:
    """They are named."""
    with pytest.raises(InputError, match="is a directory"):
        plan_with(tmp_path, **SYSTEM)
    with pytest.raises(InputError, match="no such file"):
        plan_with(tmp_path / "none.json", **SYSTEM)


def test_observers_hear_of_plans() -> None:
    """The last plan that they hear of is the result."""
    heard = Heard()
    plan = plan_with(chain_model(), observer=heard, **SYSTEM)
    assert heard.incumbents[-1] == pytest.approx(float(plan.plan.time_per_sample))


def test_assumptions_of_the_reader_are_warned_of() -> None:
    """They are Python warnings."""
    model = replace(chain_model(), metadata={"assumptions": ["two keys change places"]})
    with pytest.warns(MtppWarning, match="two keys change places"):
        plan_with(model, planner="equi", **SYSTEM)


@pytest.mark.parametrize("found", [True, False])
def test_ctrl_c_gives_the_best_so_far(monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    """A plan is returned and says so; where there is none, the call raises."""

    def plan(problem: Any, limits: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        while limits.stop is None:  # the main thread hears the signal
            time.sleep(0.001)
        assert limits.stop == "interrupted"
        if found:
            return given_training_plan(problem, lower=Fraction(1), stopped="interrupted")
        return NoPlan(problem, "piper", False, None, "interrupted", "none yet")

    module = ModuleType("given_planner")
    module.plan = plan  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "given_planner", module)
    monkeypatch.setitem(PLANNERS, "piper", replace(PLANNERS["piper"], module="given_planner"))
    system = {**SYSTEM, "devices": 8}
    if not found:
        with pytest.raises(Interrupted):
            plan_with(chain_model(), **{**system, "memory": 1})  # no first plan fits either
        return
    result = plan_with(chain_model(), **system)
    assert isinstance(result, TrainingPlanResult)
    assert result.stopped == "interrupted"
