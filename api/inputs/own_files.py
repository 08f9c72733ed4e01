"""Files that a model was read from: no result is written over them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.api.inputs.file_contents import holds_weights
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model


def refuse_inputs(target: str, inputs: Mapping[str, Path | None]) -> None:
    """Raise InputError if *target* is one of some files, by whatever name; *inputs* says what each is."""
    for noun, path in inputs.items():
        if path is None:
            continue
        try:
            same = os.path.samefile(target, path)
        except (OSError, ValueError):
            same = os.path.realpath(target) == os.path.realpath(path)
        if same and (path.is_file() or not path.exists()):
            raise InputError(f"{target} is {noun} too", parameter="path", remedy="name another file")


def refuse_own_file(target: str, model: Model) -> None:
    """Raise InputError if *target* is a file that a model or its costs were read from, by whatever name."""
    inputs = {"the model": model.source.path, "its costs": None if model.costs is None else Path(model.costs.display)}
    refuse_inputs(target, inputs)
    if model.source.path is not None and holds_weights(target, str(model.source.path)):
        raise InputError(
            f"{target} is a file of weights of the model too", parameter="path", remedy="name another file"
        )
