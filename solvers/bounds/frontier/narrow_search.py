"""Searches that scan a graph along an order with few live tensors, where there is room for the states."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.frontier.kernels.layers import SLOTS
from mtpp.solvers.bounds.frontier.scan import TooManyStates
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder, narrow_order
from mtpp.solvers.bounds.limits import BoundLimits

LARGEST = 5000
"""Ops at most."""

S = TypeVar("S")


def on_narrow_order(search: Callable[[ScanOrder, BoundLimits], S]) -> Callable[[Instance, BoundLimits], S | None]:
    """Return a function from an instance to a search along a narrow order, None where there is no room for the states.

    It is None as well where more than :data:`~mtpp.solvers.bounds.frontier.kernels.layers.SLOTS` tensors are live.
    """

    def begun(instance: Instance, limits: BoundLimits) -> S | None:
        order = narrow_order(instance, limits.seed)
        if order.width > SLOTS:
            return None
        with suppress(TooManyStates):
            return search(order, limits)
        return None

    return begun
