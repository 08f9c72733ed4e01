"""Identity of a model among several: where it was read from, what it is called, and how large it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFile:
    """A model that was read and checked once, and what is kept of it.

    Attributes
    ----------
    path
        As given, or inside the folder given; ``-`` for standard input.
    name
        Of its graph.
    dims
        Sizes of symbolic dimensions that it took.
    proposed_dims
        Names of those sizes that nobody gave.
    assumptions
        What its reader took for granted, in words.
    counted_weights
        Keys of ``metadata["counted_weights"]`` of its graph: weights that count as more than the file holds.
    costs_sha256
        Of the file with measured costs, if one was given.
    work
        Σ work of its ops, in ticks for one stage.
    read_s
        Seconds that reading it took; for the first one also those that were spent before.
    """

    path: str
    name: str
    sha256: str
    ops: int
    tensors: int
    dims: Mapping[str, int]
    work: int
    costs_sha256: str | None = None
    read_s: float = 0.0
    proposed_dims: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    counted_weights: tuple[str, ...] = ()
