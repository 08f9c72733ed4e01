"""Keyword parameters of :func:`mtpp.plan_training` by planner, for type checkers; it says what they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import os

    from mtpp.api.observer import Observer
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.training.device_tree import DeviceTree
    from mtpp.training.pfeife.schedule import PassSchedule


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


class SplitParameters(TypedDict, total=False):
    """Parameters of planners of split points and schedules together."""

    devices: int | None
    micro_batches: int | None
    memory: str | int | Iterable[str | int] | None
    bandwidth: str | int | None
    speed: float | str | Iterable[float | str] | None
    loops: Iterable[int] | None
    loop_batch: str
    prefetch: Iterable[int] | None
    schedule: str | os.PathLike[str] | PassSchedule | None
    backward_ratio: float | str | None
    state: float | str | None
    latency: str | int | None
    transport: str
    order: str
    search: str
    buffers: str
    dims: SizeTerms | str | None
    costs: str | os.PathLike[str] | None
    time_unit: str | None
    time_limit_s: float | None
    jobs: int | None
    observer: Observer | None


class AnyParameters(LineParameters, GraphParameters, total=False):
    """Parameters of any planner."""

    micro_batches: int | None
    speed: float | str | Iterable[float | str] | None
    loops: Iterable[int] | None
    loop_batch: str
    prefetch: Iterable[int] | None
    schedule: str | os.PathLike[str] | PassSchedule | None
    backward_ratio: float | str | None
    state: float | str | None
    transport: str
    order: str
    search: str
    buffers: str
    dims: SizeTerms | str | None
    costs: str | os.PathLike[str] | None
