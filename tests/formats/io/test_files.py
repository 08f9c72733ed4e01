"""Files on disk: what is read from them, how they appear, and what is left when that fails."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
from pathlib import Path

import pytest

from mtpp.errors import InputError
from mtpp.formats.io import sink
from mtpp.formats.io.sink import check_output, write_text_atomically
from mtpp.formats.io.source import read_source


class _Dripping(io.RawIOBase):
    """A pipe that gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        part = self._data.read(1)
        buffer[: len(part)] = part
        return len(part)


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    class Stdin:
        buffer = _Dripping(data)

    monkeypatch.setattr(sys, "stdin", Stdin())


@pytest.mark.parametrize("data", [b"x", b"plain text", gzip.compress(b"packed text", mtime=0)])
def test_standard_input(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow pipe is read to its end, packed or not."""
    _stdin(monkeypatch, data)
    source = read_source("-")
    assert source.data == (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    assert (source.display, source.is_stdin, source.stem, source.suffix) == ("<stdin>", True, "stdin", "")


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process started without standard input says so."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="<stdin>: standard input is closed"):
        read_source("-")


def test_gzip_of_several_members(tmp_path: Path) -> None:
    """Concatenated gzip files are one, as for gunzip."""
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"one ") + gzip.compress(b"two"))
    assert read_source(str(path)).data == b"one two"


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


PACKED = gzip.compress(b"some content " * 50, mtime=0)


@pytest.mark.parametrize(
    "data",
    [PACKED[:5], PACKED[:-1], PACKED + b"rest", _flipped(PACKED, len(PACKED) - 8), _flipped(PACKED, 2), PACKED[:2]],
    ids=["head cut", "tail cut", "rest behind", "checksum", "method", "magic only"],
)
def test_broken_gzip(data: bytes, tmp_path: Path) -> None:
    """Any damage is found, and nothing of the content is used."""
    path = tmp_path / "broken.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"broken\.gz: broken gzip"):
        read_source(str(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such/file", "no such file; check the path"),
        (".", "is a directory; give a file in it"),
        ("empty", "the input is empty"),
        ("plain/below", "cannot be read: Not a directory"),
        ("a\0b", "cannot be read"),
        ("x" * 300, "cannot be read: File name too long"),
    ],
)
def test_unreadable_files(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's reason is passed on in one line."""
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    Path("plain").write_text("x")
    with pytest.raises(InputError, match=message) as caught:
        read_source(name)
    assert caught.value.source == name


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    """The file looks as if it had been opened and written."""
    before = os.umask(0o027)
    try:
        write_text_atomically(tmp_path / "a", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_links_are_followed(tmp_path: Path) -> None:
    """The link stays a link, and what it points to is replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_devices_are_written_in_place() -> None:
    """Standard names such as /dev/null are never replaced by a file."""
    write_text_atomically("/dev/null", "text")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_gzip_by_suffix(tmp_path: Path) -> None:
    """Equal content gives equal bytes, whenever it is written."""
    for name in ("a.json.gz", "b.json.GZ"):
        write_text_atomically(tmp_path / name, "text µ")
        assert gzip.decompress((tmp_path / name).read_bytes()).decode() == "text µ"
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.GZ").read_bytes()


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_alone(
    failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk or Ctrl-C while writing keeps the old content and leaves no temporary file."""

    def fail(descriptor: int) -> None:
        raise failure

    path = tmp_path / "plan.json"
    path.write_text("old")
    monkeypatch.setattr(sink.os, "fsync", fail)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_text_atomically(path, "new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("plan.json", "old")]


def test_outputs_are_checked_early(tmp_path: Path) -> None:
    """A missing folder and a folder are refused; a new and an old file are fine, and checking makes none."""
    check_output(tmp_path / "new.json")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old.json").touch()
    check_output(tmp_path / "old.json")
    with pytest.raises(InputError, match="is a directory"):
        check_output(tmp_path)
    with pytest.raises(InputError, match="there is no directory"):
        check_output(tmp_path / "no" / "plan.json")
    with pytest.raises(InputError, match="there is no directory"):
        check_output(tmp_path / "old.json" / "plan.json")


def test_gzip_that_is_made_to_take_up_memory(tmp_path: Path) -> None:
    """A gzip file of zeros is given up on after 64 MiB, not at the limit on inputs."""
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(2**20), mtime=0) * 80)
    with pytest.raises(InputError, match=r"zeros\.gz: .* KiB of gzip that unpack to 65 MiB or more; do not trust it"):
        read_source(str(path))
    text = gzip.compress(bytes(2**20), mtime=0) * 60
    path.write_bytes(text)
    assert len(read_source(str(path)).data) == 60 * 2**20
