"""Files of models that are run or split: use cases for which a graph is not enough."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mtpp.api.parameters import path_text
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source


def model_file(model: Any, parameter: str = "model") -> tuple[str | Source, dict[str, int]]:
    """Return the path of a model, or its content if it is in no file, and the sizes that it was read for.

    Parameters
    ----------
    model
        Of :func:`mtpp.read`, anything that it reads, or a content that was read already.
    """
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.reading import source_of
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import Source

    if isinstance(model, Source):
        return model, {}
    if isinstance(model, Model):
        source = model.source_with_data()  # raises if the file has changed since
        return (source if source.path is None else source.display), dict(model.dims)
    if isinstance(model, str | os.PathLike):
        path = path_text(model, parameter)
        return (path if names_language_model(path) else model_at(path)), {}
    return source_of(model, None, parameter), {}


def read_measurable(model: str | Source, max_bytes: int) -> tuple[Source, bool]:
    """Return the content of a file of a model that can be measured, and whether it is an exported PyTorch program.

    Raises
    ------
    InputError
        If it cannot be read, or is neither that nor an ONNX model.
    """
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import read_source
    from mtpp.formats.onnx import looks_like_onnx
    from mtpp.formats.torch_export import looks_like_archive

    source = read_source(model_at(model), max_bytes=max_bytes) if isinstance(model, str) else model
    exported = looks_like_archive(source.data)
    if not exported and not looks_like_onnx(source.data):
        remedy = "only ONNX models and exported PyTorch programs can be run and measured"
        raise InputError("neither an ONNX model nor an exported program", source=source.display, remedy=remedy)
    return source, exported


def read_onnx(model: str | Source, max_bytes: int, remedy: str) -> Source:
    """Return the content of a model's file.

    Parameters
    ----------
    remedy
        What to do if it is no ONNX model.

    Raises
    ------
    InputError
        If it cannot be read, or is no ONNX model.
    """
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import read_source
    from mtpp.formats.onnx import looks_like_onnx

    source = read_source(model_at(model), max_bytes=max_bytes) if isinstance(model, str) else model
    if not looks_like_onnx(source.data):
        raise InputError("not an ONNX model", source=source.display, remedy=remedy)
    return source


def read_runnable(model: str | Source, max_bytes: int, remedy: str) -> Source:
    """Return the content of a model's file that can be cut and run: an ONNX model or an exported PyTorch program.

    Raises
    ------
    InputError
        If it cannot be read, or is neither.
    """
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import read_source
    from mtpp.formats.onnx import looks_like_onnx
    from mtpp.formats.torch_export import looks_like_archive

    source = read_source(model_at(model), max_bytes=max_bytes) if isinstance(model, str) else model
    if not looks_like_archive(source.data) and not looks_like_onnx(source.data):
        problem = "neither an ONNX model nor an exported PyTorch program"
        raise InputError(problem, source=source.display, remedy=remedy)
    return source
