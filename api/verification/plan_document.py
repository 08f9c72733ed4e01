"""Verification of a plan for inference: its model is read as the plan says that it was."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.api.verification.last_read import LastRead
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.checker.plan import Report
    from mtpp.formats.io.source import Source
    from mtpp.formats.measured.measured_costs import MeasuredCosts
    from mtpp.machine.device import Device


class Graph(NamedTuple):
    """A model as a graph document.

    Attributes
    ----------
    sha256, costs_sha256
        Of its file, and of that of its measured costs; None for no file.
    own_costs
        Whether its file brings the costs of its ops; None where that is not known.
    """

    document: dict[str, Any]
    sha256: str | None = None
    costs_sha256: str | None = None
    own_costs: bool | None = None


def verify_plan_document(
    plan: Any, source: Source, request: VerifyRequest, observer: Observer, last: LastRead | None = None
) -> Report:
    """Read the model if one is given, and verify the plan that *source* was.

    Parameters
    ----------
    last
        The model as it was read for another plan of the same request.

    Raises
    ------
    InputError
        If the plan or the model is malformed, or measured costs are given or missing without need.
    """
    from mtpp.api.verification.request import due_sizes
    from mtpp.api.verification.searches import downset_search
    from mtpp.checker.document import check_plan
    from mtpp.checker.plan import verify_plan
    from mtpp.checker.unchecked import unchecked_plan
    from mtpp.formats.modelled.size_terms import named_sizes
    from mtpp.host.alarm import TimeIsUp

    model = next(iter(request.models), None)
    last = last or LastRead()
    try:
        check_plan(plan, ())
        if request.unfound is not None and "graph" not in plan:
            named = named_sizes(request.dims_due)
            system_due = request.system_due_for(plan["model"]["dims"])
            return unchecked_plan(plan, request.unfound, system_due=system_due, dims_due=named)
        if model is None and "graph" not in plan:
            request.refuse_missing()
        graph = None
        costs = last.read("costs", None, lambda: costs_for(request))
        times, measured = None, None
        stated, system, devices = plan["model"], plan["system"], plan.get("machine")
        if model is not None:
            names = plan["assignment"].keys()
            key: tuple[Any, ...] = (
                model,
                stated["dims"],
                stated.get("keep_state"),
                "costs_sha256" in stated,
                system,
                names,
            )
            graph = last.read("graph", key, lambda: graph_of(model, stated, system, request, costs, names=names))
            if devices is not None:
                key = (model, stated["dims"], devices)
                times = last.read("times", key, lambda: times_of(model, plan, request, costs))
        elif costs is not None:
            raise InputError("go with a model", parameter="costs", remedy="give it with ‹model›")
        if devices is not None:
            own = (model, stated["dims"], plan.get("graph"))
            measured = last.read("measured", own, lambda: measured_times(model, plan, request))
        return verify_plan(
            plan,
            None if graph is None else graph.document,
            graph_sha256=None if graph is None else graph.sha256,
            costs_sha256=None if graph is None else graph.costs_sha256,
            own_costs=None if graph is None else graph.own_costs,
            model_given=graph is not None and graph.sha256 is not None,
            model_unfound=request.unfound,
            search=None if request.asked.shallow else downset_search(observer, request.memory_bytes, request.deadline),
            system_due=request.system_due_for(plan["model"]["dims"]),
            dims_due=last.read(
                "dims",
                (stated["dims"], system),
                lambda: due_sizes(request.dims_due, stated["dims"], model, system, request),
            ),
            machine_due=request.machine_due_for(plan["model"]["dims"]),
            times_due=times,
            measured_due=measured,
            degrees_due=None if model is None or "degrees" not in plan else degrees_of(model, plan, request),
            prompts_due=None if model is None or "first_token" not in plan else prompts_of(model, plan, request),
            layers_due=None if model is None or "capacity" not in plan else layers_of(model, plan, request),
            ended_by=(TimeIsUp,),
        )
    except InputError as error:
        path = model if isinstance(model, str) else "‹model›"
        where = path if error.source == "model" else error.source or source.display
        raise InputError(error.problem, source=where, where=error.where, remedy=error.remedy) from None


def graph_of(
    model: str | SuppliedModel,
    stated: Mapping[str, Any],
    system: dict[str, Any],
    request: VerifyRequest,
    costs: MeasuredCosts | None,
    *,
    dims: dict[str, int] | None = None,
    names: Collection[str] = (),
    **reading: Any,
) -> Graph:
    """Return a model for the sizes and the system that a result states.

    Parameters
    ----------
    stated
        Part of the result on its model: its sizes, and the SHA-256 of its measured costs, if any.
    costs
        Measured costs that were given along.
    names
        Of ops in the result: where they are names of the model's nodes, its ops are called so.
    reading
        More that :func:`mtpp.formats.graphs.recognise.read_graph` is told.
    """
    from mtpp.formats.graphs.native import to_document
    from mtpp.formats.graphs.recognise import takes_sizes
    from mtpp.formats.measured.measured_costs import with_costs
    from mtpp.formats.modelled.node_names import named_as

    dims = stated["dims"] if dims is None else dims
    kept = stated.get("keep_state", {})
    if not isinstance(model, str):
        costs = costs or model.costs
        if model.training is not None:
            raise InputError("a model to be trained, the result is about inference", parameter="model")
        if model.graph is not None and (model.again is None or model.read_for(dims, system, kept)):
            refuse_missing_costs(stated, costs)
            graph = model.graph if costs is None or costs is model.costs else with_costs(model.graph, costs)
            own = model.own_costs if costs is None else False
            return Graph(
                to_document(named_as(graph, names)), model.sha256, None if costs is None else costs.sha256, own
            )
    refuse_missing_costs(stated, costs)
    source = _source_of(model, request)
    assert source is not None
    document = model_document(source, dims, system, {**request.read_as.values(), **reading}, costs, kept, names)
    own = costs is None and not takes_sizes(source)
    return Graph(document, source.sha256, None if costs is None else costs.sha256, own)


def times_of(
    model: str | SuppliedModel, plan: Mapping[str, Any], request: VerifyRequest, costs: MeasuredCosts | None
) -> list[Sequence[Any] | None]:
    """Return the times of a model's ops on each device of a plan's machine.

    They are None where they were measured, and where the model has times of its own: then they are its work at the
    device's speed.
    """
    from mtpp.formats.graphs.recognise import read_graph, takes_sizes

    devices = plan["machine"]["devices"]
    source = None if costs is not None else _source_of(model, request)
    if source is None or not takes_sizes(source):
        return [None] * len(devices)
    found: dict[Device, Sequence[Any]] = {}
    times: list[Sequence[Any] | None] = []
    for i, stated in enumerate(devices):
        device = _device_of(stated, i)
        if "costs_sha256" not in stated and device not in found:
            read = request.read_as.values()
            found[device] = read_graph(source, dims=plan["model"]["dims"], system=device, **read).work
        times.append(None if "costs_sha256" in stated else found[device])
    return times


def degrees_of(
    model: str | SuppliedModel, plan: Mapping[str, Any], request: VerifyRequest
) -> dict[int, tuple[dict[str, Any], list[Sequence[Any] | None]]] | None:
    """Return the share of a model at each degree above 1 of a plan's devices, and the times of its ops on each of them.

    Degrees that the model is not divided by are left out. None for what is no language model.
    """
    from mtpp.language_models.serving_load import GPUS

    devices = plan["machine"]["devices"]
    listed = {degree for stated in devices for degree in stated.get(GPUS, [])}
    return _shares_of(model, plan["model"]["dims"], sorted(listed - {1}), devices, request)


def prompts_of(
    model: str | SuppliedModel, plan: Mapping[str, Any], request: VerifyRequest
) -> dict[int, tuple[dict[str, Any], list[Sequence[Any] | None]]] | None:
    """Return a model for the prompts of a plan at each of its degrees, as :func:`degrees_of` does."""
    devices = plan["machine"]["devices"]
    return _shares_of(model, plan["first_token"]["dims"], plan["degrees"], devices, request)


def _shares_of(
    model: str | SuppliedModel,
    dims: Mapping[str, int],
    degrees: Sequence[int],
    devices: Sequence[Mapping[str, Any]],
    request: VerifyRequest,
) -> dict[int, tuple[dict[str, Any], list[Sequence[Any] | None]]] | None:
    from mtpp.formats.graphs.language_model import looks_like_description
    from mtpp.formats.graphs.native import to_document
    from mtpp.formats.language_models.graph import graph_of, shares
    from mtpp.language_models.serving_load import GPUS

    source = _source_of(model, request)
    if source is None or not looks_like_description(source.data):
        return None
    placed = [(_device_of(stated, i), stated.get(GPUS, [1])) for i, stated in enumerate(devices)]
    found: dict[int, tuple[dict[str, Any], list[Sequence[Any] | None]]] = {}
    for degree, layers in shares(source, dims, degrees).items():
        if isinstance(layers, InputError):
            continue
        first = next((device for device, listed in placed if degree in listed), placed[0][0])
        graph = to_document(graph_of(layers, first, layers.load.sizes()))
        found[degree] = graph, [layers.times_ps(device) if degree in listed else None for device, listed in placed]
    return found


def layers_of(
    model: str | SuppliedModel, plan: Mapping[str, Any], request: VerifyRequest
) -> dict[tuple[int, str, int], dict[str, Any]] | None:
    """Return the graphs of a language model at the capacity of a plan and at the next value, for their sizes.

    Returns
    -------
    By degree of tensor parallelism, phase and value; None for what is no language model.
    """
    from mtpp.formats.graphs.language_model import looks_like_description
    from mtpp.formats.graphs.native import to_document
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.language_models.serving_load import BATCH, CONTEXT, DECODE, GPUS, PROMPT
    from mtpp.solvers.serving.capacity import Load

    source, stated = _source_of(model, request), plan["capacity"]
    if source is None or not looks_like_description(source.data):
        return None
    load = Load(stated["objective"], stated["context"], stated["sequences"], stated["batch"], plan["k"])
    rest = {key: size for key, size in plan["model"]["dims"].items() if key not in (CONTEXT, PROMPT, BATCH)}
    found = {}
    for column in stated["layers"]:
        for value in (stated["value"], stated["next_infeasible"]):
            if value is None:
                continue
            context, _, batch = load.at(value)
            sizes = {**rest, CONTEXT if column["phase"] == DECODE else PROMPT: context, BATCH: batch}
            sizes |= {GPUS: column["degree"]} if column["degree"] > 1 else {}
            device = _device_of(plan["machine"]["devices"][0], 0)
            graph = read_graph(source, dims=sizes, system=device, **request.read_as.values())
            found[column["degree"], column["phase"], value] = to_document(graph)
    return found


def _source_of(model: str | SuppliedModel | None, request: VerifyRequest) -> Source | None:
    """Return the file of a model; None where there is none to read again."""
    from mtpp.api.inputs.model_source import model_source

    again = model if model is None or isinstance(model, str) else model.again
    if not isinstance(again, str):
        return again
    return model_source(again, request.max_model_bytes, adapters=request.asked.adapters)


def _device_of(stated: Mapping[str, Any], i: int) -> Device:
    """Return a device of a plan's machine, by rates, speed, and GPUs that share a stage alone."""
    from mtpp.document_shape import refuse
    from mtpp.machine.device import Device
    from mtpp.machine.link import Link
    from mtpp.machine.tensor_group import TensorGroup

    try:
        speed = Fraction(stated["speed"])
        device = Device(
            "device", stated["peak_flops_per_s"], stated["memory_bandwidth_bytes_per_s"], Link(1), speed=speed
        )
    except (ValueError, ZeroDivisionError, InputError):
        refuse("is no speed", ("machine", "devices", i, "speed"))
    try:
        return replace(device, tensor=TensorGroup.from_figures(stated))
    except InputError as error:
        refuse(error.problem, ("machine", "devices", i, "tensor_parallel"))


