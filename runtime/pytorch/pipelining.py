"""Stages under ``torch.distributed.pipelining``: what its runtime is given, and what it would get wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
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

    Raises
    ------
    InputError
        If the runtime does not take the passes.
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
    runtime = _PipelineScheduleRuntime(wrapped, micro_batches, loss_fn=loss, scale_grads=scale_grads)
    try:
        runtime._load_csv(str(passes), format="compute_only")
    except Exception as error:  # assertions without a type of their own
        raise InputError(
            f"PyTorch's runtime does not take the passes: {first_line(error)}", source=str(passes)
        ) from None
    return runtime


def halve_backward(stages: Mapping[int, Any], source: str) -> None:
    """Have stages run backward passes in halves, and check that this loses no gradient.

    PyTorch's runtime finds the parameters of the half for weights behind the half for inputs. It loses, without a word,
    the gradients of parameters on whose way to the results no tensor from another stage with gradients comes in.

    Raises
    ------
    InputError
        If a stage has such a parameter.
    """
    for index, stage in stages.items():
        stage.halved = True
        if index == 0:
            continue  # it runs whole backward passes
        lost = next(_unreached(stage), None)
        if lost is not None:
            raise InputError(
                f"parameter {lost!r} meets no tensor with gradients in stage {index}: backward passes in halves would "
                "lose its gradient",
                source=source,
                remedy="plan with whole backward passes, or cut elsewhere",
            )


def _unreached(stage: Any) -> Any:
    """Yield the parameters of a stage that meet no input with gradients."""
    live = {name for name, one in zip(stage.relay.takes, stage.example_inputs, strict=True) if one.requires_grad}
    own = {name: one for name, one in stage.stage.named_parameters(remove_duplicate=False) if one.requires_grad}
    reached: set[Any] = set()
    of: dict[Any, set[str]] = {}
    met: set[str] = set()
    for node in stage.stage.graph.nodes:
        if node.op == "placeholder":
            if node.target in live:
                reached.add(node)
        elif node.op == "get_attr" and str(node.target) in own:
            of[node] = {str(node.target)}
        elif node.op == "call_function":
            inputs = node.all_input_nodes
            of[node] = set().union(*(of.get(one, set()) for one in inputs))
            if any(one in reached for one in inputs):
                reached.add(node)
                met |= of[node]
    yield from (name for name in own if name not in met)


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
