"""Partitions by the library: as the command finds them, refused at the door, and first plans before searches."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from graph_strategies import chain, random_graph
from observers import Heard
from oracles import brute_force_optimum
from plans_beside_models import without_times
from processes import printed
from refusals import refusal

import mtpp
from mtpp.api.inputs.reading import read
from mtpp.api.observer import Observer
from mtpp.api.training.running import run_from_first
from mtpp.formats.graphs.native import to_document
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference import contraction
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.presets import load_device
from mtpp.solvers.limits import Limits


def _as_printed(*arguments: str | Path) -> dict[str, Any]:
    plan = json.loads(printed("partition", *arguments, "--format", "json"))
    assert isinstance(plan, dict)
    return plan


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (("-k", "2"), {"k": 2}),
        (("-k", "3", "--algorithm", "slice"), {"k": 3, "algorithm": "slice"}),
        (("-k", "2", "--algorithm", "random-20", "--seed", "7"), {"k": 2, "algorithm": "random-20", "seed": 7}),
        (("--max-bottleneck", "45ms"), {"max_bottleneck": "45ms"}),
        (("-k", "2", "--together", "op2,op3"), {"k": 2, "together": [["op2", "op3"]]}),
        (("-k", "2", "--together", "op2,op3"), {"k": 2, "together": ["op2,op3"]}),
    ],
)
def test_function_and_command_agree(chain_file: Path, options: tuple[str, ...], parameters: dict[str, Any]) -> None:
    """The document is the JSON that the command prints, but for the time it took."""
    plan = mtpp.partition(chain_file, **parameters)
    assert without_times(json.loads(json.dumps(plan.document()))) == without_times(_as_printed(chain_file, *options))


@pytest.mark.parametrize("limit", [{"k": 2}, {"max_bottleneck": "60ms"}])
def test_groups_are_looked_for_once(chain_file: Path, limit: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever numbers of stages a run goes through, the ops that share a stage are found for the first."""
    calls = []

    def counted(*arguments: Any) -> contraction.Contraction:
        calls.append(arguments)
        return original(*arguments)

    original = contraction.contract
    monkeypatch.setattr(contraction, "contract", counted)
    plan = mtpp.partition(chain_file, **limit, together=["op1,op2"])
    assert plan.document()["together"] == [["op1", "op2"]]
    assert len(calls) == 1


@pytest.mark.parametrize("seed", range(6))
def test_small_graphs_are_cut_as_well_as_by_brute_force(seed: int) -> None:
    """The optimum, and a proof of it."""
    graph = random_graph(seed, 7)
    plan = mtpp.partition(to_document(graph), 3)
    assert plan.optimal
    assert plan.bottleneck == brute_force_optimum(graph, load_device(), 3)


def test_what_a_plan_says(chain_file: Path) -> None:
    """Ticks and seconds of the cut by hand, and who runs what."""
    plan = mtpp.partition(chain_file, 2)
    assert (plan.k, plan.bottleneck, plan.bottleneck_s, plan.ratio, plan.optimal) == (2, 61 * 10**9, 0.061, 1.0, True)
    assert plan.lower_bound.value == plan.bottleneck
    assert plan.lower_bound.tier == "enumerated"
    assert [stage.ops for stage in plan.stages] == [("op0", "op1", "op2"), ("op3",)]
    assert [(stage.index, stage.cost_s, stage.work_s) for stage in plan.stages] == [(0, 0.061, 0.06), (1, 0.041, 0.04)]
    assert [(stage.input_s, stage.output_s, stage.overflow_s) for stage in plan.stages] == [
        (0, 0.001, 0),
        (0.001, 0, 0),
    ]
    assert plan.assignment == {"op0": 0, "op1": 0, "op2": 0, "op3": 1}
    assert plan.stage_of("op3") == 1
    assert plan.stopped == "optimal"
    assert plan.verified
    with pytest.raises(mtpp.InputError, match="no op is called 'op9'"):
        plan.stage_of("op9")


def test_abstract_graphs_have_no_seconds() -> None:
    """Costs without a unit are ticks, and nothing else."""
    plan = mtpp.partition(to_document(chain([1, 2], [1])), 1)
    assert (plan.bottleneck, plan.bottleneck_s, plan.stages[0].cost_s) == (3, None, None)


