"""The README is short, and its two commands are there; ``tests/docs`` runs its consoles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from processes import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_is_short() -> None:
    """What, install, five minutes, where to read on."""
    assert len(README.splitlines()) <= 200


@pytest.mark.parametrize("end", [r"mtpp partition \S+\.onnx -k \d+", r"python -m pytest -n logical"])
def test_set_up_is_one_line(end: str) -> None:
    """One shell line installs and partitions a shipped model, one installs and runs the tests."""
    (line,) = re.findall(rf"^(python3 -m venv .venv && .*{end})$", README, re.MULTILINE)
    for name in re.findall(r"\S+\.onnx", line):
        assert Path(ROOT / name).is_file()
