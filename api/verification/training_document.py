"""Verification of a training plan: its model is read as the plan says that it was."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from mtpp.api.training.task import model_of_plan
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.plan_document import Graph
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.checker.plan import Report
    from mtpp.formats.io.source import Source
    from mtpp.training.model import TrainingModel

_BANDWIDTH = "bandwidth_bytes_per_s"


def verify_training_document(plan: Any, source: Source, request: VerifyRequest, observer: Observer) -> Report:
    """Read the model, and verify the training plan that *source* was.

    Where neither the caller nor the model's file says what unit times are in, the plan does.

    Raises
    ------
    InputError
        If the plan or the model is malformed, no model is given, or the plan is held to what it does not have.
    """
    from mtpp.api.verification.searches import training_searches
    from mtpp.checker.training.machine import held_to_machine
    from mtpp.checker.training.plan import verify_training_plan
    from mtpp.checker.training.versions import check_any_training_plan
    from mtpp.checker.unchecked import unchecked_training_plan
    from mtpp.host.alarm import TimeIsUp

    supplied = next(iter(request.models), None)
    try:
        check_any_training_plan(plan, ())
        _refuse_idle_system(request)
        if supplied is None and request.unfound is not None:
            report = unchecked_training_plan(plan, request.unfound, system_due=request.system_due)
            return held_to_machine(report, plan, _machine_due(request))
        if supplied is None:
            request.refuse_missing()
            raise InputError("a training plan embeds no model", remedy="give the model with ‹model›")
        model, sha256, costs_sha256 = model_of_training_plan(plan, supplied, request)
        due = _machine_due(request)
        report = verify_training_plan(
            plan,
            model,
            sha256,
            costs_sha256=costs_sha256,
            searches=None if request.asked.shallow else training_searches(observer, request.deadline),
            system_due=request.system_due,
            ended_by=(TimeIsUp,),
        )
        return held_to_machine(report, plan, due)
    except InputError as error:
        path = supplied if isinstance(supplied, str) else "‹model›"
        where = path if error.source == "model" else error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def model_of_training_plan(
    plan: Any, supplied: str | SuppliedModel, request: VerifyRequest
) -> tuple[Any, str | None, str | None]:
    """Read the model of a well-formed training plan: a graph as a document, or a model to be trained.

    Returns
    -------
    The model, and the SHA-256 of its file and of that with measured costs.

    Raises
    ------
    InputError
        If it is malformed, or the request holds the plan to what it does not have.
    """
    from mtpp.checker.training.versions import is_split_plan

    if is_split_plan(plan) and plan["model"]["kind"] == "graph":
        named = {name for stage in plan.get("stages", ()) for name in stage["layers"]}
        graph = _graph(supplied, plan["model"], request, named)
        return graph.document, graph.sha256, graph.costs_sha256
    _refuse_graph_terms(request)
    return (*_training_model(supplied, plan["time_unit"], request), None)


def _refuse_idle_system(request: VerifyRequest) -> None:
    """Raise InputError if a training plan is held to a system that it does not have."""
    if set(request.system.due) - {_BANDWIDTH}:
        raise _idle("‹system› and its overrides but ‹bandwidth›")


def _machine_due(request: VerifyRequest) -> dict[str, Any] | None:
    """Return figures of the machine that a plan is held to; None: the plan's own choice."""
    from mtpp.api.options.machine import Devices
    from mtpp.api.training.machine_devices import machine_figures

    machine = request.machine.machine
    return None if machine is None else machine_figures(Devices(machine=machine, bandwidth=request.system.bandwidth))


def _refuse_graph_terms(request: VerifyRequest) -> None:
    """Raise InputError if a plan for layers is held to what only graphs have."""
    for parameter, supplied in (("‹costs›", request.asked.costs is not None), ("‹dims›", bool(request.dims_due))):
        if supplied:
            raise _idle(parameter)


def _idle(parameter: str) -> InputError:
    return InputError("has no effect on a training plan", source=parameter, remedy="leave it out")


def _graph(supplied: str | SuppliedModel, stated: Any, request: VerifyRequest, names: Collection[str]) -> Graph:
    """Return a graph for the sizes and the system that a plan states, whose stages have ops with such *names*."""
    from mtpp.api.verification.plan_document import costs_for, graph_of
    from mtpp.api.verification.request import due_sizes

    due = due_sizes(request.dims_due, stated["dims"], supplied, stated["system"], request)
    for name, size in due.items():
        if stated["dims"].get(name) != size:
            said = stated["dims"].get(name, "nothing")
            raise InputError(f"the plan says {said} of {name!r}", parameter="dims", where="/model/dims")
    return graph_of(supplied, stated, stated["system"], request, costs_for(request), names=names)


def _training_model(
    supplied: str | SuppliedModel, plan_unit: str, request: VerifyRequest
) -> tuple[TrainingModel, str | None]:
    from mtpp.formats.io.source import read_source
    from mtpp.formats.training.models import EXPECTED

    if isinstance(supplied, str):
        file = read_source(supplied, max_bytes=request.max_model_bytes, expected=EXPECTED)
        return model_of_plan(file, plan_unit, request.read_as.time_unit), file.sha256
    if supplied.training is None and supplied.graph is None and not isinstance(supplied.again, str | None):
        return model_of_plan(supplied.again, plan_unit, request.read_as.time_unit), supplied.sha256
    if supplied.training is None:
        raise InputError("a graph for inference, the result is a training plan", parameter="model")
    return supplied.training, supplied.sha256
