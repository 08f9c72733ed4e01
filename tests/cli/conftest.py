"""Small models for the command line, and the command in this process."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from graph_strategies import random_graph

from mtpp.cli.main import main
from mtpp.formats.graphs.native import write_native


@pytest.fixture
def random_file(tmp_path: Path) -> Path:
    """Return an abstract random graph of 60 ops."""
    path = tmp_path / "random.json"
    path.write_text(write_native(random_graph(7, 60)))
    return path


class Called:
    """A command, called in this process: exit code, stdout and stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Return what ``mtpp ARGUMENTS`` exits with and prints."""
        self._monkeypatch.setattr(sys, "argv", ["mtpp", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, printed.out, printed.err


@pytest.fixture
def mtpp(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Called]:
    """Return the program."""
    handler = signal.getsignal(signal.SIGTERM)
    yield Called(monkeypatch, capsys)
    signal.signal(signal.SIGTERM, handler)
