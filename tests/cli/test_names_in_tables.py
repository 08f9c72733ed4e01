"""Names out of files in tables: they neither end a line, nor colour it, nor make a row of their own."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from processes import run

from mtpp.cli.terminal.console import Console

NAME = "\x1b[31mred\nok  optimal  proven"

COMMANDS = (
    ("partition", "-k", "2"),
    ("inspect",),
    ("inspect", "--ops"),
    ("certify", "-k", "2"),
    ("certify", "-k", "2,3", "-q"),
    ("bound", "-k", "2", "--bounds", "simple"),
    ("compare", "-k", "2", "--algorithms", "slice"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("shape", ["table", "markdown"])
def test_a_name_stays_in_its_cell(command: tuple[str, ...], shape: str, tmp_path: Path) -> None:
    """Of a graph, an op, a kind and a tensor, on a pipe, which gets no colours."""
    ops = [{"name": f"{NAME}{v}", "kind": NAME, "work": v + 1} for v in range(3)]
    tensors = [{"name": NAME, "producer": ops[0]["name"], "consumers": [ops[1]["name"]], "transfer": 1, "bytes": 1}]
    graph = {"format": "mtpp-graph", "version": 1, "name": NAME, "time_unit": "us", "ops": ops, "tensors": tensors}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    done = run(command[0], "graph.json", *command[1:], "--format", shape, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert not [line for line in done.stdout.split("\n") if line.startswith("ok")]
    assert "red\\nok  optimal" in done.stdout


def test_a_name_beside_a_bar_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being done is shown beside a bar on a terminal, names of models in it."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with Console(quiet=False, verbose=False).steps() as bar:
        bar.show(f"{NAME} · k = 2", 1, 2)
    assert "\\x1b[31mred\\nok" in screen.getvalue()
    assert "\x1b[31mred" not in screen.getvalue()
