"""Weights that count as more than the file of a graph holds, by its metadata; stages may hold less memory than that."""

from __future__ import annotations

from typing import Any

REPEATED, UNPACKED = "repeated_bytes", "unpacked_bytes"

_WORDS = {UNPACKED: "as they are computed with", REPEATED: "at each reader"}


def counted_of(document: Any) -> list[str]:
    """Return which weights of an ``mtpp-graph`` document count as more; empty where all count as stored."""
    metadata = document.get("metadata")
    stated = metadata.get("counted_weights") if isinstance(metadata, dict) else None
    return [key for key in _WORDS if key in stated] if isinstance(stated, dict) else []


def as_counted(counted: list[str]) -> str:
    """Return how they count, behind what is said of memory."""
    return f"as weights are counted ({' and '.join(_WORDS[key] for key in counted)})"
