"""Compilation ahead of use, by command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from downset_proofs import narrow_case
from graph_strategies import LINK, random_graph
from processes import run
from random_devices import random_case
from refusals import refusal
from training_models import random_problem

import mtpp
from mtpp.api import warmup as module
from mtpp.cli.main import COMMANDS as CLI_COMMANDS
from mtpp.errors import Infeasible
from mtpp.host import child_process
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.names import ENGINE_RULES, KNAPSACKS, PEAK_MODES
from mtpp.solvers import compilation
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.limits import PlanLimits, SearchLimits
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.planners.registry import PLANNERS
from mtpp.solvers.recheck.compiled import Unwatched, search_compiled
from mtpp.solvers.registry import PARTITIONERS

WEIGHTS = ("convex-weights", "position-weights")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the command lines that are run; nothing is compiled."""
    found: list[str] = []
    monkeypatch.setattr(module, "_run", lambda folder, lines, running: found.extend(lines))
    return found


def test_commands_are_those_of_the_command_line() -> None:
    """Whatever can be named is a command, and so is the first word of each line."""
    assert set(module.COMMANDS) <= set(CLI_COMMANDS)
    assert {line.split()[0] for groups in module.COMMANDS.values() for lines in groups for line in lines} <= set(
        CLI_COMMANDS
    )


@pytest.mark.parametrize(
    ("given", "due"),
    [
        (None, list(module.COMMANDS)),
        ("verify", ["verify"]),
        (" bound , verify,bound", ["bound", "verify"]),
        (("plan", "simulate"), ["plan", "simulate"]),
    ],
)
def test_what_is_named_is_run(given: str | Sequence[str] | None, due: list[str], lines: list[str]) -> None:
    """Names come as a text or as a sequence, each counts once; without any it is all of them; no line is run twice."""
    assert list(mtpp.warmup(given)) == due
    assert set(lines) == {line for name in due for group in module.COMMANDS[name] for line in group}
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("given", ["nonsense", "partition,convert", ["partition", "Verify"], 7, [7], "", [], ","])
def test_other_names_are_refused(given: Any, lines: list[str]) -> None:
    """A command that does not exist, or compiles nothing, is refused with those that there are."""
    assert refusal(mtpp.warmup, given).parameter == "commands"
    assert not lines


def test_a_line_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that cannot do its work leaves no doubt about it."""
    monkeypatch.setitem(module.COMMANDS, "run", (("inspect three-towers.json", "inspect nowhere.onnx"),))  # type: ignore[arg-type]
    with pytest.raises(mtpp.errors.MtppError, match=r"mtpp inspect three-towers\.json: error: three-towers\.json"):
        mtpp.warmup("run")


def test_behind_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is started where something had to be compiled, none otherwise; its failure is no error."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(child_process, "start_detached", lambda *call: calls.append(call))
    monkeypatch.setattr(compilation._Work, "compiled", False)
    assert not module.warm_up_behind("partition")
    compilation.tell_watchers()
    assert module.warm_up_behind(["partition", "verify"])
    assert calls == [("mtpp.api.warmup", "_warm_up", "partition", "verify")]
    with pytest.raises(mtpp.InputError):
        module.warm_up_behind(["nonsense"])

    def fails(*call: str) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(child_process, "start_detached", fails)
    assert not module.warm_up_behind("partition")


@pytest.mark.slow
def test_nothing_is_left_to_compile() -> None:
    """After ``mtpp warmup``, whatever partitions, bounds, plans and checks other problems finds its kernels ready."""
    done = run("warmup")
    assert (done.returncode, done.stdout[:7]) == (0, "ready: "), done.stderr
    said: list[str] = []
    with compilation.watched_compilation(lambda: said.append("compiled")):
        for instance in _instances():
            for entry in PARTITIONERS.values():
                if entry.name not in ENGINE_RULES and (entry.peaks_in_order or not instance.peaks_in_order):
                    entry.load()(instance, SearchLimits(40))
            cut = slice_order(instance, instance.order)
            assert cut is not None
            for name in ("simple", "node", "crossings", "fraction", "relaxation", *WEIGHTS, "configuration"):
                BOUNDS[name].load()(instance, BoundLimits(cut.bottleneck, cut.partition, interrupted=_after_looks()))
        for seed in range(6):
            with suppress(Infeasible):
                PARTITIONERS["auto"].load()(random_case(seed).instance(free=seed % 2 == 0), SearchLimits(40))
        assert not said
        for planner in PLANNERS.values():
            for knapsack in KNAPSACKS:
                planner.load()(random_problem(3), PlanLimits(knapsack=knapsack))
        for seed in range(5):
            case = narrow_case(seed)
            search_compiled(case.claim(case.optimum, ["crossings", "fit", "maximal"]), 100, 100, Unwatched())
    assert not said


def _instances() -> list[Instance]:
    systems: list[Any] = [LINK]
    for peak in PEAK_MODES:
        systems += [LINK.overriding(fast_memory_bytes=memory, peak=peak) for memory in (300, 10**9)]
    return [
        Instance.build(random_graph(seed, 30, time_unit="us"), Machine.uniform(3, system))
        for seed in (4, 5)
        for system in systems
    ]


def _after_looks() -> Callable[[], bool]:
    """Return what ends a search after some looks: bounds may go on as long as there is time."""
    looks = count()
    return lambda: next(looks) > 200


def test_without_compilation_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's switch for debugging leaves plain Python: there is nothing to do."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr(module, "_run", lambda *given: pytest.fail("a command was run"))
    assert mtpp.warmup("simulate") == ("simulate",)


@pytest.mark.slow
def test_a_relative_folder_is_that_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command lines run in a folder of their own, which goes afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "code")
    monkeypatch.setenv("NUMBA_OPT", "2")  # no shipped code is for that
    mtpp.warmup("simulate")
    assert list((tmp_path / "code").glob("*.kernel"))


@pytest.mark.slow
def test_reports_find_what_was_compiled_for_them(checkout: Path, tmp_path: Path) -> None:
    """A page, whose claims are checked and whose passes are simulated, compiles nothing more than the warm-up has."""
    pytest.importorskip("bokeh")
    sample = mtpp.datasets.sample_path("resnet50")
    mtpp.partition(sample, 3).save(tmp_path / "plan.json")
    program = (
        "import sys, mtpp; from pathlib import Path; from mtpp.solvers.compilation import watched_compilation\n"
        "mtpp.warmup('report'); pipeline = Path('datasets', 'samples', 'three-towers.json')\n"
        "with watched_compilation(lambda: print('compiled')):\n"
        "    assert mtpp.report(sys.argv[1], model=sys.argv[2]).passed\n"
        "    mtpp.report(mtpp.simulate(pipeline), model=pipeline)\n"
        "print('done')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "plan.json"), str(sample)],
        check=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "done"
