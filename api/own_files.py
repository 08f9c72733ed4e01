"""Files that a model was read from: no result is written over them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.model import Model


def refuse_own_file(target: str, model: Model) -> None:
    """Raise InputError if *target* is a file that a model or its costs were read from, by whatever name."""
    inputs = {"the model": model.source.path, "its costs": None if model.costs is None else Path(model.costs.display)}
    for noun, path in inputs.items():
        if path is None:
            continue
        try:
            same = os.path.samefile(target, path)
        except (OSError, ValueError):
            same = os.path.realpath(target) == os.path.realpath(path)
        if same and (path.is_file() or not path.exists()):
            raise InputError(f"{target} is {noun} too", parameter="path", remedy="name another file")
    if model.source.path is not None and _holds_weights(target, str(model.source.path)):
        raise InputError(
            f"{target} is a file of weights of the model too", parameter="path", remedy="name another file"
        )


def _holds_weights(target: str, model: str) -> bool:
    """Return whether an existing file holds weights of an ONNX model; its name is looked for before that is parsed."""
    from mtpp.formats.onnx.external_data import external_files, mentions

    if not os.path.isfile(target) or not os.path.isfile(model):
        return False
    linked = os.stat(target).st_nlink > 1
    if not mentions(model, b"location" if linked else os.fsencode(os.path.basename(os.path.realpath(target)))):
        return False
    return any(file.exists() and os.path.samefile(target, file) for file in external_files(model))
