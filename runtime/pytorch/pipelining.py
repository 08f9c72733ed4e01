"""Stages under ``torch.distributed.pipelining``: what its runtime is given, and what it would get wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.runtime.pytorch.backward_halves import run_halves
from mtpp.runtime.pytorch.library import first_line, pytorch

if TYPE_CHECKING:
    import torch


def runtime_of(
    stages: Sequence[Any],
    count: int,
    micro_batches: int,
    passes: Path,
    loss: Callable[..., torch.Tensor],
    *,
    group: Any = None,
    device: Any = "cpu",
    scale_grads: bool = False,
) -> Any:
    """Return PyTorch's schedule runtime for the stages of this process.

    Parameters
    ----------
    stages
        Of this process, as :func:`mtpp.runtime.pytorch.neighbour_stages.neighbour_stages` makes them.
    count
        Number of stages of all processes.
    passes
        File with the passes of each process.
    loss
        Of the results of the program, and a target.

    Returns
    -------
    ``_PipelineScheduleRuntime``, tried with PyTorch 2.13.
    """
    torch = pytorch()
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    wrapped = [
        PipelineStage(
            one,
            one.stage_index,
            count,
            torch.device(device),
            input_args=one.example_inputs,
            output_args=one.example_outputs,
            group=group,
        )
        for one in stages
    ]
    for stage, one in zip(wrapped, stages, strict=True):
        run_halves(stage, one)
    if any(one.halved for one in stages):
        loss = _apart(loss)
    runtime = _PipelineScheduleRuntime(wrapped, micro_batches, loss_fn=loss, scale_grads=scale_grads)
    try:
        runtime._load_csv(str(passes), format="compute_only")
    except Exception as error:  # assertions without a type of their own
        raise InputError(
            f"PyTorch's runtime does not take the passes: {first_line(error)}", source=str(passes)
        ) from None
    return runtime


def _apart(loss: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a loss that shares no tensor with results, nor is a view.

    PyTorch detaches both in place after half a backward pass: no view allows that, nor does what an operator kept.
    """

    def copied(results: Any) -> Any:
        if isinstance(results, tuple):
            return tuple(map(copied, results))
        return results.clone() if results.requires_grad else results

    def found(results: Any, *others: Any, **named: Any) -> torch.Tensor:
        one = loss(copied(results), *others, **named)
        return one.clone() if one._is_view() else one

    return found


def loss_of(results: Any, target: Any = None) -> torch.Tensor:
    """Return a loss for any program: its result if that is one number, else the mean of the squares of all results."""
    listed = [one for one in (results if isinstance(results, tuple | list) else (results,)) if one.is_floating_point()]
    if not listed:
        raise InputError(
            "no result of the program has gradients", remedy="give a program that returns a loss or floats"
        )
    if len(listed) == 1 and listed[0].numel() == 1:
        alone: torch.Tensor = listed[0].reshape(())
        return alone
    total: torch.Tensor = sum((one.float() ** 2).mean() for one in listed)
    return total
