"""The table of cost rules of ATen operators, and what an operator without one is taken for."""

from __future__ import annotations

from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops import dense, elementwise, factorisations, movement, reduction, vision
from mtpp.formats.torch_export.flops.cost_rule import CostRule

RULES: dict[str, CostRule] = {
    **dense.RULES,
    **elementwise.RULES,
    **factorisations.RULES,
    **movement.RULES,
    **reduction.RULES,
    **vision.RULES,
}

_SPACES = ("aten.", "prims.", "quantized_decomposed.", "higher_order.", "_operator.", "torch._functorch.predispatch.")


def plain_kind(kind: str) -> str:
    """Return the name of an operator without its namespace and the underscore of one that writes in place."""
    space, _, name = kind.rpartition(".")
    if f"{space}." not in _SPACES:
        return kind
    return name[:-1] if name.endswith("_") and not name.startswith("__") and name[:-1] in RULES else name


def call_cost(call: CallView) -> tuple[NodeCost, bool]:
    """Return the cost of a call, and whether there is a rule for it; without one it is bound by memory."""
    rule = RULES.get(call.kind)
    if rule is None:
        return NodeCost(flops=0), False
    return rule(call), True