@pytest.mark.parametrize(
    ("parameters", "parameter", "message"),
    [
        ({"k": "2"}, "k", "'2' is not a whole number"),
        ({"k": 2.0}, "k", "2.0 is not a whole number"),
        ({"k": True}, "k", "True is not a whole number"),
        ({"k": 0}, "k", "0 is out of range"),
        ({"k": 10**7}, "k", "10000000 is out of range"),
        ({}, "k", "give either k or max_bottleneck"),
        ({"k": 2, "max_bottleneck": "1s"}, "k", "give either k or max_bottleneck"),
        ({"max_bottleneck": 3}, "max_bottleneck", "has no unit"),
        ({"max_bottleneck": ["1s"]}, "max_bottleneck", "a list is not a time"),
        ({"k": 2, "time_limit_s": -1}, "time_limit_s", "-1 is not above zero"),
        ({"k": 2, "time_limit_s": "10"}, "time_limit_s", "'10' is not a number of seconds"),
        ({"k": 2, "time_limit_s": float("nan")}, "time_limit_s", "nan is not a number of seconds"),
        ({"k": 2, "algorithm": "fast"}, "algorithm", "no algorithm is called 'fast'"),
        ({"k": 2, "algorithm": None}, "algorithm", "None is not a text"),
        ({"k": 2, "together": "op1,op2"}, "together", "'op1,op2' is not a list of groups"),
        ({"k": 2, "together": [["op1", "op9"]]}, "together", "no op is called 'op9'"),
        ({"k": 2, "together": [["op1"]]}, "together", "names fewer than two ops"),
        ({"k": 2, "together": [[1, 2]]}, "together", "1 is not a text"),
        ({"k": 2, "together_blocks": True}, "together_blocks", "is no ONNX model"),
        ({"k": 2, "together_blocks": 1}, "together_blocks", "1 is neither True nor False"),
        ({"k": 2, "seed": -1}, "seed", "-1 is out of range"),
        ({"k": 2, "jobs": 0}, "jobs", "0 is out of range"),
        ({"k": 2, "work_limit": 0}, "work_limit", "0 is out of range"),
        ({"k": 2, "memory_limit": "lots"}, "memory_limit", "'lots' is not a size"),
        ({"k": 2, "population": 10}, "population", "auto has no population"),
    ],
)
def test_wrong_parameters_are_refused_by_name(
    chain_file: Path, parameters: dict[str, Any], parameter: str, message: str
) -> None:
    """The error says which one, in Python's words."""
    with pytest.raises(mtpp.InputError) as caught:
        mtpp.partition(chain_file, **parameters)
    assert caught.value.parameter == parameter
    assert message in str(caught.value)


def test_limits_end_a_search_not_the_process() -> None:
    """A time limit gives the best so far; a limit on memory far below what is in use bounds the search alone."""
    model = read(to_document(random_graph(3, 300)))
    timed = mtpp.partition(model, 8, time_limit_s=0.3)
    assert timed.stopped in ("time-limit", "optimal", "finished")
    assert timed.bottleneck >= timed.lower_bound.value
    tight = mtpp.partition(model, 8, memory_limit="1MiB", work_limit=50)
    assert tight.bottleneck >= tight.lower_bound.value


def test_stage_memory_may_rule_everything_out(chain_file: Path) -> None:
    """Where an op alone is above it, no partition exists."""
    ops = [Op("a", 1, param_bytes=2**20), Op("b", 1)]
    graph = CostGraph.build(name="g", time_unit="ms", ops=ops, tensors=[Tensor("t", "a", ("b",), 1)])
    with pytest.raises(mtpp.Infeasible):
        mtpp.partition(read(to_document(graph), stage_memory="512KiB"), 2)


def test_observers_hear_of_progress(chain_file: Path) -> None:
    """The best partitions and bounds on the way; the last ones are those of the plan."""
    news = Heard()
    plan = mtpp.partition(chain_file, 2, observer=news)
    assert min(news.incumbents) == plan.bottleneck
    assert max(news.bounds) <= plan.lower_bound.value


class _Impatient(Observer):
    """Presses Ctrl+C once: a second time would end the process, however far it has come."""

    def __init__(self) -> None:
        self.pressed = False

    def incumbent(self, bottleneck: int) -> None:
        if not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_gives_the_best_so_far() -> None:
    """The plan says so, and Python's own handler is back afterwards."""
    assert threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    model = read(to_document(random_graph(5, 400)))
    plan = mtpp.partition(model, 8, algorithm="anneal", work_limit=10**7, observer=_Impatient())
    assert plan.stopped == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    """What cannot be read is said of it."""
    with pytest.raises(mtpp.InputError, match="is a folder without a model"):
        mtpp.partition(tmp_path, 2)
    assert refusal(mtpp.partition, 3, 2).parameter == "model"


@dataclass(frozen=True)
class _Plan:
    stopped: StopReason


def _result(found: object, first: object) -> object:
    return found


def test_first_plan_is_made_though_the_deadline_has_passed() -> None:
    """With no time left the first plan is the result, and no search begins."""
    began: list[str] = []

    def search() -> StopReason:
        began.append("search")
        return StopReason.FINISHED

    result = run_from_first(search, Limits(deadline=Deadline(0.0)), _Plan, _result)
    assert result == _Plan(StopReason.TIME_LIMIT)
    assert not began


@pytest.mark.parametrize("reason", [StopReason.TIME_LIMIT, StopReason.INTERRUPTED])
def test_first_plan_says_what_ended_the_search(reason: StopReason) -> None:
    """A search without a plan leaves the first one, made before it, with its own reason."""
    order: list[str] = []

    def first(stopped: StopReason) -> _Plan:
        order.append("first")
        return _Plan(stopped)

    def search() -> StopReason:
        order.append("search")
        return reason

    assert run_from_first(search, Limits(), first, _result) == _Plan(reason)
    assert order == ["first", "search"]


def test_results_are_chosen_from_beside_the_first_plan() -> None:
    """What a search came to, with a plan or without one, goes with the first plan to what chooses."""
    plan = _Plan(StopReason.TIME_LIMIT)
    assert run_from_first(lambda: "slow", Limits(), _Plan, lambda *both: both) == ("slow", plan)
    assert run_from_first(lambda: "no plan fits", Limits(), _Plan, _result) == "no plan fits"


def test_interruption_waits_for_no_first_plan() -> None:
    """A first plan that does not come back is given up when the user interrupts it, and no search begins."""
    pressed, never = Event(), Event()
    began: list[str] = []

    def first(stopped: StopReason) -> None:
        pressed.set()
        never.wait()

    def search() -> StopReason:
        began.append("search")
        return StopReason.FINISHED

    try:
        result = run_from_first(search, Limits(interrupted=pressed.is_set), first, _result)
    finally:
        never.set()
    assert result is StopReason.INTERRUPTED
    assert not began
