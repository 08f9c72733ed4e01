"""Merges of ops for bounds that are searched on devices that differ, and not on their envelope."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.registry import bound_entry
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance

_MOST_OPS = 20_000
"""Of larger graphs merges are not looked for twice."""


class DeviceReduction:
    """An instance on devices that differ, and its merges that hold on all of them, looked for once.

    Parameters
    ----------
    instance
        On devices of any kind.
    ended
        Tells whether to end now, with what has been merged so far.
    """

    def __init__(self, instance: Instance, ended: Callable[[], bool]) -> None:
        self._instance, self._ended = instance, ended
        self._lock = Lock()
        self._reduced: ReducedInstance | None = None

    def serves(self, name: str) -> bool:
        """Tell whether a bound is searched on the devices themselves."""
        instance = self._instance
        if instance.uniform or instance.cost.counts_ops or instance.replicas or instance.op_count > _MOST_OPS:
            return False
        return instance.machine.order in bound_entry(name).device_orders

    def get(self) -> ReducedInstance:
        """Return the instance after merges."""
        with self._lock:
            if self._reduced is None:
                self._reduced = reduce_instance(self._instance, ended=self._ended)
            return self._reduced
