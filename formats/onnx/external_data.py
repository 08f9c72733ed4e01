"""Locations of external tensor data, and the locations that are refused.

An entry of ``external_data`` in ``onnx.proto`` names a file relative to the model's folder, an offset and a length. A
model comes from anywhere, so a name must not lead out of that folder: neither by itself nor through a link. By ONNX
Runtime's rule, links may lead to where the model itself lies, should that be a link: in the cache of a hub, the files
of a folder are links to files beside each other.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import onnx

from mtpp.errors import InputError
from mtpp.formats.io.source import read_head, read_source
from mtpp.formats.onnx.loading import looks_like_onnx, parse_model
from mtpp.formats.onnx.tensor_type import TensorType, is_known_dtype
from mtpp.formats.onnx.topology import subgraphs


@dataclass(frozen=True)
class ExternalPlace:
    """Bytes in a file beside a model.

    Attributes
    ----------
    location
        Name of the file, relative to the model's folder, with ``/`` between its parts.
    path
        The file itself, links to it followed.
    offset, length
        In bytes; the length is None for the rest of the file.
    """

    location: str
    path: Path
    offset: int
    length: int | None

    @property
    def is_there(self) -> bool:
        """Whether the file exists: graphs are passed on without their weights."""
        return self.path.exists()

    def read(self) -> bytes:
        """Return the bytes."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(-1 if self.length is None else self.length)


def external_place(tensor: onnx.TensorProto, folder: Path, source: str) -> ExternalPlace | None:
    """Return where the contents of a tensor lie; None if they are in the model itself.

    Parameters
    ----------
    folder
        Of the model's file.
    source
        What messages call the model: its path, where it came from a file.
    """
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return None
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"external data of {tensor.name!r}"
    windows = PureWindowsPath(location)
    parts = PurePosixPath(location.replace("\\", "/")).parts
    problem = None
    if not parts or "\0" in location:
        problem = "names no file"
    elif windows.drive or windows.root or location.startswith("/"):
        problem = f"{location!r} is an absolute path"
    elif _leads_out(parts):
        problem = f"{location!r} leads out of the model's folder"
    if problem:
        raise InputError(problem, source=source, where=where, remedy="save the model with its weights beside it")
    offset, length = (_whole(entries, key, source, where) for key in ("offset", "length"))
    needed = _needed(tensor, source, where)
    if None not in (needed, length) and needed != length:
        raise InputError(
            f"its length is {length} bytes, but its shape and type take {needed}",
            source=source,
            where=where,
            remedy="export the model again",
        )
    place = ExternalPlace("/".join(parts), folder.joinpath(*parts), offset or 0, length)
    _check_file(place, needed or length or 0, folder, source, where)
    real = Path(os.path.realpath(place.path))
    return place if real == Path(os.path.realpath(folder), *parts) else replace(place, path=real)


def _leads_out(parts: Sequence[str]) -> bool:
    """Say whether a relative path goes above where it starts; links in it are another matter."""
    depths = accumulate(-1 if part == ".." else 1 for part in parts)
    return any(depth < 0 for depth in depths)


def mentions(path: str, name: bytes) -> bool:
    """Return whether *name* stands anywhere in a file that begins like a model; of a packed one, that it may.

    It says quickly of most models that their weights are in no other file, or not in one of that name.
    """
    try:
        if path.lower().endswith(".gz"):
            return looks_like_onnx(read_head(path))
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return looks_like_onnx(data[:_HEAD_BYTES]) and data.find(name) >= 0
    except (OSError, ValueError, InputError):  # unreadable or empty: its reader will say so
        return False


def external_files(path: str) -> list[Path]:
    """Return the files in which a model says that contents of its tensors lie; none if it is no model.

    They are not looked at: they may be absent, or places that :func:`external_place` refuses.
    """
    try:
        model = parse_model(read_source(path).data, path)
    except InputError:
        return []
    tensors = [*all_tensors(model.graph)]
    for function in model.functions:
        tensors += [tensor for node in function.node for tensor in tensors_of_node(node)]
    names = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    return [Path(path).parent / name.replace("\\", "/") for name in sorted(names)]


