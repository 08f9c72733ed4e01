"""Length of a run: as many batches as take half a minute where nobody names a number, and progress through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mtpp.runtime.pipeline import in_turn
from mtpp.runtime.pipeline import run_length as module
from mtpp.runtime.pipeline.in_turn import ReferenceJob
from mtpp.runtime.pipeline.memory import Layout, Ring
from mtpp.runtime.pipeline.run_length import BatchProgress, RunLength, run_length
from mtpp.runtime.session import SessionChoices


@pytest.mark.parametrize(
    ("stages_s", "at_a_time", "due"),
    [
        ([0.001, 0.002], 2, RunLength(200, 10)),
        ([0.1, 0.15], 2, RunLength(200, 10)),
        ([0.1, 0.2], 2, RunLength(150, 10, 0.2)),
        ([1.0, 1.0], 2, RunLength(30, 3, 1.0)),
        ([1.0, 1.0], 1, RunLength(15, 1, 2.0)),
        ([5.0, 3.0, 4.0, 4.0], 2, RunLength(5, 1, 8.0)),
        ([600.0], 1, RunLength(5, 1, 600.0)),
        ([0.0], 1, RunLength(200, 10)),
    ],
)
def test_length_by_time(stages_s: list[float], at_a_time: int, due: RunLength) -> None:
    """Half a minute over the slowest stage, or over all stages on the cores at hand; from 5 to 200 batches."""
    alone = np.array([stages_s] * 2 + [[100.0] * len(stages_s)])  # a slow round is none of the median
    assert run_length(None, None, alone, at_a_time) == due


def test_numbers_that_are_given() -> None:
    """They stand, however long a batch takes; warming up still follows the time where it is left open."""
    alone = np.array([[6.0]])
    assert run_length(210, 10, alone, 1) == RunLength(210, 10)
    assert run_length(210, None, alone, 1) == RunLength(210, 1)
    assert run_length(None, 0, alone, 1) == RunLength(5, 0, 6.0)


def test_reason_for_fewer_batches() -> None:
    """Nothing is said of a run of the usual length."""
    assert RunLength(200, 10).told == ""
    assert RunLength(15, 1, 2.0).told == "as many batches of about 2.000 s as take 30 s"
    assert RunLength(5, 1, 6.0).told == "as many batches of about 6.000 s as take 30 s, at least 5"


class _Time:
    """Clock that stands still but for what sets it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.now / 2


class _Model:
    """Model whose runs take a number of seconds of a clock."""

    path, inputs, outputs = None, (("x", "float32", (1,)),), (("y", "float32", (1,)),)

    def __init__(self, clock: _Time, seconds: float) -> None:
        self.clock, self.seconds, self.runs, self.into = clock, seconds, 0, 0

    def open(self, choices: SessionChoices) -> _Model:
        return self

    def shared(self, views: Any) -> dict[str, Any]:
        return dict(views)

    def array(self, value: Any) -> Any:
        return value

    def run(self, inputs: Any) -> dict[str, Any]:
        self.runs += 1
        self.clock.now += self.seconds
        return {"y": inputs["x"] * 2}

    def run_into(self, inputs: Any, outputs: Any, others: Any = ()) -> dict[str, Any]:
        self.into += 1
        self.clock.now += self.seconds
        return {}


class _Parent:
    """Other end of a connection."""

    def send(self, message: Any) -> None:
        self.word, self.said = message


@pytest.mark.parametrize(
    ("seconds", "warmup", "runs", "into", "rounds"),
    [
        (0.001, None, 5, 10 + 50, 50),
        (1.0, None, 5, 1 + 10, 10),
        (0.4, None, 5, 3 + 25, 25),
        (6.0, None, 5, 0, 4),
        (6.0, 10, 5, 10 + 3, 3),
        (6.0, 0, 5, 3, 3),
    ],
)
def test_rounds_without_a_pipeline(
    monkeypatch: pytest.MonkeyPatch, seconds: float, warmup: int | None, runs: int, into: int, rounds: int
) -> None:
    """One run a set of inputs and one more; rounds fill 10 s, and one of several seconds is not run over and over."""
    clock = _Time()
    monkeypatch.setattr(in_turn, "time", clock)
    model = _Model(clock, seconds)
    model.path = type("Path", (), {"name": "model"})
    inputs, outputs = (Ring.make(Layout.of(ends), 4, "a test") for ends in (model.inputs, model.outputs))
    parent = _Parent()
    job = ReferenceJob((model,), SessionChoices(), inputs, outputs, None, warmup, 50, 10.0)  # type: ignore[arg-type]
    job.run(parent)  # type: ignore[arg-type]
    inputs.close()
    outputs.close()
    assert (parent.word, model.runs, model.into) == ("measured", runs, into)
    assert parent.said.seconds == pytest.approx(np.full((rounds, 1), seconds))
    assert parent.said.cpu_share == pytest.approx(0.5)
    assert parent.said.repeatable


def test_progress_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time that the other batches take if they are like those before."""
    clock = _Time()
    monkeypatch.setattr(module, "time", clock)
    told: list[tuple[str, int, int | None]] = []

    class Heard:
        def show(self, text: str, done: int = 0, total: int | None = None) -> None:
            told.append((text, done, total))

    done = 0
    progress = BatchProgress(lambda: done, 20, Heard())
    for after, number in ((0, 0), (0.5, 1), (0.5, 2), (0.75, 3), (7.25, 4), (191, 19)):
        clock.now += after
        done = number
        progress.look()
    said = "batches through the pipeline"
    assert told == [
        (said, 0, 20),
        (f"{said}, about 0:09 left", 2, 20),
        (f"{said}, about 0:36 left", 4, 20),
        (f"{said}, about 0:10 left", 19, 20),
    ]
