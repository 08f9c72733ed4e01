"""Keyword parameters of :func:`mtpp.plan_training` by planner, for type checkers; it says what they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import os

    from mtpp.api.observer import Observer
    from mtpp.training.device_tree import DeviceTree


class SharedParameters(TypedDict, total=False):
    """Parameters of :func:`plan_training` that mean something to all planners."""

    devices: int | None
    memory: str | int | None
    bandwidth: str | int | None
    batch_size: int | None
    micro_batch_size: int | None
    data_parallel: bool
    recompute: bool
    time_unit: str | None
    time_limit_s: float | None
    jobs: int | None
    observer: Observer | None


class LineParameters(SharedParameters, total=False):
    """Parameters of planners whose stages form a line."""

    topology: str | os.PathLike[str] | DeviceTree | None
    max_micro_batches: int | None
    gradient_accumulation: int | None
    exact_micro_batches: bool
    convention: str
    tensor_parallel: bool
    knapsack: str


class GraphParameters(SharedParameters, total=False):
    """Parameters of planners whose stages form a graph."""

    latency: str | int | None
    micro_batch_sizes: Iterable[int] | None
    per_stage_micro_batch: bool
    kfkb: Iterable[int]
    in_flight: str
    sequential: bool


class AnyParameters(LineParameters, GraphParameters, total=False):
    """Parameters of any planner."""