def costs_for(request: VerifyRequest) -> MeasuredCosts | None:
    """Read the file with measured costs, if there is one."""
    from mtpp.formats.io.source import read_source
    from mtpp.formats.measured.measured_costs import read_costs

    if request.asked.costs is None:
        return None
    return read_costs(read_source(request.asked.costs, max_bytes=request.max_model_bytes))


def refuse_missing_costs(stated: Mapping[str, Any], costs: MeasuredCosts | None) -> None:
    """Raise InputError if a result was made with measured costs, and there are none: nothing could be compared."""
    if "costs_sha256" in stated and costs is None:
        raise InputError(
            "was made with measured costs", remedy=f"give them with ‹costs› (SHA-256 {stated['costs_sha256']})"
        )


def model_document(
    source: Source,
    dims: dict[str, int],
    system: dict[str, Any],
    reading: Mapping[str, Any],
    costs: MeasuredCosts | None = None,
    keep_state: Mapping[str, str] = MappingProxyType({}),
    names: Collection[str] = (),
) -> dict[str, Any]:
    """Return a model as a graph document, read for the sizes and the system that a result with *names* states."""
    from mtpp.api.inputs.kept_states import keep_states
    from mtpp.formats.graphs.native import to_document
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.formats.measured.measured_costs import with_costs
    from mtpp.formats.modelled.node_names import named_as
    from mtpp.machine.device import Device

    graph = read_graph(source, dims=dims, system=Device.from_document(system), **reading)
    graph = keep_states(graph, keep_state)
    return to_document(named_as(graph if costs is None else with_costs(graph, costs), names))


