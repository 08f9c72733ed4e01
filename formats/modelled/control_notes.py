"""Notes on control flow, and which of them costs and sizes rest on as assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.wording import first_of

LEFT_OUT = "cannot run with these sizes"
"""What a note says of a branch that was not counted."""

COSTLIER_BRANCH = "the more expensive branch counted"
ONE_TRIP = "one trip counted"
MAY_STOP = "it may stop earlier"
GIVEN_TRIPS = "as given"

UNKNOWN_TRIPS = "trips of "
"""Prefix of the names of loops in the list of ops that are not modelled."""

_ASSUMED = (LEFT_OUT, COSTLIER_BRANCH, ONE_TRIP, MAY_STOP, GIVEN_TRIPS)
_OPS_SHOWN = 3


def assumed_of_control_flow(notes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what nobody knows before a model runs: the branch that is taken, and the number of trips.

    Parameters
    ----------
    notes
        With the ``op`` that each is about.
    """
    ops: dict[str, list[str]] = {}
    for entry in notes:
        if any(text in entry["note"] for text in _ASSUMED):
            ops.setdefault(entry["note"], []).append(entry["op"])
    return [f"{first_of(names, _OPS_SHOWN)}: {note}" for note, names in ops.items()]
