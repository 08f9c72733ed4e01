"""Exported PyTorch programs without stack traces, which no reader needs and which name the exporter's files."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

_WHEN = (1980, 1, 1, 0, 0, 0)


def without_traces(archive: bytes, name: str) -> bytes:
    """Return an archive of ``torch.export.save`` without stack traces, compressed; PyTorch loads it as before.

    Parameters
    ----------
    name
        Of the folder within.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in sorted(old.namelist()):
            inner = entry.partition("/")[2]
            data = old.read(entry)
            if inner.startswith("models/"):
                program = json.loads(data)
                _clean(program)
                data = json.dumps(program, separators=(",", ":")).encode()
            new.writestr(zipfile.ZipInfo(f"{name}/{inner}", _WHEN), data, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _clean(value: Any) -> None:
    """Take stack traces out of a document."""
    if isinstance(value, dict):
        value.pop("stack_trace", None)
        for one in value.values():
            _clean(one)
    elif isinstance(value, list):
        for one in value:
            _clean(one)
