"""Names that a terminal would take for orders, in messages and tables."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pytest
from processes import run

import mtpp
from mtpp.api.inspect import inspection
from mtpp.api.options.graphs import Inspecting
from mtpp.cli.terminal.output import write_stdout
from mtpp.errors import InputError
from mtpp.terminal_safe import StyledText, terminal_safe

ORDERS = "\x1b]0;title\x9b2J\u202egnp"
SHOWN = "\\x1b]0;title\\x9b2J\\u202egnp"


def test_only_what_cannot_be_seen_is_escaped() -> None:
    """Letters of all scripts stay; ends of lines do not."""
    assert terminal_safe(f"naïve 名 {ORDERS}\n\u2028") == f"naïve 名 {SHOWN}\\n\\u2028"


def test_messages_are_safe() -> None:
    """Wherever the name stands."""
    assert str(InputError(ORDERS, source=ORDERS, where=ORDERS)) == ": ".join([SHOWN] * 3)


def test_tables_are_safe(tmp_path: Path) -> None:
    """They show the name of an op escaped, even where they go to a file."""
    ops = [{"name": ORDERS, "work": 1}, {"name": "end", "work": 1}]
    tensors = [{"name": "t", "producer": ORDERS, "consumers": ["end"], "bytes": 1}]
    document = {"format": "mtpp-graph", "version": 1, "name": ORDERS, "time_unit": "ms", "ops": ops, "tensors": tensors}
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(document))
    done = run("evaluate", path, "--cuts", "end")
    assert done.returncode == 0, done.stderr
    assert SHOWN in done.stdout
    assert not set("\x1b\x9b\u202e") & set(done.stdout)


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_takes_orders(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """There colours stay, and other orders are escaped; files get every character."""
    stdout = StringIO()
    monkeypatch.setattr(stdout, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdout", stdout)
    write_stdout(StyledText("\x1b[1mname\x1b[0m\n") + StyledText(ORDERS))
    assert stdout.getvalue() == f"\x1b[1mname\x1b[0m\n{SHOWN if terminal else ORDERS}\n"


@pytest.mark.parametrize("output_format", ["csv", "markdown", "table", "json"])
def test_names_are_written_out_on_a_terminal(output_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours out of a file, which may hide text, reach no terminal in any format; a pipe gets every character."""
    kinds = ["x\x1b[8mhidden", "\x1b[31;1mok"]
    ops = [{"name": f"op{i}", "work": i + 1, "kind": kind} for i, kind in enumerate(kinds)]
    document = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps", "ops": ops, "tensors": []}
    model = mtpp.read(json.dumps(document).encode())
    for terminal in (True, False):
        stdout = StringIO()
        monkeypatch.setattr(stdout, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr(sys, "stdout", stdout)
        write_stdout(inspection(model, Inspecting()).text(output_format))
        if terminal:
            assert "\x1b[8m" not in stdout.getvalue()
            assert "\x1b[31;1m" not in stdout.getvalue()
        elif output_format == "csv":
            assert all(kind in stdout.getvalue() for kind in kinds)