def _needed(tensor: onnx.TensorProto, source: str, where: str) -> int | None:
    """Return how many bytes a tensor takes, None where its type does not tell."""
    if any(size < 0 for size in tensor.dims):
        raise InputError(f"{list(tensor.dims)} is no shape", source=source, where=where)
    if tensor.data_type == onnx.TensorProto.STRING or not is_known_dtype(tensor.data_type):
        return None
    return TensorType(tensor.data_type, tuple(tensor.dims)).bytes


def _whole(entries: dict[str, str], key: str, source: str, where: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        raise InputError(f"the {key} {text[:40]!r} is no number of bytes", source=source, where=where)
    return int(text)


def _check_file(place: ExternalPlace, size: int, folder: Path, source: str, where: str) -> None:
    shown = place.location if len(place.location) < _LONGEST_SHOWN else place.location[:_LONGEST_SHOWN] + "…"
    try:
        if not _is_beside_model(place.path, folder, source):
            raise InputError(
                f"{shown!r} leads out of the model's folder through a symbolic link",
                source=source,
                where=where,
                remedy="put the file itself there",
            )
        found = place.path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{shown!r} cannot be read: {error.strerror}", source=source, where=where) from None
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{shown!r} is no regular file", source=source, where=where)
    if place.offset + size > found.st_size:
        raise InputError(
            f"{shown!r} has {found.st_size} bytes, fewer than the model needs of it",
            source=source,
            where=where,
            remedy="copy the file again",
        )


def _is_beside_model(path: Path, folder: Path, source: str) -> bool:
    """Say whether a file, all links followed, lies where the model does, or where the model is a link to."""
    real = Path(os.path.realpath(path))
    if real.is_relative_to(os.path.realpath(folder)):
        return True
    model = Path(source)
    return model.parent == folder and model.is_symlink() and real.is_relative_to(Path(os.path.realpath(model)).parent)


def follow_links(model: onnx.ModelProto, folder: Path, source: str) -> Path:
    """Have a model name the files that its links lead to; return the folder in which it names them.

    ONNX Runtime, given a model as bytes, knows only the folder beside it, and takes no link out of that.
    """
    places = [(one, external_place(one, folder, source)) for one in all_tensors(model.graph)]
    real = [(one, os.path.realpath(place.path), place) for one, place in places if place is not None]
    beside = os.path.realpath(folder)
    if all(path == os.path.join(beside, place.location) for _, path, place in real):
        return folder
    root = os.path.commonpath([os.path.dirname(path) for _, path, _ in real])
    for tensor, path, _ in real:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = PurePath(os.path.relpath(path, root)).as_posix()
    return Path(root)


def bring_small_contents(model: onnx.ModelProto, folder: Path, source: str) -> None:
    """Put contents of small tensors that lie beside a model into it, where they are there."""
    for tensor in all_tensors(model.graph):
        place = external_place(tensor, folder, source)
        size = None if place is None else _needed(tensor, source, f"external data of {tensor.name!r}")
        if place is None or size is None or size > _SMALL or not place.is_there:
            continue
        try:
            with place.path.open("rb") as file:
                file.seek(place.offset)
                tensor.raw_data = file.read(size)
        except OSError as error:
            raise InputError(f"{place.location!r} cannot be read: {error.strerror}", source=source) from None
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def all_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor stored in a graph: initializers, the parts of sparse ones, attributes, those of bodies."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from tensors_of_node(node)


def tensors_of_node(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor stored in a node: in its attributes, and in its bodies."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
        for part in (*sparse, *attribute.sparse_tensors):
            yield from (part.values, part.indices)
    for _, body in subgraphs(node):
        yield from all_tensors(body)


_DIGITS = 18
_SMALL = 1 << 16
_HEAD_BYTES = 4096
_LONGEST_SHOWN = 100
