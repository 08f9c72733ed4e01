"""Stages of a training plan for a loop of one's own: modules, and PyTorch's schedule around them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mtpp.errors import InputError


def stage_modules(
    folder: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    rank: int | None = None,
    seed: int = 0,
    imports: Iterable[str] = (),
) -> list[Any]:
    """Return the stages of a training plan as modules of PyTorch.

    Parameters
    ----------
    folder
        What ``mtpp plan MODEL --planner pfeife --emit torch-pipelining -o FOLDER`` wrote.
    model
        The exported program (``.pt2``) that was planned for; weights without values are drawn at random.
    rank
        Device whose stages are wanted. None: all.
    seed
        Of such weights.
    imports
        Python modules to import first: they register operators with PyTorch.

    Returns
    -------
    ``torch.nn.Module``, in the order of the stages. A module takes what the stage before hands on and returns what the
    next one takes, as tuples of tensors; the last one returns the results of the program. ``stage_index`` is its
    number, ``example_inputs`` and ``example_outputs`` are on the device ``meta``, and parameters are called ``stage.``
    and their name in the program. Stages of one process share a parameter that several read; those of other processes
    have copies, and the caller adds up their gradients.

    Raises
    ------
    InputError
        If a parameter is of the wrong type, PyTorch is not installed, the folder or the model cannot be used, or they
        do not belong together.
    """
    from mtpp.api.options.kinds import Module, Repeated
    from mtpp.api.parameters import path_text, whole
    from mtpp.api.training.run_training import read_trained
    from mtpp.ranges import MOST_SEED

    paths = Path(path_text(folder, "folder")), Path(path_text(model, "model"))
    seed = whole(seed, "seed", least=0, most=MOST_SEED)
    if rank is not None:
        rank = whole(rank, "rank", least=0)
    found, program = read_trained(*paths, seed, Repeated(Module()).read(imports, "imports"))
    if rank is not None and rank >= found.devices:
        raise InputError(f"the plan is for ranks 0 … {found.devices - 1}, not {rank}", parameter="rank")

    from mtpp.runtime.pytorch.backward_halves import halve_backward
    from mtpp.runtime.pytorch.neighbour_stages import neighbour_stages

    stages = neighbour_stages(program.load().split())
    if found.timed.schedule.halves:
        halve_backward(dict(enumerate(stages)))
    return [one for one in stages if rank is None or one.stage_index % found.devices == rank]


def pipeline_schedule(
    folder: str | os.PathLike[str],
    modules: Sequence[Any],
    loss: Callable[..., Any],
    *,
    device: Any = "cpu",
    group: Any = None,
    scale_grads: bool = True,
) -> Any:
    """Return PyTorch's pipeline schedule of a training plan, around the stages of this process.

    Parameters
    ----------
    folder
        Of the plan, as :func:`stage_modules` takes it.
    modules
        The stages of this process: what :func:`stage_modules` returned for its rank, moved to *device*.
    loss
        Called with the results of the last stage and a target; returns a tensor with one number.
    device
        Of the modules.
    group
        Processes of the pipeline, as many as the plan has devices. None: all.
    scale_grads
        Whether gradients are divided by the number of micro-batches, as for losses that are means.

    Returns
    -------
    A schedule of ``torch.distributed.pipelining`` (PyTorch 2.13): ``step(*inputs, target=…, losses=…)`` runs an
    iteration. Inputs are cut along their first axis into as many micro-batches as the plan has, each of the size that
    the program was planned with.

    Raises
    ------
    InputError
        If a parameter is of the wrong type, the folder cannot be used, or the modules are not the plan's.
    """
    from mtpp.api.parameters import flag, path_text
    from mtpp.formats.training.training_folder import read_training_folder

    path, scale = Path(path_text(folder, "folder")), flag(scale_grads, "scale_grads")
    if not callable(loss):
        raise InputError("is no function", parameter="loss", remedy="give one of results and a target")
    if isinstance(modules, str | bytes) or not isinstance(modules, Sequence) or not modules:
        raise InputError("is no list of modules", parameter="modules", remedy="give what stage_modules returned")
    if any(not hasattr(one, "stage_index") for one in modules):
        raise InputError("holds what is no stage", parameter="modules", remedy="give what stage_modules returned")
    if not isinstance(device, str) and type(device).__module__ != "torch":
        raise InputError("is no device", parameter="device", remedy='give a name such as "cpu" or "cuda:0"')
    if group is not None and type(group).__name__ != "ProcessGroup":
        raise InputError("is no group of processes", parameter="group", remedy="give one of torch.distributed")
    found = read_training_folder(path)

    from mtpp.runtime.pytorch.pipelining import runtime_of

    return runtime_of(
        modules,
        len(found.stages),
        found.micro_batches,
        found.schedule_file,
        loss,
        group=group,
        device=device,
        scale_grads=scale,
    )
