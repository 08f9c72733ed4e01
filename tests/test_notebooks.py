"""The notebooks run from the first cell to the last, and show what they are stored with."""

from __future__ import annotations

import ast
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def _executed(source: str, names: dict[str, Any]) -> str:
    """Run a cell, and return what it prints and what its last expression shows."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(last, "cell", "eval"), names)
    return printed.getvalue() + ("" if value is None else repr(value))


def _stored(outputs: list[dict[str, Any]]) -> str:
    return "".join("".join(output.get("text") or output["data"].get("text/plain", [])) for output in outputs)


def test_there_are_four() -> None:
    """A partition with its picture, a gate, a training plan, and a pipeline that is trained."""
    names = ["ci_gate", "partition_and_picture", "train_a_pipeline", "training_plan"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem == "train_a_pipeline" else [])
        for path in NOTEBOOKS
    ],
)
def test_cells_show_what_is_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell prints the same text again; pictures are drawn without a screen."""
    pytest.importorskip("matplotlib")
    if path.stem == "train_a_pipeline":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            shown = _executed("".join(cell["source"]), names)
            assert re.sub(r"\s+$", "", shown) == re.sub(r"\s+$", "", _stored(cell["outputs"]))
