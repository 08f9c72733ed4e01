"""Texts and files of results; files are written whole or not at all, and checked before the work."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from mtpp.errors import InputError
from mtpp.formats.io.json_text import dump_json
from mtpp.formats.io.sink import check_output, write_text_atomically

__all__ = ["SavedResult", "check_output", "dump_json", "save_result", "write_text_atomically"]


class SavedResult(ABC):
    """Result with a JSON document, which is what it is saved as."""

    _is_graph: ClassVar[bool] = False

    @abstractmethod
    def to_json(self) -> str:
        """Return the text of the document."""

    def document(self) -> dict[str, Any]:
        """Return the JSON object that :meth:`save` writes, as a copy that may be changed."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document to a file, whole or not at all; a name that ends in ``.gz`` is compressed.

        Raises
        ------
        InputError
            If it cannot be written, or another file than an earlier result is there.
        """
        save_result(path, self.to_json(), graph=self._is_graph)


def save_result(path: str | os.PathLike[str], text: str, *, graph: bool = False) -> None:
    """Write a result to a file, whole or not at all, and over nothing but an earlier result.

    Parameters
    ----------
    path
        Packed if the name ends in ``.gz``.
    graph
        Whether the result is a graph with costs, which may take the place of one.

    Raises
    ------
    InputError
        If there is another file by that name, such as the model, or it cannot be written.
    """
    from mtpp.api.inputs.file_contents import is_graph, is_result
    from mtpp.api.parameters import path_text

    target = path_text(path, "path")
    if os.path.isfile(target) and os.path.getsize(target) and not (is_result(target) or (graph and is_graph(target))):
        raise InputError(f"{target} is there, and no result of mtpp", parameter="path", remedy="name another file")
    write_text_atomically(target, text)
