"""Merges of the reduction leave the optimum as it is."""

from __future__ import annotations

import random
from collections.abc import Collection

import numpy as np
import oracles
import pytest
from graph_strategies import NO_MEMORY, chain, graphs, merging_graph, partitions
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.reduction.reduced_instance import ALL_RULES, ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance

EACH_AND_ALL = [*((rule,) for rule in ALL_RULES), ALL_RULES]
GRAPHS_PER_CASE = 400


def groups_of(graph: CostGraph, reduced: ReducedInstance) -> list[list[int]]:
    """Return the ops of the graph that each op at the end stands for."""
    groups: dict[int, list[int]] = {}
    for v in range(graph.op_count):
        place = v
        for merges in reduced.rounds:
            place = int(merges.contraction.group_of[place])
        groups.setdefault(place, []).append(v)
    return list(groups.values())


def member_names(instance: Instance) -> list[set[str]]:
    """Return the names of the graph's ops that each op of an instance stands for."""
    return [set(instance.members_of(v)) for v in range(instance.op_count)]


def reduced(graph: CostGraph, rules: Collection[str] = ALL_RULES, system: Device = NO_MEMORY) -> list[set[str]]:
    """Return what is left of a graph for two stages."""
    return member_names(reduce_instance(Instance.build(graph, Machine.uniform(2, system)), rules).instance)


def abstract(ops: dict[str, int], tensors: list[tuple[str, str, int]]) -> CostGraph:
    """Build a graph from the work of ops called by one letter and (producer, readers, transfer) of tensors."""
    return CostGraph.build(
        name="drawn",
        time_unit="1",
        ops=[Op(name, work) for name, work in ops.items()],
        tensors=[Tensor(f"t{i}", u, tuple(readers), None, cost) for i, (u, readers, cost) in enumerate(tensors)],
    )


@pytest.mark.parametrize("case", range(len(EACH_AND_ALL)))
def test_the_optimum_stays(case: int) -> None:
    """The best partition that keeps every merged group together is as good as any, by each rule alone and by all."""
    rules = EACH_AND_ALL[case]
    merged = 0
    for seed in range(GRAPHS_PER_CASE):
        draw = random.Random(1000 * case + seed)
        graph, k = merging_graph(1000 * case + seed, draw.randint(2, 8)), draw.randint(1, 4)
        smaller = reduce_instance(Instance.build(graph, Machine.uniform(k, NO_MEMORY)), rules)
        assert {str(merge[0]) for merge in smaller.record()} <= set(rules)
        together = [ops for ops in groups_of(graph, smaller) if len(ops) > 1]
        merged += bool(together)
        kept = oracles.brute_force_optimum(graph, NO_MEMORY, k, together)
        assert kept == oracles.brute_force_optimum(graph, NO_MEMORY, k), (case, seed)
    assert merged > GRAPHS_PER_CASE // 10


@settings(max_examples=100)
@given(graphs(min_ops=2, max_ops=7), st.integers(1, 4))
def test_the_optimum_stays_whatever_the_graph(graph: CostGraph, k: int) -> None:
    """The same on graphs of every time unit, with costs that hardly ever allow a merge."""
    smaller = reduce_instance(Instance.build(graph, Machine.uniform(k, NO_MEMORY)))
    kept = oracles.brute_force_optimum(graph, NO_MEMORY, k, groups_of(graph, smaller))
    assert kept == oracles.brute_force_optimum(graph, NO_MEMORY, k)


@pytest.mark.parametrize("rules", EACH_AND_ALL)
@pytest.mark.slow
def test_no_stage_of_any_partition_gets_dearer(rules: tuple[str, ...]) -> None:
    """Carried into the smaller instance, every stage costs at most what it did, and lifted again the same."""
    for seed in range(40):
        graph = merging_graph(seed, 6)
        instance = Instance.build(graph, Machine.uniform(3, NO_MEMORY))
        rounds = reduce_instance(instance, rules).rounds
        for partition in partitions(graph, instance) if rounds else ():
            before = stage_costs(instance, partition).cost
            for merges in rounds:
                partition = merges.carry(partition)
                after = stage_costs(merges.contraction.instance, partition).cost
                assert np.all(after <= before)
                lifted = merges.contraction.lift(partition)
                assert stage_costs(merges.contraction.original, lifted).cost.tolist() == after.tolist()
                before = after


