"""Moving single ops keeps costs, counters and the best assignment right, whatever the memories."""

from __future__ import annotations

import random

import numpy as np
import oracles
import pytest
from graph_strategies import problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from unequal_devices import unequal_instance

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.local_search.annealing import COOL, HOT, run_schedule
from mtpp.solvers.local_search.assignment import AssignmentState, MoveArrays, assignment_state, move_arrays
from mtpp.solvers.local_search.kernels.moves import NO_OP, move_op, start_from
from mtpp.solvers.local_search.kernels.polishing import polish
from mtpp.solvers.orders.kernels.random_stream import next_below, next_float, next_word
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER


def _started(instance: Instance, stage: list[int]) -> tuple[MoveArrays, AssignmentState]:
    moves = move_arrays(instance, instance.k)
    state = assignment_state(moves, instance.k, seed=1)
    start_from(np.array(stage, dtype=np.int32), moves, state)
    return moves, state


def _costs(graph: CostGraph, system: Device, stage: list[int], k: int) -> list[int]:
    """Return f of every stage from the definition; those above the hard limit are NEVER there and here."""
    costs = [oracles.stage_cost(graph, system, [v for v, s in enumerate(stage) if s == b], k) for b in range(k)]
    return [min(cost, NEVER) for cost in costs]


def _as_oracle(costs: list[int]) -> list[int]:
    return [min(cost, NEVER) for cost in costs]


@settings(max_examples=120)
@given(problems(max_ops=7), st.integers(0, 2**32))
@pytest.mark.slow
def test_costs_after_any_moves(problem: tuple[CostGraph, Device, int], seed: int) -> None:
    """After each of many random legal moves every stage costs what the definition says."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    stage = [0] * graph.op_count
    moves, state = _started(instance, stage)
    before = oracles.predecessors(graph)
    pick = random.Random(seed)
    for _ in range(12):
        op = pick.randrange(graph.op_count)
        first = max((stage[u] for u in before[op]), default=0)
        last = min((stage[v] for v in range(graph.op_count) if op in before[v]), default=k - 1)
        target = pick.randint(first, last)
        if target != stage[op]:
            stage[op] = target
            move_op(np.int64(op), np.int64(target), moves, state)
        assert _as_oracle(state.cost.tolist()) == _costs(graph, system, stage, k)
    assert state.stage.tolist() == stage


def test_moves_between_unequal_devices() -> None:
    """Work, transfers and memory are those of the class of each stage's device, after each of many moves."""
    for seed in range(40):
        instance = unequal_instance(seed)
        pick = random.Random(seed)
        moves, state = _started(instance, [0] * instance.op_count)
        for op in reversed(instance.order.tolist()):
            if pick.random() < 0.5 and all(state.stage[w] == 1 for w in instance.successor_lists()[op]):
                move_op(np.int64(op), np.int64(1), moves, state)
            costs = stage_costs(instance, Partition.from_stages(instance, state.stage.copy()))
            held = costs.param_bytes + costs.peak_bytes
            for j, device in enumerate(instance.machine.devices):
                allowed = costs.ops[j] == 0 or held[j] <= (device.memory_bytes or 2**60)
                assert state.cost[j] == costs.cost[j] if allowed else state.cost[j] >= NEVER


