"""Texts and files of results; files are written whole or not at all, and checked before the work."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mtpp.errors import InputError
from mtpp.formats.io.json_text import dump_json
from mtpp.formats.io.sink import check_output, write_text_atomically

if TYPE_CHECKING:
    from mtpp.views.terminal import Medium

__all__ = ["SavedResult", "ShownResult", "check_output", "dump_json", "save_result", "write_text_atomically"]

_FORMATS = ("table", "markdown", "csv", "html", "json")


class ShownResult(ABC):
    """Result with a JSON document, which shows itself as the table of the command line, in notebooks too."""

    @abstractmethod
    def _said(self) -> Mapping[str, Any]:
        """Return the document, which is not to be changed."""

    @abstractmethod
    def _shown(self, medium: str | Medium) -> str:
        """Return the text of the view."""

    def _remarks(self) -> Sequence[str]:
        """Return lines that standard error says to users of a terminal, and readers of the result alone would miss."""
        return ()

    def document(self) -> dict[str, Any]:
        """Return the JSON object that the command prints, as a copy that may be changed."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def to_json(self, file: str | os.PathLike[str] | None = None) -> str:
        """Return the text of the document.

        Parameters
        ----------
        file
            Path of the file that it is for: paths of models are relative to its folder. None: to the working folder.
        """
        from mtpp.formats.results.document_text import document_text

        return document_text(self._said(), file)

    def text(self, output_format: str = "table") -> str:
        """Return what standard output shows as ``table``, or ``markdown``, ``csv``, ``html`` or ``json``."""
        chosen = checked_format(output_format)
        return self.to_json() if chosen == "json" else self._shown(chosen)

    def __repr__(self) -> str:
        """Return the table as a file would hold it, without colours."""
        from mtpp.views.terminal import Medium

        return "\n".join([self._shown(Medium("table", plain=True)).rstrip("\n"), *self._remarks()])

    def _repr_html_(self) -> str:
        return self._shown("html")


def checked_format(value: Any) -> str:
    """Return the name of a format of output."""
    from mtpp.api.parameters import choice

    return choice(value, "output_format", _FORMATS)


class SavedResult(ShownResult):
    """Result that can be saved as a file, which holds its document."""

    _is_graph: ClassVar[bool] = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document to a file, whole or not at all; a name that ends in ``.gz`` is compressed."""
        save_result(path, self.to_json(path), graph=self._is_graph)


def save_result(path: str | os.PathLike[str], text: str, *, graph: bool = False) -> None:
    """Write a result to a file, whole or not at all, and over nothing but an earlier result.

    Parameters
    ----------
    path
        Packed if the name ends in ``.gz``.
    graph
        Whether the result is a graph with costs, which may take the place of one.
    """
    from mtpp.api.inputs.file_contents import is_graph, is_result
    from mtpp.api.parameters import path_text

    target = path_text(path, "path")
    if os.path.isfile(target) and os.path.getsize(target) and not (is_result(target) or (graph and is_graph(target))):
        raise InputError(f"{target} is there, and no result of mtpp", parameter="path", remedy="name another file")
    write_text_atomically(target, text)
