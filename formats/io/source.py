"""Input bytes from a file or standard input, gzipped or not, up to a size limit; large archives by name."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mtpp.errors import InputError
from mtpp.formats.io.large_file import LargeFile, Stored
from mtpp.formats.io.recorded_paths import recorded_path
from mtpp.units import format_bytes

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DEFAULT_MAX_BYTES = 2 * 2**30
"""Largest input that is read unless ``--max-input-size`` says otherwise: 2 GiB, also protobuf's limit."""

LARGE_ARCHIVE_BYTES = 64 * 2**20
"""Size from which a zip file, of which little but weights is large, stays in its file."""

ALWAYS_UNPACKED_BYTES = 64 * 2**20
MOST_EXPANSION = 100
"""Largest unpacked size of more than 64 MiB over the packed one: text takes a thirtieth at most."""

_CHUNK = 2**20
_HEAD_BYTES = 4096
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK\x03\x04"


@dataclass(frozen=True)
class Source:
    """Everything that was read from one file or from standard input.

    Attributes
    ----------
    display
        What messages call it: the path as given, or ``<stdin>``.
    data
        The content, decompressed; of a large archive the beginning alone.
    sha256
        Hex digest of the bytes as they stand in the file, hence of the compressed ones for a ``.gz``.
    path
        None for standard input.
    archive
        The file that a large archive stays in.
    weighted
        A file with the same program and its weights, where the content has none.
    """

    display: str
    data: bytes
    sha256: str
    path: Path | None = None
    archive: LargeFile | None = None
    weighted: LargeFile | None = None

    @property
    def runnable(self) -> Stored:
        """The whole content with weights, for what runs a program."""
        return self.weighted or self.stored

    @property
    def stored(self) -> Stored:
        """The whole content, for what reads archives."""
        return self.archive or self.data

    @property
    def size(self) -> int:
        """Bytes of the whole content."""
        return len(self.data) if self.archive is None else self.archive.size

    @property
    def identity(self) -> dict[str, str]:
        """What documents say of the file: its SHA-256, and its path where it has one."""
        path = recorded_path(self.path)
        return {"sha256": self.sha256} if path is None else {"sha256": self.sha256, "path": path}

    @property
    def is_stdin(self) -> bool:
        """Whether it came from standard input."""
        return self.path is None

    @property
    def suffix(self) -> str:
        """Lower-case suffix of the file without ``.gz``: ``.json`` for ``a.json.gz``; empty for standard input."""
        return self._plain_path.suffix.lower()

    @property
    def stem(self) -> str:
        """The file's name without its suffixes, the name of a graph that brings none; ``stdin`` for that."""
        stem = self._plain_path.stem.encode("utf-8", "surrogateescape")  # a name need not be text
        return stem.decode("utf-8", "replace") or self.display.strip("<>-") or "stdin"

    @property
    def _plain_path(self) -> Path:
        path = self.path or Path()
        return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def read_source(
    path_or_dash: str,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    expected: str = "an ONNX model or a graph in JSON",
) -> Source:
    """Read a file, or standard input for ``-``; gzip is recognised by its first two bytes.

    Parameters
    ----------
    max_bytes
        Limit on the bytes in the file and on the bytes after decompression. It does not hold for a zip file of
        64 MiB or more, which is not kept in memory.
    expected
        What to give in place of nothing.

    Raises
    ------
    InputError
        If the file is missing, a directory, unreadable, empty, broken gzip or beyond the limit.

    Notes
    -----
    A gzip bomb is given up on as soon as it passes the limit, or is made to take up memory: more than 64 MiB, and more
    than a hundred times as much as was read of the file.
    """
    if path_or_dash == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", source="<stdin>", remedy="give a file")
        display, path = "<stdin>", None
        with _reported(display):
            reader = _HashingReader(sys.stdin.buffer, display, max_bytes)
            data = _read_all(reader, display, max_bytes)
    else:
        display, path = path_or_dash, Path(path_or_dash)
        with _reported(display), path.open("rb", buffering=0) as file:
            if (archive := _large_archive(path, file)) is not None:
                head = file.read(_HEAD_BYTES)
                file.seek(0)
                return Source(display, head, hashlib.file_digest(file, "sha256").hexdigest(), path, archive)
            reader = _HashingReader(file, display, max_bytes)
            data = _read_all(reader, display, max_bytes)
    if not data:
        raise InputError("the input is empty", source=display, remedy=f"give {expected}")
    return Source(display=display, data=data, sha256=reader.digest.hexdigest(), path=path)


