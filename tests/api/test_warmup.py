"""Compilation ahead of use, by command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
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


@pytest.mark.slow
def test_reports_find_what_was_compiled_for_them(checkout: Path, tmp_path: Path) -> None:
    """A page, whose claims are checked and whose passes are simulated, compiles nothing more than the warm-up has."""
    pytest.importorskip("bokeh")
    sample = mtpp.datasets.sample_path("resnet50")
    mtpp.partition(sample, 3).save(tmp_path / "plan.json")
    program = (
        "import sys, mtpp; from pathlib import Path; cache = Path(sys.argv[1])\n"
        "from mtpp.solvers.machine_code.kernel_cache import code_folders; code_folders().shipped = None\n"
        "mtpp.warmup('report'); before = set(cache.iterdir())\n"
        "assert mtpp.report(sys.argv[2], model=sys.argv[3]).passed\n"
        "pipeline = Path('examples', 'three-towers.json'); mtpp.report(mtpp.simulate(pipeline), model=pipeline)\n"
        "assert len(before) > 20; print(*sorted(path.name for path in set(cache.iterdir()) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "cache"), str(tmp_path / "plan.json"), str(sample)],
        check=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == ""
