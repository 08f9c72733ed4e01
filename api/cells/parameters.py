"""Parameters that use cases about several models share, checked at the door."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mtpp.api import parameters as given
from mtpp.api.inputs.model import Model
from mtpp.api.options.reading import Reading
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer


def models_of(models: Any, observer: Observer | None = None) -> tuple[str | Model, ...]:
    """Return models at hand and the paths of others: of one, or of several in a list."""
    listed = isinstance(models, list | tuple | set | Iterator)
    found = tuple(_model_of(one, observer) for one in (models if listed else [models]))
    if not found:
        raise InputError("there is none", parameter="models", remedy="give a file, a folder or a model")
    return found


def _model_of(one: Any, observer: Observer | None) -> str | Model:
    """Return a path, or the model that :func:`mtpp.read` makes of something in memory."""
    from mtpp.api.inputs.reading import as_model

    if isinstance(one, str | os.PathLike):
        return given.path_text(one, "models")
    return as_model(one, observer, "models")


def reading_of(value: Any) -> Reading:
    """Return how files are read, by default for the reference system."""
    if value is None:
        return Reading()
    if not isinstance(value, Reading):
        raise InputError(f"{given.shortened(value)} is no Reading", parameter="reading")
    return value
