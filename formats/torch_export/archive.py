"""Archive of an exported program: a zip file, of which only the text of the program and names of weights are read."""

from __future__ import annotations

import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import shown
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.io.large_file import Stored, opened
from mtpp.formats.io.source import ALWAYS_UNPACKED_BYTES, MOST_EXPANSION
from mtpp.units import format_bytes

_SIGNATURE = b"PK\x03\x04"

WEIGHTS, CONSTANTS = "weights", "constants"
"""Folders of an archive."""

STORAGE = "mtpp_storage"
"""Key of our own in descriptions of weights: the number of the place that one is stored in."""

LARGEST_TEXT_BYTES = 1 << 30
"""Of the program's text, unpacked."""

_MOST_FILES = 1_000_000

_MODEL = re.compile(r"(?:(?P<root>[^/]+)/)?models/(?P<name>[^/]+)\.json")
_OLD = "serialized_exported_program.json"
_PICKLES = ("data.pkl", "constants.pkl")

SCHEMA_MAJOR = 8
"""Version of the program's schema that is read: that of PyTorch 2.7 and later."""

DAMAGED = (
    zipfile.BadZipFile, EOFError, KeyError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError,
    lzma.LZMAError, struct.error, zlib.error,
)  # fmt: skip
"""What Python's zip reader raises of archives that are truncated or damaged."""

_OUT = re.compile(r"/|\\|[A-Za-z]:")
"""Beginnings of paths that lead out of an archive."""

_EXPORT_AGAIN = "export it again with torch.export.save of PyTorch 2.13"


class ProgramText(NamedTuple):
    """Parsed JSON of a program, and of what its archive says of weights and constants by their names."""

    program: dict[str, Any]
    weights: dict[str, Any]
    constants: dict[str, Any]


def looks_like_archive(data: bytes) -> bool:
    """Say cheaply whether *data* is a zip file, or the beginning of one."""
    return data[:4] == _SIGNATURE


def program_text(stored: Stored, source: str) -> ProgramText:
    """Return the program in an archive. Nothing but JSON is unpacked, and nothing is written or unpickled.

    Raises
    ------
    InputError
        If the archive is damaged, has paths that lead out of it, holds no program or several, is of an older layout, or
        unpacks to more than 1 GiB.
    """
    try:
        with opened(stored) as file, zipfile.ZipFile(file) as archive:
            names = _names(archive, source)
            _check_expansion(archive, file.seek(0, io.SEEK_END), source)
            root, model = program_files(names, source)
            program = _object(archive, model, source)
            _check_schema(program, source)
            weights, constants = (
                _config(archive, names, f"{root}data/{folder}/", source) for folder in (WEIGHTS, CONSTANTS)
            )
            return ProgramText(program, weights, constants)
    except InputError:
        raise
    except DAMAGED as error:
        problem = f"the archive is truncated or damaged: {' '.join(str(error).split())[:200] or type(error).__name__}"
        raise InputError(problem, source=source, remedy="copy or export it again") from None


def _names(archive: zipfile.ZipFile, source: str) -> set[str]:
    entries = archive.infolist()
    if len(entries) > _MOST_FILES:
        raise InputError(f"the archive has {len(entries):,} files", source=source, remedy=_EXPORT_AGAIN)
    for entry in entries:
        parts = entry.filename.replace("\\", "/").split("/")
        if ".." in parts or _OUT.match(entry.filename) or "\0" in entry.orig_filename:
            problem = f"the archive has the path {shown(entry.filename)}, which leads out of it"
            raise InputError(problem, source=source, remedy="do not trust it; export the model again")
        if entry.flag_bits & 1:
            raise InputError("the archive is encrypted", source=source, where=entry.filename, remedy="unpack it first")
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError("the archive holds this file twice", source=source, where=twice, remedy=_EXPORT_AGAIN)
    return set(names)


def _check_expansion(archive: zipfile.ZipFile, packed: int, source: str) -> None:
    """Refuse an archive that is made to take up memory, by what it says of its files: none is read beyond that."""
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > max(ALWAYS_UNPACKED_BYTES, MOST_EXPANSION * packed):
        problem = f"an archive of {format_bytes(packed)} that unpacks to {format_bytes(unpacked)} ({unpacked:,} bytes)"
        raise InputError(problem, source=source, remedy=f"do not trust it; {_EXPORT_AGAIN}")


def program_files(names: set[str], source: str) -> tuple[str, str]:
    """Return the folder that everything is in, with its slash, and the file of the program."""
    found = sorted(name for name in names if _MODEL.fullmatch(name))
    if len(found) == 1:
        match = _MODEL.fullmatch(found[0])
        assert match is not None
        return f"{match['root']}/" if match["root"] else "", found[0]
    if found:
        problem = f"the archive holds {len(found)} programs, such as {found[0]} and {found[1]}"
        raise InputError(problem, source=source, remedy="save one in each file")
    last = {name.rpartition("/")[2] for name in names}
    if _OLD in last:
        problem = "an exported program in the layout of PyTorch 2.6 and before"
        raise InputError(problem, source=source, remedy=f"load it with the PyTorch that wrote it, and {_EXPORT_AGAIN}")
    if last.intersection(_PICKLES):
        problem = "pickled objects of torch.save or TorchScript, which are not unpickled"
        raise InputError(problem, source=source, remedy="export the model with torch.export.save, or to ONNX")
    problem = "a zip file without an exported program (models/model.json)"
    inner = next((name for name in sorted(names) if name.endswith((".pt2", ".zip"))), None)
    if inner is not None:
        raise InputError(problem, source=source, where=inner, remedy="unpack the archive within")
    raise InputError(problem, source=source, remedy="give what torch.export.save wrote")


def _text(archive: zipfile.ZipFile, name: str, source: str) -> bytes:
    """Unpack a file, up to the limit, whatever the archive says of its size."""
    size = archive.getinfo(name).file_size
    if size <= LARGEST_TEXT_BYTES:
        with archive.open(name) as file:
            data = file.read(LARGEST_TEXT_BYTES + 1)
        size = len(data)
    if size > LARGEST_TEXT_BYTES:
        raise InputError("unpacks to more than 1 GiB", source=source, where=name, remedy="do not trust it")
    return data


def _object(archive: zipfile.ZipFile, name: str, source: str) -> dict[str, Any]:
    document = parse_json(_text(archive, name, source), f"{source}: {name}")
    if not isinstance(document, dict):
        raise InputError("must be an object", source=source, where=name, remedy=_EXPORT_AGAIN)
    return document


def _check_schema(program: dict[str, Any], source: str) -> None:
    version = program.get("schema_version")
    major = version.get("major") if isinstance(version, dict) else None
    if major != SCHEMA_MAJOR:
        problem = f"schema version {shown(major)} of exported programs is not {SCHEMA_MAJOR}"
        raise InputError(problem, source=source, where="/schema_version", remedy=_EXPORT_AGAIN)


def _config(archive: zipfile.ZipFile, names: set[str], folder: str, source: str) -> dict[str, Any]:
    """Return what is said of weights or constants by name; nothing where the archive says nothing."""
    found: Sequence[str] = sorted(name for name in names if name.startswith(folder) and name.endswith("_config.json"))
    if len(found) != 1:
        return {}
    config = _object(archive, found[0], source).get("config")
    return config if isinstance(config, dict) else {}
