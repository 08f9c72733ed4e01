"""Large archives, read in parts from their files: the same graphs, hashes and stages, and files that change."""

from __future__ import annotations

import functools
import hashlib
import shutil
from pathlib import Path

import pytest

import mtpp
from mtpp.datasets import sample_path
from mtpp.errors import InputError
from mtpp.formats.io import source as sources
from mtpp.formats.io.large_file import LargeFile, opened
from mtpp.formats.torch_export import read_program
from mtpp.machine.presets import load_device

SIZES = {"token_ids:0": 2, "token_ids:1": 64}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an exported program of which all but the beginning stays in its file."""
    monkeypatch.setattr(sources, "LARGE_ARCHIVE_BYTES", 1)
    path = tmp_path / "model.pt2"
    shutil.copy(sample_path("gpt2", "pt2"), path)
    return path


def test_a_graph_is_that_of_the_bytes(program: Path) -> None:
    """What stays in the file is read as what is in memory, and has the same hash, whatever the limit of memory."""
    data = program.read_bytes()
    source = sources.read_source(str(program), max_bytes=10)
    assert data.startswith(source.data)
    assert len(source.data) < len(data) == source.size
    assert source.sha256 == hashlib.sha256(data).hexdigest()
    read = functools.partial(read_program, dims=SIZES, source="m", system=load_device(), name="m")
    one, other = read(source.stored), read(data)
    assert one.metadata == other.metadata
    assert one.work == other.work
    assert mtpp.read(program, dims=SIZES).graph.op_names == one.op_names


def test_a_zip_file_of_something_else_says_so(program: Path) -> None:
    """Large zip files that are no programs end in the same message as small ones."""
    shutil.make_archive(str(program.parent / "other"), "zip", program.parent, "model.pt2")
    with pytest.raises(InputError, match=r"model\.pt2: a zip file without an exported program"):
        mtpp.read(program.parent / "other.zip")


def test_a_file_that_changes_is_not_read_on(program: Path) -> None:
    """Half of one program and half of another are no program."""
    file = LargeFile.at(program)
    with opened(file) as stream:
        assert stream.read() == program.read_bytes()
    with program.open("ab") as longer:
        longer.write(b"\0")
    with pytest.raises(InputError, match="has changed since it was read"):
        opened(file)
    program.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        opened(file)
