"""Random graphs read for their devices as a caller does, by a machine whose devices have names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from random_devices import RandomCase

import mtpp
from mtpp.machine.machine import Machine


def model_of(case: RandomCase, *, free: bool) -> Any:
    """Return the graph of a case read for its machine, whose devices have names."""
    machine: Machine = case.machine(free=free)
    groups = tuple(replace(group, name=f"d{i}") for i, group in enumerate(machine.groups))
    return mtpp.read(case.graph(), machine=replace(machine, groups=groups))
