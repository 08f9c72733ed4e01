"""Contraction: the smaller instance has exactly the partitions that keep the groups together."""

from __future__ import annotations

import oracles
import pytest
from graph_strategies import graphs
from hypothesis import given
from hypothesis import strategies as st

from mtpp.contraction import contract, contract_named
from mtpp.errors import InputError
from mtpp.graph import CostGraph, Op, Tensor
from mtpp.instance import Instance
from mtpp.objective import stage_costs
from mtpp.partition import Partition
from mtpp.system import System

SYSTEM = System("s", 1, 1, 10**9)


@given(graphs(min_ops=2, max_ops=6), st.data())
def test_groups_cost_what_the_definition_says(graph: CostGraph, data: st.DataObject) -> None:
    """Every partition of the merged instance lifts to one of the same cost that keeps the group together."""
    group = data.draw(st.lists(st.integers(0, graph.op_count - 1), min_size=2, max_size=3, unique=True))
    instance = Instance.build(graph, SYSTEM, 3)
    contraction = contract(instance, [group])
    inner = contraction.instance
    cuts = sorted(data.draw(st.lists(st.integers(0, inner.op_count), min_size=2, max_size=2)))
    stage = [0] * inner.op_count
    for position, v in enumerate(inner.order.tolist()):
        stage[v] = sum(cut <= position for cut in cuts)
    partition = Partition.from_stages(inner, stage)
    lifted = contraction.lift(partition)
    assert len({int(lifted.assignment[v]) for v in group}) == 1
    assert stage_costs(inner, partition).cost.tolist() == stage_costs(instance, lifted).cost.tolist()
    assert oracles.bottleneck(graph, SYSTEM, lifted.assignment.tolist(), 3) == stage_costs(inner, partition).bottleneck


def test_ops_on_a_path_between_members_belong_to_the_group() -> None:
    """In a → b → c, keeping a and c together keeps b with them."""
    graph = CostGraph.build(
        name="path",
        time_unit="1",
        ops=[Op(name, 1) for name in "abcd"],
        tensors=[Tensor(f"t{u}", u, (v,), transfer=1) for u, v in ("ab", "bc", "cd")],
    )
    contraction = contract_named(Instance.build(graph, SYSTEM, 2), [["c", "a"]])
    assert contraction.group_of.tolist() == [0, 0, 0, 1]
    assert contraction.instance.members == (("a", "b", "c"), ("d",))
    with pytest.raises(InputError, match="no op is called 'x'"):
        contract_named(Instance.build(graph, SYSTEM, 2), [["c", "x"]])
