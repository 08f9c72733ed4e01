"""Branches of a model, edges between them, and limits, as the search of downset chains takes them."""

from __future__ import annotations

from typing import NamedTuple

from mtpp.array_types import BoolArray, Int64Array, UInt64Array

NONE, UNKNOWN = -1, -2
"""There is no chain; or it is unknown, for there were too many downsets or steps."""


class ChainLimits(NamedTuple):
    """Limits of chains, and of the search.

    Attributes
    ----------
    most_ticks, enough_ticks
        More ticks are of no interest, nor are less than these.
    devices, memory_bytes
        Of all stages together, and on each device.
    most_downsets, most_steps
        Of the search: with more, its outcome is :data:`UNKNOWN`.
    """

    most_ticks: int
    enough_ticks: int
    devices: int
    memory_bytes: int
    most_downsets: int
    most_steps: int


class Branches(NamedTuple):
    """Branches: paths of layers entered from outside only at the first and left only at the last, in topological order.

    A downset has a number of layers of each. *Positions* are those numbers, 0 to length, of one branch after the other.

    Attributes
    ----------
    follows
        Whether a branch is equal to the one before it.
    start, length
        First position of each branch, and its layers, int64.
    replicas, batches
        Of each option: d, and micro-batches of an iteration, int64.
    sums
        Of the layers of a branch before a position, by option: ticks of an iteration; the same with synchronisation;
        bytes with the fewest micro-batches in flight of a stage that none is behind; and of one that is read by
        another. int64, shape (positions, options, 4).
    works
        Of the same layers: device-ticks and device-bytes that they take at least in any stage, int64,
        shape (positions, 2).
    passed
        Of the same layers: ticks that they delay all layers outside of their stage and the stages before, both ways and
        forward; 0 unless stages form a line. int64, shape (positions, 2).
    code_word, code_value
        Word of the code of a downset that a position adds to, and its addend; equal branches add the same. uint64.
    """

    follows: BoolArray
    start: Int64Array
    length: Int64Array
    replicas: Int64Array
    batches: Int64Array
    sums: Int64Array
    works: Int64Array
    passed: Int64Array
    code_word: Int64Array
    code_value: UInt64Array


class BranchEdges(NamedTuple):
    """Edges within branches and between them, int64.

    Attributes
    ----------
    inner
        When a stage that begins at a position within a branch could begin, both ways and forward, and what passes
        besides its passes of one micro-batch until all are through the channel to it, shape (positions, options, 3).
    entering, sources, entrances
        CSR of the edges into each branch, the branches that they come from, and the same of a stage that such an edge
        enters, shape (edges, options, 3).
    outer
        Ticks behind a stage that ends before a position within a branch, from its forward pass of a micro-batch until
        the gradients are back, shape (positions, options).
    leaving, targets, exits
        CSR of the edges out of each branch, the branches that they go to, and the same of a stage that such an edge
        leaves, shape (edges, options).
    """

    inner: Int64Array
    entering: Int64Array
    sources: Int64Array
    entrances: Int64Array
    outer: Int64Array
    leaving: Int64Array
    targets: Int64Array
    exits: Int64Array
