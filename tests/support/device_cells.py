"""Cells of random graphs on devices: order, number that may be used, and the least bottleneck by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mtpp.inference.instance import Instance


class Case(Protocol):
    """A graph and devices, with the least bottleneck by brute force."""

    def instance(self, most: int | None = None, *, free: bool = False) -> Instance: ...  # noqa: D102
    def optimum(self, most: int, *, free: bool) -> int: ...  # noqa: D102


C = TypeVar("C", bound=Case)


@dataclass(frozen=True)
class DeviceCell(Generic[C]):
    """A graph on devices in one of the two orders, of which some may be used.

    Attributes
    ----------
    most
        Devices that may be used.
    """

    case: C
    free: bool
    most: int

    def instance(self) -> Instance:
        """Return the instance in ticks."""
        return self.case.instance(self.most, free=self.free)

    def optimum(self) -> int:
        """Return the least bottleneck by brute force."""
        return self.case.optimum(self.most, free=self.free)


FORK = {
    "format": "mtpp-graph",
    "version": 1,
    "name": "fork",
    "time_unit": "us",
    "ops": [{"name": f"op{i}", "work": 10 + 7 * i % 11, "param_bytes": 10} for i in range(9)],
    "tensors": [
        {"name": f"t{i}", "producer": f"op{i}", "consumers": [f"op{i + 1}", *([f"op{i + 3}"] if i < 6 else [])],
         "transfer": 1 + i % 3, "bytes": 4}
        for i in range(8)
    ],
}  # fmt: skip
"""A chain of nine ops, some of which read from further back as well."""