def measured_times(
    model: str | SuppliedModel | None, plan: Mapping[str, Any], request: VerifyRequest
) -> list[Sequence[Any] | None] | None:
    """Return the times of ops on each device from the files of the machine that the plan is held to.

    They are None on devices without measured times, and all of them without such a machine. The ops are those of the
    graph in the plan, or else of the model.
    """
    from mtpp.api.inputs.device_costs import named_by
    from mtpp.api.inputs.model import measured
    from mtpp.formats.graphs.native import graph_from_document
    from mtpp.formats.graphs.recognise import read_graph

    machine = request.machine.placed_for(request.system)
    if machine is None or not any(device.costs for device in machine.devices):
        return None
    if "graph" in plan:
        graph = graph_from_document(plan["graph"], request.display)
    elif model is not None and not isinstance(model, str) and model.graph is not None:
        graph = model.graph
    else:
        source = _source_of(model, request)
        if source is None:
            return None
        graph = read_graph(source, dims=plan["model"]["dims"], system=request.system.device, **request.read_as.values())
    times: list[Sequence[Any] | None] = []
    for device in machine.devices:
        with named_by(machine, device.costs, request.machine.machine):
            times.append(measured(graph, device.costs, request.max_model_bytes, "")[1].work if device.costs else None)
    return times