def source_of_bytes(data: bytes, display: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Source:
    """Return bytes at hand as a source without a path; *display*, such as ``<bytes>``, is what messages call them.

    Raises
    ------
    InputError
        If there are none, or too many, or they are broken gzip.
    """
    with _reported(display):
        reader = _HashingReader(io.BytesIO(data), display, max_bytes)
        content = _read_all(reader, display, max_bytes)
    if not content:
        raise InputError("the input is empty", source=display)
    return Source(display=display, data=content, sha256=reader.digest.hexdigest())


def read_head(path: str, count: int = 4096) -> bytes:
    """Return the first *count* bytes of a file, decompressed, or fewer if it is shorter.

    Raises
    ------
    InputError
        If the file cannot be read, or is broken gzip already there.
    """
    with _reported(path), Path(path).open("rb") as file:
        if file.peek(2)[:2] == _GZIP_MAGIC:
            return gzip.GzipFile(fileobj=file).read(count)
        return file.read(count)


def file_sha256(path: str) -> str:
    """Return the SHA-256 of a file as it stands, in hexadecimal, without keeping it in memory."""
    with _reported(path), Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _reported(display: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except IsADirectoryError:
        raise InputError("is a directory", source=display, remedy="give a file in it") from None
    except FileNotFoundError:
        raise InputError("no such file", source=display, remedy="check the path") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"broken gzip: {error}", source=display, remedy="compress or copy the file again") from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise InputError(problem, source=display, remedy="check the path and its permissions") from None
    except ValueError as error:  # a NUL in the path
        raise InputError(f"cannot be read: {error}", source=display) from None


def _too_large(display: str, max_bytes: int, what: str = "the input") -> InputError:
    return InputError(
        f"{what} is larger than {format_bytes(max_bytes)}", source=display, remedy="raise ‹max_input_size›"
    )


def _large_archive(path: Path, file: io.FileIO) -> LargeFile | None:
    """Return the file if it is a large zip file on disk."""
    found = LargeFile.of_open(path, file.fileno())
    if found is None or found.size < LARGE_ARCHIVE_BYTES:
        return None
    magic = file.read(len(_ZIP_MAGIC))
    file.seek(0)
    return found if magic == _ZIP_MAGIC else None


class _HashingReader(io.RawIOBase):
    """Passes bytes on while it hashes and counts them, and knows the first two in advance."""

    def __init__(self, raw: BinaryIO | io.RawIOBase, display: str, max_bytes: int) -> None:
        self.raw = raw
        self.display = display
        self.max_bytes = max_bytes
        self.digest = hashlib.sha256()
        self.count = 0
        self.head = b""
        while len(self.head) < len(_GZIP_MAGIC) and (part := raw.read(len(_GZIP_MAGIC) - len(self.head))):
            self.head += part
        self.is_gzip = self.head == _GZIP_MAGIC

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        part = self.head or self.raw.read(len(view)) or b""
        self.head = b""
        view[: len(part)] = part
        self.digest.update(part)
        self.count += len(part)
        if self.count > self.max_bytes:
            raise _too_large(self.display, self.max_bytes)
        return len(part)


def _read_all(reader: _HashingReader, display: str, max_bytes: int) -> bytes:
    stream: BinaryIO | io.RawIOBase | gzip.GzipFile = reader
    if reader.is_gzip:
        stream = gzip.GzipFile(fileobj=io.BufferedReader(reader, _CHUNK))
    content = io.BytesIO()
    while part := stream.read(_CHUNK):
        unpacked = content.tell() + len(part)
        if unpacked > max_bytes:
            raise _too_large(display, max_bytes, "the decompressed input")
        if reader.is_gzip and unpacked > max(ALWAYS_UNPACKED_BYTES, MOST_EXPANSION * reader.count):
            problem = f"{format_bytes(reader.count)} of gzip that unpack to {format_bytes(unpacked)} or more"
            raise InputError(problem, source=display, remedy="do not trust it; or unpack it first")
        content.write(part)
    return content.getvalue()
