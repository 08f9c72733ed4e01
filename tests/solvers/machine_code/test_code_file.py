"""Files of machine code: whole, or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpp.solvers.machine_code.code_file import read_code, write_code


def test_back_as_written(tmp_path: Path) -> None:
    """What was written comes back, from folders that had to be made, and after it was written over."""
    path = tmp_path / "a" / "b" / "one.kernel"
    for content in (b"first", b"", bytes(range(256)) * 100):
        assert write_code(path, content)
        assert read_code(path) == content
    assert [entry.name for entry in path.parent.iterdir()] == ["one.kernel"]


def test_what_is_not_whole_is_not_there(tmp_path: Path) -> None:
    """A file that was cut short, grew, or was changed in any byte counts for nothing."""
    path = tmp_path / "one.kernel"
    write_code(path, b"machine code")
    whole = path.read_bytes()
    broken = [whole[:cut] for cut in range(len(whole))] + [whole + b"x"]
    broken += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    for data in broken:
        path.write_bytes(data)
        assert read_code(path) is None
    assert read_code(tmp_path / "other.kernel") is None
    assert read_code(tmp_path) is None


def test_a_file_under_another_name_is_not_there(tmp_path: Path) -> None:
    """Code of one kernel is not taken for that of another, in whatever folder it lies."""
    write_code(tmp_path / "sums.add-1-2.kernel", b"adds")
    whole = (tmp_path / "sums.add-1-2.kernel").read_bytes()
    for name in ("sums.subtract-1-2.kernel", "sums.add-1-3.kernel", "sums.add-2-2.kernel"):
        (tmp_path / name).write_bytes(whole)
        assert read_code(tmp_path / name) is None
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "sums.add-1-2.kernel"
    moved.write_bytes(whole)
    assert read_code(moved) == b"adds"


def test_what_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder, no room, no right: it is told, and nothing half-written stays."""
    (tmp_path / "file").write_text("")
    assert not write_code(tmp_path / "file" / "one.kernel", b"code")

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert not write_code(tmp_path / "one.kernel", b"code")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
