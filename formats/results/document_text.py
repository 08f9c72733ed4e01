"""Texts of documents of results: a line for each key, and for each item of what is worth one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mtpp.formats.graphs import native
from mtpp.formats.io.json_text import dump_json, dump_lines
from mtpp.formats.io.recorded_paths import relocated

_BY_LINE: Mapping[str, tuple[str, ...]] = {
    "mtpp-certificates": ("rows", "summary"),
    "mtpp-comparison": ("models", "rows", "summary"),
    "mtpp-layout-comparison": ("rows", "summary"),
    "mtpp-layout-evaluation": ("stages",),
    "mtpp-language-model": ("layers", "mtp"),
    native.FORMAT: native.ROWS,
    "mtpp-plan": ("stages", "assignment", "frontier", *(f"graph.{key}" for key in native.ROWS)),
    "mtpp-plan-range": ("rows", "missing", "plans"),
    "mtpp-run": ("stages",),
    "mtpp-measured-stages": ("stages",),
    "mtpp-simulation": ("stages", "devices", "channels"),
    "mtpp-split": ("stages", "check.outputs"),
    "mtpp-stage-comparison": ("stages",),
    "mtpp-training-plan": ("stages", "superstages", "transfers", "devices", "baselines", "least_memory_stages"),
    "mtpp-training-run": ("stages",),
    "mtpp-training-sweep": ("rows",),
}
"""Keys whose items get a line each, by format; a document of another format is one line."""


def document_text(document: Mapping[str, Any], file: str | os.PathLike[str] | None = None) -> str:
    """Return the text of a document, which ends its last line but where it is one line.

    Parameters
    ----------
    file
        Path of the file that it is for: paths of models are relative to its folder. None: to the working folder.
    """
    document = document if file is None else relocated(document, file)
    keys = _BY_LINE.get(document["format"])
    return dump_json(document) if keys is None else dump_lines(document, keys) + "\n"
