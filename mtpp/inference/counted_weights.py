"""Words for limits on memory where weights count as more than the file of a graph holds."""

from __future__ import annotations

from collections.abc import Collection

_HOW = (("unpacked_bytes", "as they are computed with"), ("repeated_bytes", "at each reader"))


def as_weights_count(counted: Collection[str]) -> str:
    """Return how weights count, behind what is said of memory; nothing where they count as the file holds them.

    Parameters
    ----------
    counted
        Keys of the metadata ``counted_weights`` of a graph, which say which weights count as more.
    """
    why = " and ".join(text for key, text in _HOW if key in counted)
    return f" as weights are counted ({why})" if why else ""
