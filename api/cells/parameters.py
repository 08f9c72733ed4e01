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
    """Return models at hand and the paths of others: of one, or of several in a list.

    Raises
    ------
    InputError
        If there is none, or something is no model.
    """
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


def bounds_of(names: Any, *, every: bool = False) -> tuple[str, ...]:
    """Return names of bounds in the order of the registry; see :func:`mtpp.api.cells.limits.bound_names`.

    Raises
    ------
    InputError
        If there is no such bound, or no name.
    """
    from mtpp.api.cells.limits import bound_names

    return bound_names(None if names is None else given.names(names, "bounds"), every=every)


def algorithm_of(name: Any) -> str:
    """Return the name of a partitioner, for any of its names.

    Raises
    ------
    InputError
        If there is none.
    """
    from mtpp.solvers.registry import partitioner

    return partitioner(given.text(name, "algorithm")).name


def memory_of(value: Any) -> int | None:
    """Return a limit on memory in bytes, None for None.

    Raises
    ------
    InputError
        If it is no size, or too little to work with.
    """
    from mtpp.host.memory_limit import LEAST_BYTES
    from mtpp.units import parse_bytes

    size = given.quantity(value, "memory_limit", parse_bytes)
    if size is not None and size < LEAST_BYTES:
        raise InputError(f"{value} is too little to work with", parameter="memory_limit", remedy="give at least 512MiB")
    return size


def proof_bytes_of(value: Any) -> int:
    """Return a limit on the size of a proof in bytes.

    Raises
    ------
    InputError
        If it is no size.
    """
    from mtpp.units import parse_bytes

    size = given.quantity(value, "proof_limit", parse_bytes)
    if size is None:
        raise InputError("has to be a size", parameter="proof_limit", remedy='such as "8MB"')
    return size


def reading_of(value: Any) -> Reading:
    """Return how files are read, by default for the reference system.

    Raises
    ------
    InputError
        If it is something else.
    """
    if value is None:
        return Reading()
    if not isinstance(value, Reading):
        raise InputError(f"{given.shortened(value)} is no Reading", parameter="reading")
    return value
