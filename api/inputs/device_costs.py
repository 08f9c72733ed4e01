"""Times that devices of a machine name for a model: each failure says the machine's file and the table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.machine import Machine


@contextmanager
def named_by(machine: Machine, costs: str, given: object) -> Iterator[None]:
    """Add the machine and the table of the first device that names a file to errors about the file.

    Parameters
    ----------
    costs
        Path of the file, as it was resolved.
    given
        Path of the machine file; a machine that was made otherwise is the parameter ``machine``.
    """
    try:
        yield
    except InputError as error:
        if not costs:
            raise
        name = next(name for name, one in zip(machine.names, machine.devices, strict=True) if one.costs == costs)
        own = ": ".join(part for part in (costs, error.where, error.problem) if part)
        raise at_device(machine, name, "costs", given, f"of {name!r}: {own}", error.remedy) from None


def at_device(
    machine: Machine, name: str, key: str, given: object, problem: str, remedy: str | None = None
) -> InputError:
    """Return an error about a key of the table that describes a device; *given* as in :func:`named_by`."""
    place = f"/device/{list(dict.fromkeys(machine.names)).index(name)}/{key}"
    if isinstance(given, str | os.PathLike):
        return InputError(problem, source=os.fspath(given), where=place, remedy=remedy)
    return InputError(problem, parameter="machine", where=place, remedy=remedy)


def refuse_other_than_chain(graph: CostGraph, machine: Machine, given: object) -> None:
    """Raise InputError where devices have times of stages, and the graph is no chain; *given* as above."""
    from mtpp.inference.stage_cost import require_one_chain

    timed = (name for name, one in zip(machine.names, machine.devices, strict=True) if one.stage_times_ps)
    name = next(timed, None)
    if name is None:
        return
    try:
        require_one_chain(graph, machine)
    except InputError as error:
        raise at_device(machine, name, "stage_times", given, error.problem, error.remedy) from None


def refuse_shared_stages(graph: CostGraph, machine: Machine, given: object) -> None:
    """Raise InputError where several GPUs may share a stage of a graph of no language model; *given* as above."""
    shared = (name for name, one in zip(machine.names, machine.devices, strict=True) if one.tensor)
    name = next(shared, None)
    if name is not None:
        problem = f"only layers of language models are divided over several GPUs, and {graph.name!r} has no such layers"
        raise at_device(machine, name, "tensor_parallel", given, problem, "leave it out")