@settings(max_examples=60)
@given(problems(max_ops=7), st.integers(0, 2**32), st.sampled_from((HOT, COOL)))
@pytest.mark.slow
def test_annealing_keeps_the_best_that_it_met(
    problem: tuple[CostGraph, Device, int], seed: int, schedule: object
) -> None:
    """The current and the best assignment are legal, cost what is said, and the best is none worse than the start."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    moves, state = _started(instance, [0] * graph.op_count)
    state.stream[0] = seed
    start = int(state.best[0])
    assert run_schedule(schedule, 300, max(1, min(start, 10**15)), 1e-7, moves, state, lambda: False) == 300
    before = oracles.predecessors(graph)
    for stage, worst in (
        (state.stage.tolist(), int(state.cost.max())),
        (state.best_stage.tolist(), int(state.best[0])),
    ):
        assert all(stage[u] <= stage[v] for v in range(graph.op_count) for u in before[v])
        assert min(worst, NEVER) == max(_costs(graph, system, stage, k))
    assert int(state.best[0]) <= start


@settings(max_examples=60)
@given(problems(max_ops=7), st.integers(0, 2**32))
def test_polishing_ends_where_no_single_move_helps(problem: tuple[CostGraph, Device, int], seed: int) -> None:
    """Where it ends, no op can leave or join a slowest stage with both stages below the bottleneck; none worse.

    Of several slowest stages it empties the ones that it can; the best assignment that it keeps is then an earlier one,
    as slow.
    """
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    moves, state = _started(instance, [0] * graph.op_count)
    state.stream[0] = seed
    run_schedule(HOT, 50, max(1, min(int(state.best[0]), 10**15)), 1e-7, moves, state, lambda: False)
    start = int(state.best[0])
    polish(10**6, moves, state)
    assert int(state.best[0]) <= start
    stage = state.stage.tolist()
    costs = _costs(graph, system, stage, k)
    worst = max(costs)
    assert worst == max(_costs(graph, system, state.best_stage.tolist(), k)) == min(int(state.best[0]), NEVER)
    before = oracles.predecessors(graph)
    helped = set()
    for op in range(graph.op_count):
        for target in range(k):
            moved = [*stage[:op], target, *stage[op + 1 :]]
            if target == stage[op] or any(moved[u] > moved[v] for v in range(graph.op_count) for u in before[v]):
                continue
            after = _costs(graph, system, moved, k)
            if max(after[stage[op]], after[target]) < worst:
                helped |= {stage[op], target}
    assert any(costs[b] == worst and b not in helped for b in range(k))


def test_polishing_swaps_and_chains() -> None:
    """Ops of 5, 4 | 3, 3, 1 become 5, 3 | 4, 3, 1 by a swap: no single move helps."""
    from mtpp.inference.graph import Op

    ops = [Op(f"op{i}", work) for i, work in enumerate((5, 4, 3, 3, 1))]
    graph = CostGraph.build(name="swap", time_unit="1", ops=ops, tensors=[])
    moves, state = _started(Instance.build(graph, Machine.uniform(2, load_device())), [0, 0, 1, 1, 1])
    polish(10**6, moves, state)
    assert int(state.best[0]) == 8


def test_many_moves_since_the_best_are_copied_whole() -> None:
    """More moves than ops since the best one was kept overflow the journal; the next best is right all the same."""
    graph = random_graph(2, 30)
    system = load_device()
    instance = Instance.build(graph, Machine.uniform(4, system))
    moves, state = _started(instance, [0] * graph.op_count)
    state.best[0] = 0  # nothing is better for now
    run_schedule(HOT, 3000, int(state.cost.max()), 1e-7, moves, state, lambda: False)
    assert state.journal_length[0] == -1
    state.best[0] = state.cost.max() + 1
    run_schedule(COOL, 3000, int(state.cost.max()), 1e-7, moves, state, lambda: False)
    assert int(state.best[0]) == max(_costs(graph, system, state.best_stage.tolist(), 4))


@pytest.mark.parametrize(("move_s", "pieces"), [(1e-9, 16), (1e-7, 16), (1e-3, 150)])
def test_a_run_can_be_ended_before_each_piece(move_s: float, pieces: int) -> None:
    """The slower the moves, the fewer between two looks at the clock; none at all if it is over from the start."""
    moves, state = _started(Instance.build(random_graph(2, 30), Machine.uniform(4, load_device())), [0] * 30)
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > pieces

    assert run_schedule(HOT, 3000, int(state.cost.max()), move_s, moves, state, stopped) == 3000
    assert len(asked) == pieces
    assert run_schedule(HOT, 3000, int(state.cost.max()), move_s, moves, state, stopped) == 0


def test_no_op_is_no_op() -> None:
    """The mark for "no op" is below all of them."""
    assert NO_OP < 0


def test_random_stream_is_splitmix64() -> None:
    """The first words for the seed 1234567, as published with the generator."""
    stream = np.array([1234567], dtype=np.uint64)
    words = [int(next_word(stream)) for _ in range(5)]
    assert words == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_random_numbers_keep_to_their_range(count: int) -> None:
    """Integers below *count*, all of them where there are few; floats in [0, 1) with a mean near one half."""
    stream = np.array([5], dtype=np.uint64)
    drawn = {int(next_below(stream, count)) for _ in range(2000)}
    assert drawn <= set(range(count))
    assert len(drawn) > 0.8 * min(count, 1000)
    floats = [float(next_float(stream)) for _ in range(2000)]
    assert 0 <= min(floats) <= max(floats) < 1
    assert sum(floats) / 2000 == pytest.approx(0.5, abs=0.03)
