"""Calls in a process of their own: what comes back, and what is said where that process is ended."""

from __future__ import annotations

from signal import SIGABRT, SIGKILL, SIGSEGV
from typing import Any

import pytest

from mtpp.errors import InputError
from mtpp.runtime.guarded import RuntimeCrashed, guarded
from mtpp.runtime.pipeline.worker_process import WorkerDied


def _call(name: str, **arguments: Any) -> tuple[Any, list[Any]]:
    told: list[Any] = []
    return guarded(f"crashing_calls:{name}", arguments, "m.onnx", told.append), told


def test_values_and_words_come_back() -> None:
    """What the function returns, and what it tells meanwhile."""
    assert _call("doubled", number=21) == (42, ["doubling"])


@pytest.mark.parametrize("number", [SIGABRT, SIGSEGV])
def test_a_crash_is_an_error(number: int) -> None:
    """One line with the model, the work and the signal, and exit code 1."""
    with pytest.raises(RuntimeCrashed, match=r"^m\.onnx: ONNX Runtime crashed breaking off, ended by SIG") as raised:
        _call("killed", number=number)
    assert raised.value.exit_code == 1


def test_an_end_from_outside_is_no_crash() -> None:
    """Whoever kills the process is to blame, or a lack of memory."""
    with pytest.raises(WorkerDied, match="killed by SIGKILL; see that the machine has enough memory") as raised:
        _call("killed", number=SIGKILL)
    assert raised.value.exit_code == 2


def test_errors_are_raised_here() -> None:
    """Those for users keep all they say, and other ones tell where they come from."""
    with pytest.raises(InputError, match=r"^file: place: one and two; do it otherwise$"):
        _call("refused")
    with pytest.raises(RuntimeError, match=r"(?s)ZeroDivisionError.*crashing_calls"):
        _call("broken")
