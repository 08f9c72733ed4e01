"""Texts and files of results; files are written whole or not at all, and checked before the work."""

from __future__ import annotations

import os

from mtpp.errors import InputError
from mtpp.formats.io.json_text import dump_json
from mtpp.formats.io.sink import check_output, write_text_atomically

__all__ = ["check_output", "dump_json", "save_result", "write_text_atomically"]


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
