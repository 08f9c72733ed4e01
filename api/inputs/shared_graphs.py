"""Shares of a language model at each degree of tensor parallelism that devices of a machine may run a stage at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.inference.degrees.stage_degrees import DegreeGraph
from mtpp.language_models.serving_load import GPUS
from mtpp.language_models.tensor_parallel import unknown_matrices

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.language_models.layer_graph import LayerGraph
    from mtpp.machine.machine import Machine


def listed_degrees(machine: Machine) -> list[int]:
    """Return the degrees above 1 that a device has."""
    return sorted({degree for device in machine.classes for degree in device.tensor.degrees if degree > 1})


def shared_graphs(
    machine: Machine,
    source: Source,
    sizes: Mapping[str, int],
    given: object,
    warn: Callable[[str], None],
) -> dict[int, DegreeGraph] | None:
    """Return the share of a model at each degree above 1 that it may be divided by; None without such devices.

    Parameters
    ----------
    source
        Description of the model.
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
    from mtpp.formats.language_models.graph import graph_of, shares

    if not any(device.tensor for device in machine.classes):
        return None
    if GPUS in sizes:
        raise InputError(f"{GPUS} is searched where devices list degrees", parameter="dims", remedy="leave it out")
    found: dict[int, DegreeGraph] = {}
    refused: dict[int, InputError] = {}
    shared: dict[int, LayerGraph] = {}
    for degree, layers in shares(source, sizes, listed_degrees(machine)).items():
        if isinstance(layers, InputError):
            refused[degree] = layers
            continue
        shared[degree] = layers
        runs = [device if degree in device.tensor.degrees else None for device in machine.classes]
        graph = graph_of(layers, next(device for device in runs if device is not None), layers.load.sizes())
        times = [None if device is None else layers.times_ps(device) for device in runs]
        found[degree] = DegreeGraph(graph, times)
    for name, device in zip(machine.names, machine.devices, strict=True):
        if not any(degree == 1 or degree in found for degree in device.tensor.degrees):
            why = refused[device.tensor.degrees[0]]
            raise at_device(machine, name, "tensor_parallel", given, f"device {name}: {why.problem}", why.remedy)
    unknown = unknown_matrices(shared[min(found)].model) if found else []
    if unknown:
        matrices = f"{len(unknown):,} {'matrices' if len(unknown) > 1 else 'matrix'}"
        warn(f"{matrices} of unknown names, {unknown[0]} the first, not divided: whole on each GPU of a stage")
    for degree, why in refused.items():
        warn(f"degree {degree} is left out: {why.problem}")
    return found
