"""Schedules of PyTorch's pipelining, made without any process group: its classes ask stages for a few numbers only."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Rows = list[list[str]]


def torch_schedules() -> Any:
    """Return PyTorch's module of schedules, or skip the test where there is no PyTorch."""
    pytest.importorskip("torch")
    return pytest.importorskip("torch.distributed.pipelining.schedules")


def torch_order(class_name: str, devices: int, micro_batches: int, loops: int) -> Rows:
    """Return the passes of each device in a schedule class of PyTorch, idle slots left out."""
    made = getattr(torch_schedules(), class_name)(_stages(devices, loops), micro_batches)
    return _names(made.pipeline_order)


def torch_order_of_one_loop(class_name: str, devices: int, micro_batches: int) -> Rows:
    """Return the passes of each device in a schedule class of PyTorch for one stage a device."""
    schedule_class = getattr(torch_schedules(), class_name)
    made = schedule_class.__new__(schedule_class)
    made._num_stages, made._n_microbatches = devices, micro_batches
    order = made._get_pipeline_order()
    return [[name for name in row if "REDUCE_GRAD" not in name] for row in _names(order)]


def torch_runtime(devices: int, micro_batches: int, loops: int, file: Path) -> Any:
    """Return PyTorch's runtime with the passes that it read from a CSV file."""
    runtime = torch_schedules()._PipelineScheduleRuntime(_stages(devices, loops), micro_batches)
    runtime._load_csv(str(file), format="compute_only")
    return runtime


def rows_of_runtime(runtime: Any) -> Rows:
    """Return the passes of each device that a runtime has read, idle slots left out."""
    return _names(runtime.pipeline_order)


def _stages(devices: int, loops: int) -> list[SimpleNamespace]:
    """Return stand-ins for the stages of the first device."""
    return [
        SimpleNamespace(
            stage_index=loop * devices,
            num_stages=loops * devices,
            group_size=devices,
            group_rank=0,
            submod=None,
            is_first=loop == 0,
            is_last=loop * devices == loops * devices - 1,
        )
        for loop in range(loops)
    ]


def _names(order: dict[int, list[Any]]) -> Rows:
    return [[str(action) for action in order[d] if action is not None] for d in range(len(order))]
