"""Devices that train, and limits of planning for them."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from mtpp.api.options.kinds import Amounts, InputPath, Rate, Seconds, Whole
from mtpp.api.options.option import Options, option
from mtpp.errors import InputError
from mtpp.ranges import MOST_DEVICES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mtpp.training.device_tree import DeviceTree


class Devices(Options):
    """Devices of a training pipeline; a plan may use fewer."""

    devices: int | None = option(None, Whole(1, MOST_DEVICES), "Devices at most.", "K")
    memory: str | int | Iterable[str | int] | None = option(
        None, Amounts(), "Of each device, such as 8GiB; of pfeife: also one of each.", "SIZE",
        more="With :class:`mtpp.Pfeife`, None is no limit.",
    )  # fmt: skip
    bandwidth: str | int | None = option(
        None, Rate(), "Of each device's link, such as 25GiB/s or 25GiB/ms.", "RATE",
        more="With :class:`mtpp.Pfeife`, None is 25 GB/s.",
    )  # fmt: skip
    topology: str | os.PathLike[str] | DeviceTree | None = option(
        None, InputPath("the topology", other="DeviceTree"),
        "In place of ‹devices› and ‹bandwidth›: networks within networks.", "FILE.toml", more="Or levels of devices.",
    )  # fmt: skip

    @cached_property
    def tree(self) -> DeviceTree | None:
        """Levels of devices; None where there is one, of *devices* with *bandwidth*."""
        from mtpp.training.device_tree import DeviceTree, load_device_tree

        if self.topology is None or isinstance(self.topology, DeviceTree):
            return self.topology
        return load_device_tree(os.fspath(self.topology))

    def refuse_pairs(self) -> None:
        """Refuse a topology beside what it says already; of planners that take one."""
        for name in ("devices", "bandwidth") if self.topology is not None else ():
            if getattr(self, name) is not None:
                raise InputError(f"says what ‹{name}› does", parameter="topology", remedy="give one of them")

    def equal_memory(self) -> int | None:
        """Return the memory of every device in bytes, for planners that take no other."""
        if self.memory is None or isinstance(self.memory, int):
            return self.memory
        raise InputError("is one amount for all devices", parameter="memory")


class Planning(Options):
    """Limits of a planner."""

    time_limit_s: float | None = option(None, Seconds(), "From process start.", "S", more="In Python: from the call.")
    jobs: int | None = option(
        None, Whole(), "Threads [default: all cores].", also="-j", more="The result does not depend on it."
    )
