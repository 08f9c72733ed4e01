"""Contents of models by path: of a file, of a folder with one model in it, or the description of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source


def model_source(
    path: str, max_bytes: int, *, adapters: Sequence[str] = (), expected: str = "an ONNX model or a graph in JSON"
) -> Source:
    """Return the content of a model at a path, ``-`` for standard input.

    Parameters
    ----------
    adapters
        Folders or files whose weights a language model has besides its own.

    Raises
    ------
    InputError
        If there is none, it is too large, or it cannot be read.
    """
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import read_source

    if names_language_model(path):
        return described_source(path, adapters)
    return read_source(model_at(path), max_bytes=max_bytes, expected=expected)


def model_sha256(path: str, adapters: Sequence[str] = ()) -> str:
    """Return the digest of a model's content at a path, of a file as it stands there."""
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.formats.io.source import file_sha256

    return described_source(path, adapters).sha256 if names_language_model(path) else file_sha256(path)


def described_source(path: str, adapters: Sequence[str] = ()) -> Source:
    """Return the description of a language model: its digest is that of all that was read of its files."""
    from hashlib import sha256

    from mtpp.api.inputs.language_models import language_model
    from mtpp.formats.io.source import Source
    from mtpp.formats.language_models.description import description

    data = description(language_model(path, adapters))
    return Source(path, data, sha256(data).hexdigest(), Path(path))