def test_moves_end_at_ops_that_stay() -> None:
    """Whoever follows the moves of a round comes to the leader of the op's group; nobody goes in circles."""
    for seed in range(50):
        for merges in reduce_instance(Instance.build(merging_graph(seed, 30), Machine.uniform(4, NO_MEMORY))).rounds:
            for op, group in enumerate(merges.contraction.group_of.tolist()):
                end, steps = op, 0
                while merges.target[end] != end:
                    end, steps = int(merges.target[end]), steps + 1
                    assert steps <= 30
                assert end == merges.leader[group]


def test_the_record_replays_to_the_same_groups() -> None:
    """Merging along the record, any member standing for its group, gives the groups of the last instance."""
    for seed in range(50):
        graph = merging_graph(seed, 20)
        smaller = reduce_instance(Instance.build(graph, Machine.uniform(4, NO_MEMORY)))
        group = list(range(20))
        for rule, *movers, leader in smaller.record():
            assert rule in ALL_RULES
            assert len({group[int(op)] for op in [*movers, leader]}) == len(movers) + 1
            moved = {group[int(op)] for op in movers}
            group = [group[int(leader)] if g in moved else g for g in group]
        replayed = {frozenset(v for v in range(20) if group[v] == g) for g in group}
        assert replayed == {frozenset(ops) for ops in groups_of(graph, smaller)}


def test_the_record_names_ops_as_asked() -> None:
    """Ops of a first instance that was merged before go by whatever number stands for them in the graph."""
    instance = Instance.build(chain([9, 0, 9], [1, 5]), Machine.uniform(2, NO_MEMORY))
    assert reduce_instance(instance).record() == [["pull-down", 1, 2]]
    assert reduce_instance(instance).record([40, 50, 60]) == [["pull-down", 50, 60]]
    assert ReducedInstance(instance).record() == []


def test_a_chain_of_cheap_ops_becomes_one() -> None:
    """Every link costs more than what is before it: nothing should ever be cut, and one round sees to it."""
    rounds = reduce_instance(
        Instance.build(chain([1] * 999, [2 * i + 2 for i in range(998)]), Machine.uniform(3, NO_MEMORY))
    ).rounds
    assert [merges.contraction.instance.op_count for merges in rounds] == [1]


def test_cheap_ops_join_their_only_neighbour_on_either_side() -> None:
    """A cheap op goes down to its only reader, and a cheap reader up to its only producer."""
    graph = abstract({"a": 10, "u": 1, "v": 10, "w": 2}, [("a", "u", 3), ("u", "v", 4), ("v", "w", 2)])
    assert reduced(graph) == [{"a"}, {"u", "v", "w"}]
    assert reduced(graph, ["pull-down"]) == [{"a"}, {"u", "v"}, {"w"}]
    assert reduced(graph, ["pull-up"]) == [{"a"}, {"u"}, {"v", "w"}]


def test_several_tensors_between_two_ops_add_up() -> None:
    """Two links outweigh an input of 3 and the work; either alone would not."""
    ops = {"a": 9, "u": 2, "v": 9}
    assert reduced(abstract(ops, [("a", "u", 3), ("u", "v", 3), ("u", "v", 2)])) == [{"a"}, {"u", "v"}]
    assert len(reduced(abstract(ops, [("a", "u", 3), ("u", "v", 3)]))) == 3


def test_what_both_read_is_no_reason_to_stay_apart() -> None:
    """The reader needs the input anyway."""
    ops = {"a": 9, "u": 1, "v": 9, "b": 9}
    assert reduced(abstract(ops, [("a", "uv", 1), ("u", "v", 1), ("v", "b", 1)])) == [{"a"}, {"u", "v"}, {"b"}]
    assert len(reduced(abstract(ops, [("a", "u", 1), ("a", "v", 1), ("u", "v", 1), ("v", "b", 1)]))) == 4


