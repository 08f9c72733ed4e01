"""Weights that count as more than a file holds: stored in fewer bits than ops read them with, or read by several ops.

A plan counts the weights of an op as its operator reads them, and those of several ops at each of them. A stage may
hold less; the difference is told where it is a hundredth of the weights or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.units import format_bytes

_SMALLEST_SHARE = 100


def counted_weights(sizes: Mapping[str, int], readers: Mapping[str, Sequence[str]], stored: Mapping[str, int]) -> Any:
    """Return what weights count as beyond what is stored, as metadata; nothing where that is little.

    Parameters
    ----------
    sizes, readers
        Bytes of each weight, and the ops that read it.
    stored
        Bytes in the file of those that count as more.
    """
    smallest = max(1, sum(sizes.values()) // _SMALLEST_SHARE)
    repeated = sum(size * (len(readers[name]) - 1) for name, size in sizes.items())
    unpacked = {name: size for name, size in sizes.items() if name in stored and stored[name] < size}
    found: dict[str, int] = {}
    if repeated >= smallest:
        found["repeated_bytes"] = repeated
    if sum(size - stored[name] for name, size in unpacked.items()) >= smallest:
        found["unpacked_bytes"] = sum(unpacked.values())
        found["packed_bytes"] = sum(stored[name] for name in unpacked)
    return found


def told_weights(counted: Mapping[str, int]) -> list[str]:
    """Return the same for people."""
    texts = []
    if "unpacked_bytes" in counted:
        unpacked, packed = format_bytes(counted["unpacked_bytes"]), format_bytes(counted["packed_bytes"])
        texts.append(f"weights stored in fewer bits count as they are computed with: {unpacked} for {packed}")
    if "repeated_bytes" in counted:
        more = format_bytes(counted["repeated_bytes"])
        texts.append(f"weights that several ops read count at each of them: {more} more than the file holds")
    return texts
