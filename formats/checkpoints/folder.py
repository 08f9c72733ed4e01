"""Checkpoints: the shards of a folder, an index, or a single file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.checkpoints.gguf import GgufHeader, read_gguf
from mtpp.formats.checkpoints.safetensors import read_safetensors
from mtpp.formats.checkpoints.stored_tensor import MOST_HEADER_BYTES, MOST_TENSORS, StoredTensor
from mtpp.formats.io.json_text import json_fault
from mtpp.units import format_bytes
from mtpp.wording import counted, first_of

INDEX_SUFFIX = ".safetensors.index.json"
SAFETENSORS, GGUF = ".safetensors", ".gguf"

_SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
_MOST_SHARDS = 10_000
_LISTED = 3


@dataclass(frozen=True)
class Checkpoint:
    """Tensors of all shards.

    Attributes
    ----------
    kind
        ``safetensors`` or ``gguf``.
    keys
        Of a GGUF file.
    """

    kind: str
    files: tuple[Path, ...]
    tensors: tuple[StoredTensor, ...]
    keys: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_checkpoint(path: Path) -> bool:
    """Return whether a path is that of a file with weights, or of an index of such."""
    return path.name.endswith((SAFETENSORS, GGUF, INDEX_SUFFIX))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read the headers of a file, of the shards of an index, or of the shards beside a first one.

    Raises
    ------
    InputError
        If a shard is missing or broken, or two of them have tensors of one name.
    """
    if path.name.endswith(INDEX_SUFFIX):
        return _indexed(path)
    if path.name.endswith(GGUF):
        return _gguf(path)
    return _safetensors(shards_of(path))


def checkpoint_in(folder: Path) -> Path | None:
    """Return the path that :func:`read_checkpoint` takes for a folder: an index, a file; None where there is none.

    Raises
    ------
    InputError
        If several models lie in the folder.
    """
    names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    indices = [name for name in names if name.endswith(INDEX_SUFFIX)]
    files = [name for name in names if name.endswith(SAFETENSORS)]
    for chosen in ("model.safetensors.index.json", "model.safetensors"):
        if chosen in names:
            return folder / chosen
    adapters = {"adapter_model.safetensors", "adapters.safetensors"}
    files = [name for name in files if name not in adapters and not name.startswith("consolidated")] or files
    ggufs = [name for name in names if name.endswith(GGUF) and not name.startswith("mmproj")]
    first = [name for name in ggufs if (match := _SHARD.fullmatch(name)) is None or int(match[2]) == 1]
    found = indices or files or first
    if len(found) > 1 and found is files and _are_shards(files):
        return folder / files[0]
    if len(found) > 1:
        names_text = first_of(found, _LISTED)
        raise InputError(f"holds several models: {names_text}", source=str(folder), remedy="give the path of one")
    return folder / found[0] if found else None


def shards_of(path: Path) -> list[Path]:
    """Return the files of a sharded safetensors model without index; of any other path that alone."""
    match = re.fullmatch(r"(.*)-\d{5}-of-(\d{5})\.safetensors", path.name)
    if match is None or int(match[2]) > _MOST_SHARDS:
        return [path]
    count = int(match[2])
    paths = [path.with_name(f"{match[1]}-{i:05}-of-{count:05}.safetensors") for i in range(1, count + 1)]
    return _there(paths, path)


def _are_shards(names: Iterable[str]) -> bool:
    return len({re.sub(r"-\d{5}-of-\d{5}\.safetensors$", "", name) for name in names}) == 1


def _there(paths: list[Path], named_by: Path) -> list[Path]:
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        text = f"{counted(len(missing), 'shard')} missing: {first_of(missing, _LISTED)}"
        raise InputError(text, source=str(named_by), remedy="download all shards")
    return paths


def _safetensors(paths: list[Path], notes: Iterable[str] = ()) -> Checkpoint:
    tensors: dict[str, StoredTensor] = {}
    notes = list(notes)
    for path in paths:
        header = read_safetensors(path)
        if header.missing_bytes:
            notes.append(f"{path.name} lacks {format_bytes(header.missing_bytes)} of its data")
        for tensor in header.tensors:
            if tensor.name in tensors:
                raise InputError("stands in two shards", source=str(path), where=tensor.name)
            tensors[tensor.name] = tensor
    return Checkpoint("safetensors", tuple(paths), tuple(tensors.values()), {}, tuple(notes))


def _indexed(path: Path) -> Checkpoint:
    source = str(path)
    index = read_json_object(path, MOST_HEADER_BYTES)
    table = index.get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise InputError("is no object of names of files", source=source, where="weight_map")
    if len(table) > MOST_TENSORS:
        raise InputError(f"has {counted(len(table), 'tensor')}, more than {MOST_TENSORS:,}", source=source)
    names = sorted(set(table.values()))
    for name in names:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise InputError(f"{name!r} is no name of a file beside it", source=source, where="weight_map")
    if len(names) > _MOST_SHARDS:
        raise InputError(f"has {counted(len(names), 'shard')}, more than {_MOST_SHARDS:,}", source=source)
    found = _safetensors(_there([path.with_name(name) for name in names], path))
    stored = {tensor.name for tensor in found.tensors}
    missing, unlisted = sorted(table.keys() - stored), sorted(stored - table.keys())
    if missing:
        text = f"{counted(len(missing), 'tensor')} in no shard: {first_of(missing, _LISTED)}"
        raise InputError(text, source=source, remedy="the shards belong to another index")
    notes = list(found.notes)
    if unlisted:
        notes.append(
            f"{counted(len(unlisted), 'tensor')} of the shards not in the index: {first_of(unlisted, _LISTED)}"
        )
    total = index.get("metadata", {}).get("total_size") if isinstance(index.get("metadata"), dict) else None
    size = sum(tensor.bytes for tensor in found.tensors)
    if isinstance(total, int) and total != size:
        notes.append(f"the index says {total:,} bytes, the headers {size:,}")
    return Checkpoint(found.kind, found.files, found.tensors, {}, tuple(notes))


def _gguf(path: Path) -> Checkpoint:
    first = read_gguf(path)
    paths, match = [path], _SHARD.fullmatch(path.name)
    count = first.keys.get("split.count", 0)
    if match and isinstance(count, int) and 1 < count <= _MOST_SHARDS:
        paths = _there([path.with_name(f"{match[1]}-{i:05}-of-{count:05}.gguf") for i in range(1, count + 1)], path)
    headers: list[GgufHeader] = [first if other == path else read_gguf(other) for other in paths]
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise InputError("shards have tensors of the same names", source=str(path))
    notes = [
        f"{other.name} lacks {format_bytes(header.missing_bytes)} of its data"
        for other, header in zip(paths, headers, strict=True)
        if header.missing_bytes
    ]
    return Checkpoint("gguf", tuple(paths), tensors, headers[0].keys, tuple(notes))


def read_json_object(path: Path, most_bytes: int) -> dict[str, Any]:
    """Read a JSON object; numbers that JSON has not, such as Infinity, are taken as Python writes them."""
    source = str(path)
    try:
        size = path.stat().st_size
        if size > most_bytes:
            raise InputError(f"{format_bytes(size)} are above {format_bytes(most_bytes)}", source=source)
        text = path.read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", source=source, remedy="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source) from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is {json_fault(error)}", source=source) from None
    if not isinstance(document, dict):
        raise InputError("is no JSON object", source=source)
    return document
