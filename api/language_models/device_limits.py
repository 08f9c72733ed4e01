"""Limits of devices as accelerate takes them: devices that run modules, and places that only keep weights."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

from mtpp.errors import InputError

Limits = dict[int | str, int]


def limits_of(max_memory: Any) -> Limits:
    """Bytes by device, as accelerate's ``max_memory``: GPUs by number, then ``mps``, ``cpu`` and ``disk``.

    Parameters
    ----------
    max_memory
        None: the free memory of the GPUs that are present.
    """
    limits = _of_present_gpus() if max_memory is None else given_limits(max_memory)
    if not any(limit for device, limit in limits.items() if device != "disk"):
        remedy = "give {0: '24GiB', 1: '24GiB'}"
        raise InputError("no device that runs modules has any memory", parameter="max_memory", remedy=remedy)
    return limits


def given_limits(max_memory: Any) -> Limits:
    """Bytes by device of a mapping, which may be zero."""
    from mtpp.formats.layouts.balancing import limits_in_order

    if not isinstance(max_memory, Mapping):
        problem = f"is {type(max_memory).__name__}, not a map of devices to bytes"
        raise InputError(problem, parameter="max_memory", remedy="give {0: '24GiB', 1: '24GiB'}")
    try:
        limits = limits_in_order({device: _plain(size) for device, size in max_memory.items()})
    except InputError as error:
        raise InputError(error.problem, parameter="max_memory") from None
    if any(isinstance(device, int) and device < 0 for device in limits):
        raise InputError("a device has a negative number", parameter="max_memory")
    return limits


def _plain(size: Any) -> Any:
    """Return whole numbers of any kind as Python's."""
    try:
        return size if isinstance(size, bool | str) else index(size)
    except TypeError:
        return size


def _of_present_gpus() -> Limits:
    from mtpp.runtime.pytorch.gpus import free_bytes

    found: Limits = dict(free_bytes().items())
    if not found:
        remedy = "give the limits of devices: {0: '24GiB', 1: '24GiB'}"
        raise InputError("no GPU is present", parameter="max_memory", remedy=remedy)
    return found
