"""Documents as commands write them, in this process: plans, tables of certificates, and that there is no plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from mtpp.cli.main import root
from mtpp.formats.io.json_text import parse_json


def model_file(folder: Path, model: Any, name: str = "model.json") -> Path:
    """Write a model where a command finds it."""
    path = folder / name
    path.write_text(json.dumps(model))
    return path


def written(folder: Path, *arguments: str | Path) -> Any:
    """Run a command that writes a result, and return that as a reader of files does.

    Raises
    ------
    AssertionError
        If it wrote none.
    """
    target = folder / "result.json"
    target.unlink(missing_ok=True)
    done = CliRunner().invoke(root, [*map(str, arguments), "-q", "-o", str(target)])
    assert target.exists(), (done.output, done.exception)
    return parse_json(target.read_bytes(), "result")
