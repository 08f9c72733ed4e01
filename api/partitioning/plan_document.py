"""Documents of plans that were made here, with the files of their models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.names import DIRECT

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.inference.plan import Plan
    from mtpp.machine.machine import Machine


def plan_document(plan: Plan, model: Model, *, elapsed_s: float, embed: bool = False) -> dict[str, Any]:
    """Return the ``mtpp-plan`` document of a plan for a model.

    Parameters
    ----------
    elapsed_s
        Seconds that it took.
    embed
        Whether the graph goes in, so that the document can be verified alone; it does in any case where the model's
        file alone does not give this graph.
    """
    from mtpp.formats.graphs.native import plain_document, ticks_document
    from mtpp.inference.model_file import OWN_COSTS

    graph, machine = None, None
    alone = embed or model.source.path is None or model.read_as_told
    if alone and (model.machine is None or _is_plain(plan, model.machine)):
        graph = ticks_document(model.graph, plan.instance.work.tolist(), plan.instance.transfer.tolist())
    elif alone:
        graph = plain_document(model.graph)
    if model.machine is not None:
        machine = model.machine_document(alone=alone)
    graphs, prompt_graphs = None, None
    if alone and plan.degrees is not None:
        from mtpp.api.inputs.degrees import graph_documents

        graph, graphs = plain_document(model.graph), graph_documents(model.degrees or {})
        prompt_graphs = None if plan.first_token is None else graph_documents(plan.first_token.graphs)
    return plan.to_document(
        file=model.recorded | ({OWN_COSTS: True} if model.own_costs else {}),
        dims=model.dims,
        proposed_dims=model.proposed_dims,
        keep_state=model.keep_state,
        elapsed_s=elapsed_s,
        graph_document=graph,
        machine=machine,
        graphs=graphs,
        prompt_graphs=prompt_graphs,
    )


def _is_plain(plan: Plan, machine: Machine) -> bool:
    """Return whether ticks on a machine are those of any of its devices, as times of the graph."""
    device = machine.classes[0]
    own = device.costs or device.stage_times_ps or device.link.latency_ps
    plain = len(machine.classes) == 1 and machine.transport == DIRECT and not own
    # Ticks of a graph without a unit are no costs of it where they are finer.
    whole = plan.instance.time_unit != "1" or plan.instance.ticks_per_unit == 1
    return plain and device.speed == device.link.speed == 1 and whole
