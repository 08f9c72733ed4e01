"""A time limit ends the reading of a model as well, in every function that has one."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from planning import plan_with, sweep_with

import mtpp
from mtpp.datasets.transformer_training import transformer_training
from mtpp.formats.training.native import write_training_model

TERMS: dict[str, Any] = {"memory": "2GiB", "bandwidth": "25GB/s", "max_micro_batches": 4, "time_limit_s": 0.2}
CALLS: dict[str, Callable[[Path, Path], Any]] = {
    "partition": lambda graph, _: mtpp.partition(graph, 2, time_limit_s=0.2),
    "partition in memory": lambda graph, _: mtpp.partition(graph.read_bytes(), 2, time_limit_s=0.2),
    "compare": lambda graph, _: mtpp.compare(graph, 2, algorithms="slice", time_limit_s=0.2),
    "bound": lambda graph, _: mtpp.bound(graph, 2, bounds="simple", time_limit_s=0.2),
    "plan_training": lambda _, model: plan_with(model, devices=4, **TERMS),
    "sweep_training": lambda _, model: sweep_with(model, devices=[1, 2], **TERMS),
}


@pytest.fixture
def training_file(tmp_path: Path) -> Path:
    """Return the file of a model to be trained."""
    path = tmp_path / "training.json"
    path.write_text(write_training_model(transformer_training(2, hidden=64, heads=4)))
    return path


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have reading take a minute."""

    def read(*arguments: Any, **named: Any) -> None:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            pass

    for place in ("api.inputs.reading.read_model", "api.inputs.model_files.read_model"):
        monkeypatch.setattr(f"mtpp.{place}", read)
    monkeypatch.setattr("mtpp.formats.training.models.training_model_from_source", read)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("name", CALLS)
def test_a_limit_ends_reading(chain_file: Path, training_file: Path, name: str) -> None:
    """In one line that names the file."""
    began = time.monotonic()
    with pytest.raises(mtpp.LimitReached, match=r"the time limit of 0\.2 s passed while reading") as caught:
        CALLS[name](chain_file, training_file)
    assert time.monotonic() - began < 50
    assert caught.value.source in (str(chain_file), str(training_file), "‹model›")


def test_models_at_hand_are_not_read(chain_file: Path) -> None:
    """However short the limit is, there is a plan."""
    assert mtpp.partition(mtpp.read(chain_file), 2, time_limit_s=1e-6).k == 2
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(mtpp.partition, chain_file, 2, time_limit_s=5).result().k == 2
