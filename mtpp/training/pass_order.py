"""Orders of passes: in which order a stage runs the forward and backward passes of its micro-batches.

A pass is a number: j for the forward pass of micro-batch j, counted from 1, and −j for its backward pass.
"""

from __future__ import annotations

import re

import numpy as np

from mtpp.array_types import Int32Array
from mtpp.errors import InputError

MOST_PASSES = 4_000_000
"""Passes of all stages together that a simulation takes."""

_PASS = re.compile(r"([FB])([1-9][0-9]{0,9})")


def interleaved_order(micro_batches: int, in_flight: int, interval: int = 1) -> Int32Array:
    """Return the kFkB order of a stage: as many forward passes as may be in flight, then k backward, k forward in turn.

    Parameters
    ----------
    micro_batches
        M, at least 1.
    in_flight
        Forward passes before the first backward pass; more than M are M.
    interval
        k: 1 for 1F1B (Narayanan et al. 2019); k = *in_flight* = M is the order of GPipe.

    Returns
    -------
    int32, shape (2 · M,). Where fewer than k are in flight, a backward pass comes before its forward pass: such a stage
    waits for itself.

    Notes
    -----
    Jeon et al. (2025), section 6.
    """
    first = min(in_flight, micro_batches)
    number = np.arange(micro_batches)
    later = number[: micro_batches - first]
    turn = later // interval
    turns = -(-len(later) // interval)
    # In its turn, a forward pass comes after k backward passes, or after those that are left.
    place = first + 2 * interval * turn + np.minimum(interval, micro_batches - interval * turn) + later % interval
    order = np.empty(2 * micro_batches, dtype=np.int32)
    order[:first] = number[:first] + 1
    order[place] = first + later + 1
    in_turns = number[: min(turns * interval, micro_batches)]
    order[first + 2 * interval * (in_turns // interval) + in_turns % interval] = -1 - in_turns
    order[micro_batches + len(in_turns) :] = -1 - number[len(in_turns) :]
    return order


def pass_name(number: int) -> str:
    """Return a pass as ``F3`` or ``B3``."""
    return f"{'F' if number > 0 else 'B'}{abs(number)}"


def order_of_text(text: str, micro_batches: int) -> Int32Array:
    """Read an order that was written as ``F1 F2 B1 B2``: every pass of M micro-batches once.

    Raises
    ------
    InputError
        If a word is no pass, or a pass is there twice, is missing, or is of no micro-batch.
    """
    order: list[int] = []
    for word in text.split():
        match = _PASS.fullmatch(word)
        if match is None:
            raise InputError(f"{word[:20]!r} is no pass", remedy="write F1 for a forward pass, B1 for a backward pass")
        number = int(match[2])
        if number > micro_batches:
            problem = f"there is no micro-batch {number}: the mini-batch has {micro_batches:,} of this stage's"
            raise InputError(problem)
        order.append(number if match[1] == "F" else -number)
    seen: set[int] = set()
    for number in order:
        if number in seen:
            raise InputError(f"pass {pass_name(number)} is there twice")
        seen.add(number)
    for number in range(1, micro_batches + 1):
        for one in (number, -number):
            if one not in seen:
                raise InputError(f"pass {pass_name(one)} is missing")
    return np.array(order, dtype=np.int32)