def test_a_source_without_work_joins_its_first_reader() -> None:
    """All other readers come after it; of two readers that do not wait for each other either may be first."""
    ops = {"s": 0, "a": 5, "b": 5, "c": 5}
    cheap = [("a", "b", 0), ("b", "c", 0)]
    assert reduced(abstract(ops, [("s", "bac", 7), *cheap])) == [{"a", "s"}, {"b"}, {"c"}]
    assert reduced(abstract(ops, [("s", "abc", 7), *cheap]), ["pull-down"]) == [{"s"}, {"a"}, {"b"}, {"c"}]
    assert len(reduced(abstract(ops, [("s", "ab", 7), ("a", "c", 0), ("b", "c", 0)]))) == 4


def test_a_sink_without_work_joins_its_last_producer() -> None:
    """What it reads from earlier ops must cost nothing, or be read by the last producer too."""
    ops = {"a": 9, "b": 9, "z": 0}
    assert reduced(abstract(ops, [("a", "bz", 4), ("b", "z", 3)])) == [{"a"}, {"b", "z"}]
    assert reduced(abstract(ops, [("a", "b", 4), ("a", "z", 0), ("b", "z", 3)])) == [{"a"}, {"b", "z"}]
    assert len(reduced(abstract(ops, [("a", "b", 4), ("a", "z", 4), ("b", "z", 3)]))) == 3


def test_many_ops_move_to_one_in_a_single_round() -> None:
    """A hub and its cheap readers need no round for each."""
    readers = [f"r{i}" for i in range(50)]
    ops = [Op("hub", 9), *(Op(name, 1) for name in readers), Op("end", 500)]
    tensors = [Tensor(f"in{name}", "hub", (name,), None, 3) for name in readers]
    tensors += [Tensor(f"out{name}", name, ("end",), None, 2) for name in readers]
    graph = CostGraph.build(name="hub", time_unit="1", ops=ops, tensors=tensors)
    rounds = reduce_instance(Instance.build(graph, Machine.uniform(2, NO_MEMORY)), ["pull-up"]).rounds
    assert [merges.contraction.instance.op_count for merges in rounds] == [2]


def gate(work: int) -> CostGraph:
    """Make a dear tensor x from a that is multiplied by a cheap function of itself, and then shrinks."""
    ops = {"i": 90, "a": 19, "p": work, "q": work, "m": 2, "z": 90}
    tensors = [("i", "a", 30), ("a", "pm", 40), ("p", "q", 1), ("q", "m", 1), ("m", "z", 20)]
    return abstract(ops, tensors)


def test_a_region_moves_where_no_pair_does() -> None:
    """Running the gate and the product costs less than moving x; op by op there is nothing to gain."""
    assert len(reduced(gate(4), ALL_RULES[:4])) == 6
    assert reduced(gate(4), ["region-up"]) == [{"i"}, {"a", "p", "q", "m"}, {"z"}]
    assert len(reduced(gate(10), ["region-up"])) == 6


def test_a_region_moves_down_to_its_last_op() -> None:
    """The gate with all edges turned around."""
    ops = {"z": 90, "m": 2, "q": 4, "p": 4, "a": 19, "i": 90}
    tensors = [("z", "m", 20), ("m", "q", 1), ("q", "p", 1), ("m", "a", 40), ("p", "a", 40), ("a", "i", 30)]
    assert reduced(abstract(ops, tensors), ["region-down"]) == [{"z"}, {"a", "p", "q", "m"}, {"i"}]


def test_a_stage_that_would_miss_an_op_keeps_it() -> None:
    """Without b, which its reader r needs at 50, a stage of b and r would pay more; else v and w might share one."""
    ops = {"v": 9, "b": 1, "w": 1, "r": 90}
    for missed, left in ((50, 4), (5, 2)):
        tensors = [("v", "b", 10), ("v", "w", 100), ("b", "w", 0), ("b", "r", missed)]
        assert len(reduced(abstract(ops, tensors), ["region-up"])) == left


