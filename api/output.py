"""Texts and files of results; files are written whole or not at all, and checked before the work."""

from __future__ import annotations

from mtpp.formats.io.json_text import dump_json
from mtpp.formats.io.sink import check_output, write_text_atomically

__all__ = ["check_output", "dump_json", "write_text_atomically"]
