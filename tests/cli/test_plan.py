"""``mtpp plan``: exit codes, streams, formats, options that make no sense, interruption."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from given_plans import chain_model, given_training_plan
from processes import run

from mtpp.formats.training.native import write_training_model
from mtpp.host.deadline import Deadline
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.registry import PLANNERS
from mtpp.training.plan import NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem

SYSTEM = ("--devices", "8", "--memory", "2GiB", "--bandwidth", "25GB/s")
BATCH = ("--max-micro-batches", "64")
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(mtpp: Command) -> Command:
    """Return the command ``mtpp plan``: exit code, stdout and stderr."""
    return partial(mtpp, "plan")


class Planner:
    """Stands in for Piper: notes what it is asked, and answers what it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.problem: PlanningProblem | None = None
        self.limits: PlanLimits | None = None
        self.kills = False
        self.answer: Any = lambda problem: given_training_plan(problem)
        module = ModuleType("given_planner")
        module.plan = self._plan  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "given_planner", module)
        monkeypatch.setitem(PLANNERS, "piper", replace(PLANNERS["piper"], module="given_planner"))

    def _plan(self, problem: PlanningProblem, limits: PlanLimits) -> TrainingPlan | NoPlan:
        self.problem, self.limits = problem, limits
        limits.observer.phase("all plans")
        limits.observer.incumbent(10**10)
        limits.observer.bound(10**9)
        if self.kills:
            os.kill(os.getpid(), signal.SIGINT)
            while limits.stop is None:  # the main thread hears the signal
                time.sleep(0.001)
            assert limits.stop == "interrupted"
        answer: TrainingPlan | NoPlan = self.answer(problem)
        return answer


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Planner:
    """Put a planner that a test commands in the place of Piper."""
    return Planner(monkeypatch)


