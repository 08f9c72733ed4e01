"""Weights that count as more than the file of a graph holds, and words for limits on memory where they do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_HOW = (("unpacked_bytes", "as they are computed with"), ("repeated_bytes", "at each reader"))


def counted_weights_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of the metadata of a graph that say which weights count as more: none where it says nothing."""
    stated = metadata.get("counted_weights")
    return tuple(key for key, _ in _HOW if key in stated) if isinstance(stated, Mapping) else ()


def as_weights_count(counted: Collection[str]) -> str:
    """Return how weights count, behind what is said of memory; nothing where they count as the file holds them.

    Parameters
    ----------
    counted
        Of :func:`counted_weights_of`.
    """
    why = " and ".join(text for key, text in _HOW if key in counted)
    return f" as weights are counted ({why})" if why else ""