@settings(max_examples=100)
@given(graphs(min_ops=2, max_ops=7), st.data())
def test_any_partition_carries_over_none_the_worse(graph: CostGraph, data: st.DataObject) -> None:
    """Ops move to their leaders, and no stage becomes the slowest for it."""
    instance = Instance.build(graph, Machine.uniform(3, NO_MEMORY))
    cuts = sorted(data.draw(st.lists(st.integers(0, graph.op_count), min_size=2, max_size=2)))
    stage = np.searchsorted(cuts, np.arange(graph.op_count), side="right")
    labels = np.empty(graph.op_count, dtype=np.int32)
    labels[instance.order] = stage
    partition = Partition.from_stages(instance, labels)
    worst = bottleneck(instance, partition)
    for merges in reduce_instance(instance).rounds:
        partition = merges.carry(partition)
        assert bottleneck(merges.contraction.instance, partition) <= worst


MEMORIES = [
    Device("streams", 1, 1, Link(10**12), 15, 3),
    Device("limited", 1, 1, Link(10**12), None, 3, memory_bytes=14),
    Device("both", 1, 1, Link(10**12), 9, 3, memory_bytes=14),
]
"""One byte takes one picosecond on the link."""


@pytest.mark.parametrize("system", MEMORIES, ids=lambda system: system.name)
def test_the_optimum_stays_where_memory_matters(system: Device) -> None:
    """A stage that gets another op pays for its parameters, or the op has none where they might not fit."""
    merged = 0
    for seed in range(300):
        draw = random.Random(seed)
        graph = merging_graph(seed, draw.randint(2, 7), time_unit="ps", largest_params=8)
        instance = Instance.build(graph, Machine.uniform(draw.randint(1, 4), system))
        together = [ops for ops in groups_of(graph, reduce_instance(instance)) if len(ops) > 1]
        merged += bool(together) and instance.memory_matters
        kept = oracles.brute_force_optimum(graph, system, instance.k, together)
        assert kept == oracles.brute_force_optimum(graph, system, instance.k), seed
    assert merged > 30


@pytest.mark.parametrize("system", MEMORIES, ids=lambda system: system.name)
def test_no_stage_gets_dearer_or_too_large(system: Device) -> None:
    """Where memory matters, too, no stage of any partition pays more, and none comes to exceed the limit."""
    for seed in range(40):
        graph = merging_graph(seed, 5, time_unit="ps", largest_params=8)
        instance = Instance.build(graph, Machine.uniform(3, system))
        smaller = reduce_instance(instance)
        limit = system.memory_bytes or 2**62
        for partition in partitions(graph, instance) if smaller.rounds else ():
            before = stage_costs(instance, partition)
            after = stage_costs(smaller.instance, smaller.carry(partition))
            assert np.all(after.cost <= before.cost)
            assert np.all((after.param_bytes + after.peak_bytes <= limit) | (after.param_bytes <= before.param_bytes))


def heavy_chain(params: int) -> CostGraph:
    """Make a chain of cheap ops with parameters and dear links, in us."""
    return CostGraph.build(
        name="heavy",
        time_unit="us",
        ops=[Op(f"op{i}", 1, param_bytes=params) for i in range(5)],
        tensors=[Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), 1, 5) for i in range(4)],
    )


def test_parameters_keep_ops_apart_where_memory_matters() -> None:
    """They are streamed where they do not fit, and may not move at all under a hard limit."""
    fast = Device("fast", 1, 1, Link(10**9), 10)
    assert len(reduced(heavy_chain(0), system=fast)) == 1
    assert len(reduced(heavy_chain(4_000), system=fast)) == 3, "4 us to stream and 1 to run: either end may move"
    assert len(reduced(heavy_chain(4_001), system=fast)) == 5
    hard = Device("hard", 1, 1, Link(10**9), memory_bytes=10)
    assert len(reduced(heavy_chain(0), system=hard)) == 1
    assert len(reduced(heavy_chain(3), system=hard)) == 5
    assert len(reduced(heavy_chain(2), system=hard)) == 1, "everything fits into one stage"


def test_nothing_moves_where_working_memory_counts() -> None:
    """What an op's activations take depends on what else its stage runs, and when."""
    tight = Device("tight", 1, 1, Link(10**9), 1, peak="order")
    assert len(reduced(heavy_chain(0), system=tight)) == 5
    ample = Device("ample", 1, 1, Link(10**9), 10**9, peak="order")
    assert len(reduced(heavy_chain(0), system=ample)) == 1
