"""The graphs among the files of a folder."""

from __future__ import annotations

from pathlib import Path

from mtpp.errors import InputError
from mtpp.formats.graphs.graph_format import Content, GraphFormat
from mtpp.formats.graphs.registry import FORMATS
from mtpp.formats.io.source import Source, read_head

_MODELS = (".onnx", ".pt2")
"""Suffixes of models that may lie in a folder with what belongs to them; the first one that is there counts."""

_LISTED = 8


def has_graph_suffix(path: Path, from_format: str | None = None) -> bool:
    """Return whether the suffix, ``.gz`` aside, is one of a format of graphs (of the one named, if one is)."""
    suffix = Source(str(path), b"", "", path).suffix
    if from_format is not None:
        return any(suffix in (*one.suffixes, *one.shared_suffixes) for one in _formats(from_format))
    return any(suffix in candidate.suffixes for candidate in _formats(None))


def model_at(path: str) -> str:
    """Return the path of a model: of a file as it is, of a folder that of the only model in it.

    A folder as exporters write it holds one ``.onnx`` (or one ``.pt2``) with its weights, tokenizer and configuration
    beside it, some of them in a folder ``onnx`` inside.
    """
    folder = Path(path)
    try:
        if not folder.is_dir():
            return path
    except (OSError, ValueError):  # the reader of the file says what is wrong
        return path
    inner = folder / "onnx"
    for place in (folder, inner) if inner.is_dir() else (folder,):
        for suffix in _MODELS:
            found = [one for one in files_of(place) if Source(str(one), b"", "", one).suffix == suffix]
            if len(found) == 1:
                return str(found[0])
            if found:
                names = [one.relative_to(folder).as_posix() for one in found]
                more = f", … {len(names) - _LISTED} more" if len(names) > _LISTED else ""
                raise InputError(
                    f"holds {len(names)} models: {', '.join(names[:_LISTED])}{more}",
                    source=path,
                    remedy="give the path of one of them",
                )
    raise InputError(
        "is a folder without a model",
        source=path,
        remedy="give a file, or a folder with one .onnx or .pt2, or a language model's config.json, in it",
    )


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder, hidden ones and subfolders left out, by name."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"cannot be listed: {error.strerror or error}", source=str(folder)) from None
    # A link to nowhere is neither file nor folder: it is kept, so that reading it says what is wrong.
    return [entry for entry in entries if entry.name[0] != "." and (entry.is_file() or not entry.exists())]


def may_be_graph(path: Path, from_format: str | None = None) -> bool:
    """Return whether it is worth to read a file of a folder whole: a suffix of graphs, or the beginning of one.

    Keeps gigabytes of weights that lie beside a model from being read.
    """
    if has_graph_suffix(path, from_format):
        return True
    if from_format is not None:
        return False
    try:
        head = Content(Source(str(path), read_head(str(path)), "", path))
    except InputError:
        return False
    return head.is_json or any(candidate.recognises(head) for candidate in _formats(None))


def _formats(name: str | None) -> tuple[GraphFormat, ...]:
    return tuple(candidate for candidate in FORMATS if candidate.read and name in (None, candidate.name))
