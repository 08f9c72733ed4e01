"""Shares of a language model at each degree of tensor parallelism that devices of a machine may run a stage at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.inference.degrees.stage_degrees import DegreeGraph
from mtpp.language_models.serving_load import GPUS
from mtpp.language_models.tensor_degrees import Undividable

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.instance import Instance
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


def degrees_of_classes(model: Model) -> list[list[int]]:
    """Return the degrees that each class of devices may run a stage of the model at, ascending."""
    assert model.machine is not None
    assert model.degrees is not None
    known = {1, *model.degrees}
    return [[degree for degree in device.tensor.degrees if degree in known] for device in model.machine.classes]


def degree_instances(model: Model, most_used: int | None) -> dict[int, Instance]:
    """Return the instance of each degree that a stage may have, on all devices of the model's machine."""
    from mtpp.formats.io.json_shape import attributed
    from mtpp.inference.instance import Instance

    assert model.machine is not None
    assert model.degrees is not None
    found: dict[int, Instance] = {}
    for degree in sorted({degree for degrees in degrees_of_classes(model) for degree in degrees}):
        with attributed(model.source.display):
            if degree == 1:
                found[degree] = Instance.build(model.graph, model.machine, model.times or None, most_used=most_used)
            else:
                one = model.degrees[degree]
                found[degree] = Instance.build(one.graph, model.machine, one.times, most_used=most_used)
    return found


def graph_documents(model: Model) -> dict[str, Any]:
    """Return what plans embed of the shares of a model: for each degree above 1 its graph, and times by class."""
    from mtpp.formats.graphs.native import plain_document
    from mtpp.formats.io.json_text import plain_number

    return {
        str(degree): {
            "graph": plain_document(one.graph),
            "times": [None if row is None else [plain_number(time) for time in row] for row in one.times],
        }
        for degree, one in (model.degrees or {}).items()
    }


def degrees_given(model: Model, assignment: Any) -> list[int] | None:
    """Return the degree of each stage that a plan says, where devices have degrees; None where it says none.

    Parameters
    ----------
    assignment
        As :func:`mtpp.api.inputs.user_assignment.stage_labels` takes it.
    """
    from mtpp.api.inputs.model import assignment_mapping

    stages = None if model.degrees is None else assignment_mapping(assignment).get("stages")
    if not isinstance(stages, list) or not all(isinstance(row, Mapping) and GPUS in row for row in stages):
        return None
    found: list[Any] = [row[GPUS] for row in stages]
    return found if all(type(degree) is int for degree in found) else None
