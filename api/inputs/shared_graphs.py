"""Shares of a language model at each degree of tensor parallelism that devices of a machine may run a stage at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.inference.degrees.stage_degrees import DegreeGraph
from mtpp.language_models.serving_load import GPUS
from mtpp.language_models.tensor_degrees import Undividable

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.machine import Machine
    from mtpp.units import Exact


def listed_degrees(machine: Machine) -> list[int]:
    """Return the degrees above 1 that a device has."""
    return sorted({degree for device in machine.classes for degree in device.tensor.degrees if degree > 1})


def shared_graphs(
    machine: Machine,
    read: Callable[..., CostGraph],
    sizes: Mapping[str, int],
    given: object,
    warn: Callable[[str], None],
) -> dict[int, DegreeGraph] | None:
    """Return the share of a model at each degree above 1 that it may be divided by; None without such devices.

    Parameters
    ----------
    read
        Reads the model for a system and sizes.
    sizes
        Of the whole model.
    given
        The machine as the caller gave it, for messages.

    Raises
    ------
    InputError
        If a device has no degree that the model may be divided by, or the sizes are those of a degree themselves.
    """
    from mtpp.api.inputs.device_costs import at_device

    if not any(device.tensor for device in machine.classes):
        return None
    if GPUS in sizes:
        raise InputError(f"{GPUS} is searched where devices list degrees", parameter="dims", remedy="leave it out")
    found: dict[int, DegreeGraph] = {}
    refused: dict[int, InputError] = {}
    for degree in listed_degrees(machine):
        times: list[Sequence[Exact] | None] = []
        graph = None
        try:
            for device in machine.classes:
                own = None
                if degree in device.tensor.degrees:
                    own = read(dims={**sizes, GPUS: degree}, system=device)
                    graph = graph or own
                times.append(None if own is None else own.work)
        except Undividable as error:
            refused[degree] = error
            continue
        assert graph is not None
        found[degree] = DegreeGraph(graph, tuple(times))
    for name, device in zip(machine.names, machine.devices, strict=True):
        if not any(degree == 1 or degree in found for degree in device.tensor.degrees):
            why = refused[device.tensor.degrees[0]]
            raise at_device(machine, name, "tensor_parallel", given, f"device {name}: {why.problem}", why.remedy)
    for degree, why in refused.items():
        warn(f"degree {degree} is left out: {why.problem}")
    return found
