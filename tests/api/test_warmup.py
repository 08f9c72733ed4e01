"""Compilation ahead of use, by command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import mtpp
from mtpp.api import warmup as module
from mtpp.host import child_process
from mtpp.solvers import warming


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the commands whose kernels are asked for; nothing is compiled."""
    found: list[str] = []
    monkeypatch.setattr(warming, "load_for", found.extend)
    return found


@pytest.mark.parametrize(
    ("given", "due"),
    [
        (None, list(warming.COMMANDS)),
        ("verify", ["verify"]),
        (" partition , verify,partition", ["partition", "verify"]),
        (("plan", "simulate"), ["plan", "simulate"]),
    ],
)
def test_what_is_named_is_compiled(given: str | Sequence[str] | None, due: list[str], loaded: list[str]) -> None:
    """Names come as a text or as a sequence, each counts once; without any it is all of them."""
    assert list(mtpp.warmup(given)) == due == loaded


@pytest.mark.parametrize("given", ["nonsense", "partition,", "convert", ["partition", "Verify"], 7, [7], "", [], ","])
def test_other_names_are_refused(given: Any, loaded: list[str]) -> None:
    """A command that does not exist, or compiles nothing, is refused with those that there are."""
    if given == "partition,":
        assert mtpp.warmup(given) == ("partition",)
        return
    with pytest.raises(mtpp.InputError) as error:
        mtpp.warmup(given)
    assert error.value.parameter == "commands"
    assert not loaded


def test_behind_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is started for what is missing, none where the package came with it; its failure is no error."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(child_process, "start_detached", lambda *call: calls.append(call))
    monkeypatch.setattr("mtpp.solvers.machine_code.shipped.ships_code", lambda: False)
    assert module.warm_up_behind(["partition", "verify"])
    assert calls == [("mtpp.api.warmup", "_warm_up", "partition", "verify")]
    with pytest.raises(mtpp.InputError):
        module.warm_up_behind(["nonsense"])

    def fails(*call: str) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(child_process, "start_detached", fails)
    assert not module.warm_up_behind("partition")
    monkeypatch.setattr("mtpp.solvers.machine_code.shipped.ships_code", lambda: True)
    assert not module.warm_up_behind("partition")
    assert len(calls) == 1
