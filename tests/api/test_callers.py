"""The library leaves the caller's process and files as they are."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from graph_strategies import chain
from processes import environment

import mtpp
from mtpp.datasets import sample_path
from mtpp.formats.graphs.native import write_native


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    """Return a copy of the sample model."""
    path = tmp_path / "model.onnx"
    shutil.copy(sample_path("resnet50"), path)
    return path


def _saved(path: Path) -> list[Callable[[Path], Any]]:
    model = mtpp.read(path)
    plan = mtpp.partition(model, 2)
    saves = [plan, mtpp.load(plan.document()), mtpp.bound(model, 2, bounds=["simple"])]
    return [saved.save for saved in (*saves, mtpp.compare(model, 2, algorithms=["slice"]))]


def test_no_result_is_saved_over_a_model(model_path: Path) -> None:
    """Results take the place of results alone."""
    before = model_path.read_bytes()
    for save in _saved(model_path):
        with pytest.raises(mtpp.InputError, match="path: "):
            save(model_path)
        save(model_path.with_suffix(".json"))  # each over the one before
    assert model_path.read_bytes() == before


def test_timers_and_handlers_of_the_caller_stay(model_path: Path) -> None:
    """A timer set before goes on, at the most a moment late, and both signals have their handlers back."""

    def handler(number: int, frame: FrameType | None) -> None:
        return None

    plan = mtpp.partition(model_path, 2)
    numbers = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        signal.setitimer(signal.ITIMER_REAL, 500)
        assert mtpp.verify(plan, model_path, time_limit_s=100).passed
        assert mtpp.verify(plan, model_path, time_limit_s=1e12).passed
        mtpp.partition(model_path, 4, time_limit_s=20)
        assert 300 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
        assert [signal.getsignal(number) for number in numbers] == [handler] * 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, one in zip(numbers, before, strict=True):
            signal.signal(number, one)


def test_termination_is_left_to_the_caller(model_path: Path) -> None:
    """The handler that a program has for SIGTERM is called, also while the library works."""
    got: list[int] = []

    class Killer(mtpp.Observer):
        def phase(self, name: str) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        plan = mtpp.partition(model_path, 4, observer=Killer())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got
    assert plan.stopped != "interrupted"


@pytest.mark.parametrize("arguments", [["-mfor_import"], ["-Bm", "for_import"], ["-m", "for_import"]])
def test_any_way_to_run_a_module_can_import_it(arguments: list[str], tmp_path: Path) -> None:
    """However Python is told to run a package that imports the library."""
    (tmp_path / "for_import").mkdir()
    (tmp_path / "for_import" / "__init__.py").write_text("import mtpp")
    (tmp_path / "for_import" / "__main__.py").write_text("print('ran')")
    done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_a_plan_is_held_to_the_model_as_it_was_read(model_path: Path) -> None:
    """A plan for another machine does not pass for that of the model at hand; the system asked for comes first."""
    plan = mtpp.partition(model_path, 4)
    other = mtpp.read(model_path, system="a100", bandwidth="1GB/s")
    assert mtpp.verify(plan, mtpp.read(model_path)).passed
    report = mtpp.verify(plan, other)
    assert next(row.claim for row in report.rows if row.verdict == "false") == "system"
    assert mtpp.verify(plan, other, system="reference").passed


def _line() -> int:
    return sys._getframe(1).f_lineno


class Passing(mtpp.Observer):
    """Observer that hands its warnings on."""

    def warn(self, text: str) -> None:
        """Hand it on."""
        super().warn(text)


@pytest.mark.parametrize("observer", [None, mtpp.Observer(), Passing()])
def test_warnings_name_the_line_that_called(tmp_path: Path, observer: mtpp.Observer | None) -> None:
    """However deep inside they come up, and whoever hands them on."""
    path = tmp_path / "graph.json"
    path.write_text(write_native(chain([10, 20], [1], "ms")))
    calls = (
        lambda: (mtpp.read(path, bandwidth="1GB/s", observer=observer), _line()),
        lambda: (mtpp.evaluate(path, [1, 0], observer=observer), _line()),
        lambda: (mtpp.convert(path, to="csv", plan=[4, 3], observer=observer), _line()),
    )
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, line = call()
        for warning in caught:
            assert (warning.filename, warning.lineno) == (__file__, line)
        assert caught


def test_a_table_verifies_in_memory(model_path: Path) -> None:
    """Without a file, as a plan does."""
    table = mtpp.certify(model_path, [2, 4], jobs=1)
    assert mtpp.verify(table, model_path).passed


def test_a_model_that_changed_is_noticed(model_path: Path, tmp_path: Path) -> None:
    """Splitting the model as it was read refuses another file in its place."""
    model = mtpp.read(model_path)
    plan = mtpp.partition(model, 2)
    shutil.copy(sample_path("gpt2"), model_path)
    with pytest.raises(mtpp.InputError, match="changed"):
        mtpp.split(model, plan, tmp_path / "stages")


@pytest.mark.parametrize(
    "call",
    [
        lambda model: mtpp.partition(model, 2, observer=3),
        lambda model: mtpp.evaluate(model, cuts=["conv1/Conv"], observer=3),
        lambda model: mtpp.convert(model, observer=mtpp.Observer),
        lambda model: mtpp.read(model, max_input_size=None),
        lambda model: mtpp.evaluate(model, {1: 2}),
    ],
    ids=["partition", "evaluate", "convert", "read", "assignment"],
)
def test_wrong_types_are_refused_at_the_door(call: Callable[[Path], Any], model_path: Path) -> None:
    """With the error of the library, in one line."""
    with pytest.raises(mtpp.InputError):
        call(model_path)
