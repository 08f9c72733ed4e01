"""Kinds of options that name files: those that are read, those that are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mtpp.api import parameters as given
from mtpp.api.options.kinds import Kind
from mtpp.errors import InputError

MODELS, STAGES = "models", "stages"
"""Folders that may be given in place of a file: of models, the weights beside them included, and of stages."""


class InputPath(Kind):
    """File that is read; ``-`` is standard input.

    Parameters
    ----------
    noun
        Name of such a file in messages, with an article.
    folder
        :data:`MODELS` or :data:`STAGES` where it may hold more files than its own, or be a folder of them.
    names
        Values that are no files, such as the names of presets.
    other
        Name of a class whose objects may stand for the file.
    """

    def __init__(
        self,
        noun: str,
        *,
        folder: str | None = None,
        names: Callable[[], Iterable[str]] = tuple,
        other: str | None = None,
    ) -> None:
        self.noun = noun
        self.folder = folder
        self.names = names
        self.other = other

    def _read(self, value: Any, parameter: str) -> Any:
        is_other = any(one.__name__ == self.other for one in type(value).__mro__)  # not imported to be asked for
        return value if is_other else given.path_text(value, parameter)


class Contents(InputPath):
    """Arrays by name, or a file of them."""

    def _read(self, value: Any, parameter: str) -> Any:
        import numpy as np

        if not isinstance(value, Mapping):
            return super()._read(value, parameter)
        for name, array in value.items():
            if not isinstance(name, str) or not isinstance(array, np.ndarray):
                wrong = f"{given.shortened(array)} is no array"
                problem = wrong if isinstance(name, str) else f"{given.shortened(name)} is no name"
                raise InputError(problem, parameter=parameter, remedy="give NumPy arrays by the names of inputs")
        return dict(value)


class OutputPath(Kind):
    """File that is written; ``-`` is standard output.

    Parameters
    ----------
    beside
        Paths of further files that are written for a value.
    folder
        Whether it is a folder, whose files are all replaced.
    """

    def __init__(self, *, beside: Callable[[str], Iterable[str]] = lambda path: (), folder: bool = False) -> None:
        self.beside = beside
        self.folder = folder

    def _read(self, value: Any, parameter: str) -> str:
        return given.path_text(value, parameter)
