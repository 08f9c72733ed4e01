"""Degrees of tensor parallelism of a model that was read: instances of them, documents, and degrees of given stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.language_models.serving_load import GPUS

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.inference.degrees.stage_degrees import DegreeGraph
    from mtpp.inference.instance import Instance


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


def graph_documents(degrees: Mapping[int, DegreeGraph]) -> dict[str, Any]:
    """Return what plans embed of a model at some degrees: for each its graph, and times by class."""
    from mtpp.formats.graphs.native import plain_document
    from mtpp.formats.io.json_text import plain_number

    return {
        str(degree): {
            "graph": plain_document(one.graph),
            "times": [None if row is None else [plain_number(time) for time in row] for row in one.times],
        }
        for degree, one in degrees.items()
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
