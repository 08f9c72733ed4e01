"""The node bound: some stage holds op v, and any stage that does costs so much, by a flow.

The proof is an op v, a feasible flow for the stages that hold it, with the tensors' transfers as capacities
(:mod:`mtpp.checker.flows`), and whether parameters are streamed. Let w(u) be the work of op u and C = 0; if parameters
are streamed, the work and s(u), and C as in :mod:`mtpp.checker.merged`. Then f(S) ≥ w(S) + c(S) − C for any
stage S that has an op. Every op u but v must have a(u) ≤ w(u). By (1) there, for any S that holds v,

    w(S) + c(S) ≥ w(v) − a(v) + Σ_{u ∈ S, u ≠ v} (w(u) − a(u)) ≥ w(v) − a(v).

So OPT ≥ w(v) − a(v) − C, −a(v) being what v gives out on balance. Limits on a stage's memory only leave partitions out.
"""

from __future__ import annotations

from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.flows import FlowChecker, check_drawn, check_flow
from mtpp.checker.merged import WITHOUT_MEMORY, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.document_shape import flag, record, whole


def check_node(claim: BoundClaim) -> Verdict:
    """Re-check a node bound, which may be less than its flow proves.

    Notes
    -----
    O(pins) and the replay of the merges.
    """
    rules = {"op": whole(), "streamed": flag, "flow": check_flow, "drawn": check_drawn}
    record(rules, {"merges": check_merges})(claim.proof, claim.path)
    graph = claim.merged()
    if isinstance(graph, str):
        return False, f"node: {graph}"
    op, flow = claim.proof["op"], claim.proof["flow"]
    if op >= len(graph.group_of):
        return False, f"node: there is no op {op}"
    weights = stage_weights(graph, claim.system, streamed=claim.proof["streamed"])
    if weights is None:
        return False, f"node: {WITHOUT_MEMORY}"
    weight, constant = weights
    here = graph.group_of[op]
    absorbed = FlowChecker(graph).absorbed(here, flow, claim.proof["drawn"])
    if isinstance(absorbed, str):
        return False, f"node: {absorbed}"
    for group, amount in absorbed.items():
        if group != here and amount > weight[group]:
            return False, f"node: {claim.name(graph, group)} gets {amount} ticks, it may at most {weight[group]}"
    proven = weight[here] - absorbed.get(here, 0) - constant
    name = claim.graph.op_names[op]
    if proven < claim.value:
        return False, f"node: the flow proves {proven} ticks for the stage of op {name!r}, not {claim.value}"
    flow_of = counted(len(flow), "tensor")
    return True, f"node: any stage with op {name!r} costs {claim.value} ticks or more, by a flow of {flow_of}"
