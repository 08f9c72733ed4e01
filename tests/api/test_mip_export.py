"""MIPs of bounds written from Python: the same bytes as the command's, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from processes import run

from mtpp.api.mip_export import export
from mtpp.errors import InputError


@pytest.mark.parametrize("name", ["model.mps", "model.lp.gz"])
def test_the_file_is_that_of_the_command(chain_file: Path, tmp_path: Path, name: str) -> None:
    """In either format, packed or not."""
    ours, theirs = tmp_path / name, tmp_path / f"their_{name}"
    mip = export(chain_file, 2, ours)
    done = run("bound", chain_file, "-k", "2", "--bounds", "exact-mip", "--export", theirs)
    assert done.returncode == 0, done.stderr
    assert ours.read_bytes() == theirs.read_bytes()
    assert mip.data == (gzip.decompress(ours.read_bytes()) if name.endswith(".gz") else ours.read_bytes())
    assert done.stderr.strip() == mip.describe()


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"k": [2]}, "k"),
        ({"path": "model.txt"}, "export"),
        ({"path": 1}, "path"),
        ({"bound": "none such"}, "bounds"),
        ({"position": 1}, "position"),
        ({"position": 0}, "position"),
        ({"cutoff": -1}, "cutoff"),
        ({"seed": "0"}, "seed"),
    ],
)
def test_wrong_parameters_are_named(chain_file: Path, tmp_path: Path, changes: dict[str, Any], parameter: str) -> None:
    """Nothing is written then."""
    with pytest.raises(InputError) as raised:
        export(**({"model": chain_file, "k": 2, "path": tmp_path / "model.mps"} | changes))
    assert raised.value.parameter == parameter
    assert not (tmp_path / "model.mps").exists()
