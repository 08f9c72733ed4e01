"""Notes on what machine code is for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mtpp.solvers.machine_code.shipped import ships_code, write_note


def _ships(folder: Path) -> bool:
    return ships_code.__wrapped__(folder)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("NUMBA_"):
            monkeypatch.delenv(name)


def test_only_code_for_this_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a note, or with one of other versions, there is none; folders, threads and processors do not matter."""
    assert not _ships(tmp_path)
    write_note(tmp_path)
    assert _ships(tmp_path)
    for name, value in (
        ("CACHE_DIR", str(tmp_path)),
        ("NUM_THREADS", "1"),
        ("CPU_NAME", "generic"),
        ("CPU_FEATURES", ""),
    ):
        monkeypatch.setenv(f"NUMBA_{name}", value)
    assert _ships(tmp_path)
    (note,) = tmp_path.iterdir()
    note.write_text(note.read_text().replace("numba ", "numba 9"))
    assert not _ships(tmp_path)


def test_other_settings_of_numba_need_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled with bounds checked is not what was shipped."""
    write_note(tmp_path)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert not _ships(tmp_path)


def test_a_checkout_has_none_of_its_own(checkout: Path) -> None:
    """Code is compiled while a wheel is built; a copy of it that tests use is no part of the project."""
    from mtpp.solvers.machine_code.code_folders import SHIPPED

    files = ["git", "ls-files", "-co", "--exclude-standard", str(SHIPPED)]
    assert subprocess.run(files, cwd=checkout, check=True, capture_output=True, text=True).stdout == ""
