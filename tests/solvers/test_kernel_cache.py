"""Files of machine code: whole, or not there; the versions that were of no use for longest go."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mtpp.solvers.kernel_cache import PART_SUFFIX, SHIPPED, CodeFiles, CodeName, own_folders

NAME = CodeName("slicing.cut", "11", "aa")


def _load(folder: Path, name: CodeName = NAME) -> bytes | None:
    return CodeFiles(folder).load(name)


def _save(folder: Path, name: CodeName = NAME, content: bytes = b"code") -> None:
    CodeFiles(folder).save(name, content)


def test_back_as_written(tmp_path: Path) -> None:
    """What was written comes back, from folders that had to be made, and after it was written over."""
    folder = tmp_path / "a" / "b"
    for content in (b"first", b"", bytes(range(256)) * 100):
        _save(folder, content=content)
        assert _load(folder) == content
    assert [entry.name for entry in folder.iterdir()] == [str(NAME)]


def test_what_is_not_whole_is_not_there(tmp_path: Path) -> None:
    """A file that was cut short, grew, or was changed in any byte counts for nothing."""
    path = tmp_path / str(NAME)
    _save(tmp_path, content=b"machine code")
    whole = path.read_bytes()
    broken = [whole[:cut] for cut in range(len(whole))] + [whole + b"x"]
    broken += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    for data in broken:
        path.write_bytes(data)
        assert _load(tmp_path) is None
    assert _load(tmp_path / "nowhere") is None


def test_a_file_under_another_name_is_not_there(tmp_path: Path) -> None:
    """Code of one kernel is not taken for that of another, in whatever folder it lies."""
    _save(tmp_path)
    whole = (tmp_path / str(NAME)).read_bytes()
    for other in (
        NAME._replace(kernel="slicing.cut_"),
        NAME._replace(source="12"),
        NAME._replace(target="ab"),
        NAME._replace(suffix=PART_SUFFIX),
    ):
        (tmp_path / str(other)).write_bytes(whole)
        assert _load(tmp_path, other) is None
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / str(NAME)).write_bytes(whole)
    assert _load(tmp_path / "elsewhere") == b"code"


def test_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder, no room, no right: it is an error, and there is no file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="exists"):
        _save(tmp_path / "file")

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        _save(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_old_versions_go(tmp_path: Path) -> None:
    """Of the same kernel, signature and processor the four that were used last stay; others are left alone."""
    other = NAME._replace(target="ab")
    _save(tmp_path, other, b"other")
    names = [NAME._replace(source=str(source)) for source in range(7)]
    for age, name in enumerate(names):
        _save(tmp_path, name)
        os.utime(tmp_path / str(name), (age, age))
    assert [(tmp_path / str(name)).exists() for name in names] == [False] * 3 + [True] * 4
    assert _load(tmp_path, names[3]) == b"code"
    _save(tmp_path, NAME._replace(source="7"))
    assert not (tmp_path / str(names[4])).exists()
    assert _load(tmp_path, names[3]) == b"code"
    assert _load(tmp_path, other) == b"other"


def test_files_say_when_they_were_last_of_use(tmp_path: Path) -> None:
    """What was read or written since a build began is what it ships."""
    path = tmp_path / str(NAME)
    (tmp_path / "now").touch()
    since = (tmp_path / "now").stat().st_mtime_ns
    for use in (_save, _load):
        use(tmp_path)
        assert path.stat().st_mtime_ns >= since
        os.utime(path, (1, 1))


def test_a_setting_names_the_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is the user's, and beside the source where that cannot be written."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert own_folders.__wrapped__() == (tmp_path,)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert own_folders.__wrapped__() == (tmp_path / "mtpp" / "kernels", SHIPPED.with_name("__pycache__"))


def test_a_checkout_has_none_of_its_own(checkout: Path) -> None:
    """Code is compiled while a wheel is built; a copy of it that tests use is no part of the project."""
    files = ["git", "ls-files", "-co", "--exclude-standard", str(SHIPPED)]
    assert subprocess.run(files, cwd=checkout, check=True, capture_output=True, text=True).stdout == ""