def test_a_process_plans_writes_and_prints(training_chain: Path, tmp_path: Path) -> None:
    """The table goes to standard output, the JSON to the file, nothing to standard error."""
    output = tmp_path / "plan.json"
    done = run("plan", training_chain, "--planner", "equi", *SYSTEM, *BATCH, "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("chain: 6 layers, 5 edges on 8 devices of 2 GiB, 25 GB/s (times in ms)\nstage ")
    document = json.loads(output.read_text())
    assert (document["format"], document["version"], document["planner"]) == ("mtpp-training-plan", 1, "equi")
    assert document["feasible"]
    assert sorted(layer for stage in document["stages"] for layer in stage["layers"]) == [
        f"layer {i}" for i in range(6)
    ]
    assert list(tmp_path.iterdir()) == [output]


def test_a_model_from_a_pipe_and_json_to_one(training_chain: Path) -> None:
    """``-`` reads standard input; ``-o -`` prints JSON alone."""
    done = run("plan", "-", "--planner", "pipedream-2bw", *SYSTEM, *BATCH, "-o", "-", stdin=training_chain.read_bytes())
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["model"]["name"] == "chain"


def test_infeasible_exits_1_with_the_memory_that_would_do(plan: Command, training_chain: Path) -> None:
    """Table, JSON and standard error name the least memory, and it does."""
    arguments = (training_chain, "--planner", "equi", "--devices", "8", "--bandwidth", "25GB/s", *BATCH)
    code, out, err = plan(*arguments, "--memory", "100MiB", "--format", "json")
    document = json.loads(out)
    assert (code, document["feasible"], document["stages"]) == (1, False, [])
    least = document["least_memory_bytes"]
    assert err.startswith(f"error: {training_chain}: ")
    assert err.endswith(f"; --memory {-(-least // 2**20)}MiB would do\n")
    assert plan(*arguments, "--memory", f"{least}B")[0] == 0
    code, out, _ = plan(*arguments, "--memory", f"{least - 1}B")
    assert code == 1
    assert f"({least:,} bytes): --memory " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SYSTEM, *BATCH, "--batch-size", "9"), "--max-micro-batches and --batch-size say the same"),
        ((*SYSTEM, "--batch-size", "9"), "--batch-size needs --micro-batch-size as well"),
        ((*SYSTEM, "--gradient-accumulation", "9"), "--gradient-accumulation needs --batch-size as well"),
        ((*SYSTEM, "--batch-size", "9", "--micro-batch-size", "10"), "N = ⌊9 / 10⌋ = 0"),
        ((*SYSTEM, "--max-micro-batches", "0"), "--max-micro-batches: 0 is not in the range"),
        (("--devices", "0"), "--devices: 0 is not in the range"),
        (("--memory", "8"), "--memory: size '8' has no unit"),
        (("--memory", "0GB"), "--memory: must be above zero"),
        (("--bandwidth", "25"), "--bandwidth: bandwidth '25' has no unit"),
        (("--bandwidth", "0GB/s"), "--bandwidth: bandwidth '0GB/s' must be above zero"),
        (("--time-unit", "s"), "--time-unit: has no effect"),
        (("--sums", "4"), "--sums goes with --sweep"),
        ((*SYSTEM, *BATCH, "--sweep", "8,x"), "--sweep: 'x' is neither a whole number nor a range"),
        ((*SYSTEM, *BATCH, "--sweep", "4-2"), "--sweep: 4-2 does not go up"),
        ((*SYSTEM, *BATCH, "--sweep", "8,9"), "--sweep: 9 is more than the 8 devices"),
        ((*SYSTEM, *BATCH, "--sweep", "8", "--sums", "65"), "--sums: 65 is more than the 64 micro-batches"),
        ((*SYSTEM, *BATCH, "--sweep", "--planner", "equi"), "--sweep: the planner equi has none"),
        ((*SYSTEM, *BATCH, "--knapsack", "heuristic", "--planner", "equi"), "--knapsack: has no effect"),
        ((*SYSTEM, *BATCH, "--topology", "none.toml"), "--topology: says what --devices does; give one of them"),
        (("--topology", "none.toml"), "none.toml: no such file"),
        ((*SYSTEM, *BATCH, "-o", "/nowhere/plan.json"), "/nowhere/plan.json: there is no directory"),
        ((*SYSTEM, *BATCH, "--time-limit", "nan"), "--time-limit"),
    ],
)
def test_bad_options_exit_2_in_one_line(
    plan: Command, training_chain: Path, arguments: tuple[str, ...], message: str
) -> None:
    """What is wrong is said of the option, before any work, and nothing is printed."""
    code, out, err = plan(training_chain, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_list_in_the_place_of_the_model_is_noticed(plan: Command) -> None:
    """``--sweep MODEL`` takes the model for its list."""
    code, _, err = plan("--sweep", "model.json")
    assert code == 2
    assert "'model.json' is neither a whole number nor a range; write 8,16,32-64, after MODEL" in err


def test_what_the_file_is_written_for_is_a_hint_and_no_default(plan: Command, training_chain: Path) -> None:
    """Nothing is planned for numbers that nobody asked for; they are offered."""
    code, out, err = plan(training_chain)
    assert (code, out) == (2, "")
    assert "--devices, --memory, --bandwidth, --max-micro-batches must be given; " in err
    assert err.endswith("the file is written for --devices 8 --memory 16GB --max-micro-batches 64\n")
    code, _, err = plan(training_chain, *SYSTEM[:4], *BATCH)
    assert err == f"error: {training_chain}: --bandwidth must be given; write --bandwidth 25GB/s\n"


def test_options_reach_the_planner(plan: Command, planner: Planner, training_chain: Path) -> None:
    """The problem and the limits are those that the options say."""
    rules = ("--convention", "program", "--no-data-parallel", "--no-tensor-parallel", "--no-recompute")
    batch = ("--batch-size", "100", "--micro-batch-size", "3", "--gradient-accumulation", "4", "--exact-micro-batches")
    planner.answer = lambda problem: NoPlan(problem, "piper", True, None, "finished", "so it is")
    code, out, err = plan(
        training_chain, "--devices", "8", "--memory", "1.2GiB", "--bandwidth", "1GiB/ms", *batch, *rules,
        "--knapsack", "heuristic", "--time-limit", "70000", "-j", "3",
    )  # fmt: skip
    problem, limits = planner.problem, planner.limits
    assert problem is not None
    assert limits is not None
    assert (problem.devices, problem.memory_bytes, problem.link.bandwidth_bytes_per_s) == (
        8,
        1_288_490_188,
        1000 * 2**30,
    )
    assert (problem.micro_batches, problem.exact_micro_batches, problem.convention) == (8, True, "program")
    assert (problem.degrees, problem.data_degrees) == ([1], [1])
    assert not problem.schemes.recompute
    assert (limits.knapsack, limits.jobs) == ("heuristic", 3)
    assert limits.deadline.limit_s is not None
    assert 69_990 < limits.deadline.limit_s < 70_000  # less the time to write the result
    assert (code, err) == (1, f"error: {training_chain}: so it is\n")
    assert "least memory   none would do" in out
    assert "exactly 8 = ⌊100 / (4 × 3)⌋ at once" in out
    assert "convention program; pipelines alone; no data parallelism; no tensor parallelism; no recomputation" in out


def test_what_the_reader_assumed_is_said(plan: Command, planner: Planner, tmp_path: Path) -> None:
    """A file that leaves something open is warned of, and the table says how it was read."""
    model = chain_model()
    path = tmp_path / "model.json"
    path.write_text(write_training_model(replace(model, metadata={"assumptions": ["two keys change places"]})))
    _, out, err = plan(path, *SYSTEM, *BATCH)
    assert err == f"warning: {path}: two keys change places\n"
    assert "tensor parallelism; recomputation; two keys change places\n" in out.replace(", ", "; ")


def test_interrupted_searches_write_their_best(
    plan: Command, planner: Planner, training_chain: Path, tmp_path: Path
) -> None:
    """After Ctrl-C the best plan so far is printed and written, and the exit code is 130."""
    planner.kills = True
    planner.answer = lambda problem: given_training_plan(problem, lower=Fraction(1), stopped="interrupted")
    output = tmp_path / "plan.json"
    code, out, _ = plan(training_chain, *SYSTEM, *BATCH, "-o", output)
    assert code == 130
    assert "stopped          interrupted: best plan and bound so far" in out
    assert json.loads(output.read_text())["stopped"] == "interrupted"


def test_interrupted_before_any_plan(plan: Command, planner: Planner, training_chain: Path) -> None:
    """A first plan is printed where nothing was found yet, and nothing where not even that fits."""
    planner.kills = True
    planner.answer = lambda problem: NoPlan(problem, "piper", False, None, "interrupted", "none yet")
    code, out, _ = plan(training_chain, *SYSTEM, *BATCH)
    assert code == 130
    assert "stopped          interrupted: best plan and bound so far" in out
    code, out, err = plan(training_chain, *SYSTEM, *BATCH, "--memory", "1MiB")
    assert (code, out, err.strip()) == (130, "", "error: interrupted")


def test_verbose_runs_tell_of_plans_and_bounds(plan: Command, planner: Planner, training_chain: Path) -> None:
    """Progress is in units of time, on standard error, and quiet runs have none."""
    _, out, err = plan(training_chain, *SYSTEM, *BATCH, "-v", "--format", "csv")
    assert err.splitlines() == ["search: all plans", "best so far: 10.00 ms", "lower bound: 1.000 ms"]
    assert out.startswith("stage,layers,first,last,")
    assert plan(training_chain, *SYSTEM, *BATCH, "-q")[2] == ""


def test_where_bang_per_buck_is_slower_is_found_out(plan: Command, tmp_path: Path) -> None:
    """The JSON names the stages; with the heuristic asked for there is nothing to compare with."""
    # Of 10 bytes to be saved the first layer saves 6 in 6 ms, the second 10 in 11 ms: the heuristic takes both.
    saving = {"a": ((10, 16), (16, 10)), "b": ((10, 20), (21, 10))}
    layers = [
        {
            "name": name,
            "configurations": {
                "1": [
                    {"id": f"way {c}", "time": time, "parameter_bytes": 0, "memory_bytes": size}
                    | {"memory_bytes_per_micro_batch": 0}
                    for c, (time, size) in enumerate(ways)
                ]
            },
        }
        for name, ways in saving.items()
    ]
    model_file = tmp_path / "two.json"
    header = {"format": "mtpp-training-model", "version": 1, "name": "two", "time_unit": "ms"}
    model_file.write_text(json.dumps({**header, "layers": layers, "edges": []}))
    arguments = (model_file, "--devices", "1", "--memory", "26B", "--bandwidth", "25GB/s", *BATCH)
    document = json.loads(plan(*arguments, "--format", "json")[1])
    assert document["knapsack"] == {"method": "exact", "heuristic_differs": [0]}
    document = json.loads(plan(*arguments, "--format", "json", "--knapsack", "heuristic")[1])
    assert document["knapsack"] == {"method": "heuristic", "heuristic_differs": []}


def test_one_level_is_a_flat_network(plan: Command, planner: Planner, training_chain: Path, tmp_path: Path) -> None:
    """A topology of one level says what --devices and --bandwidth would."""
    topology = tmp_path / "flat.toml"
    topology.write_text('[[levels]]\ndevices = 8\nbandwidth = "25GB/s"\n')
    code, out, _ = plan(training_chain, "--topology", topology, "--memory", "2GiB", *BATCH)
    assert code == 0
    assert planner.problem is not None
    assert (planner.problem.devices, planner.problem.link.bandwidth_bytes_per_s) == (8, 25 * 10**9)
    assert out.startswith("chain: 6 layers, 5 edges on 8 devices of 2 GiB, 25 GB/s (")


def test_several_levels_need_a_planner_for_them(plan: Command, training_chain: Path, tmp_path: Path) -> None:
    """The baselines plan for one level; there is no sweep over several, nor bang per buck."""
    topology = tmp_path / "levels.toml"
    topology.write_text(
        '[[levels]]\ndevices = 4\nbandwidth = "300GB/s"\n[[levels]]\ndevices = 2\nbandwidth = "25GB/s"\n'
    )
    arguments = (training_chain, "--topology", topology, "--memory", "2GiB", *BATCH)
    assert plan(*arguments, "--planner", "equi") == (
        2, "", "error: --topology: the planner equi plans for one level of devices; use --planner piper\n",
    )  # fmt: skip
    assert plan(*arguments, "--sweep")[2] == "error: --sweep: goes with one level of devices; leave --topology out\n"
    assert plan(*arguments, "--knapsack", "heuristic") == (
        2, "", "error: --knapsack: has no effect with several levels of devices; leave it out\n",
    )  # fmt: skip


def test_limits_count_from_the_start_of_the_process(planner: Planner, plan: Command, training_chain: Path) -> None:
    """Without a limit there is none."""
    plan(training_chain, *SYSTEM, *BATCH)
    assert planner.limits is not None
    assert planner.limits.deadline.remaining_s() == Deadline().remaining_s()
