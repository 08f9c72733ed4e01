"""Looped schedules, replayed pass by pass in plain Python, and problems small enough to go through every split."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.training.pfeife.line import ModelLine, graph_line
from mtpp.training.pfeife.problem import SplitProblem

Row = list[tuple[int, str, int]]
"""Passes of a device: stage, F, B, I or W, and micro-batch."""


def family_rows(devices: int, micro_batches: int, loops: int, loop_batch: int, warm_up: Sequence[int]) -> list[Row]:
    """Return the rows of a looped schedule, from its definition."""
    rows = []
    for d in range(devices):
        forward: Row = []
        backward: Row = []
        for begin in range(0, micro_batches, loop_batch):
            batch = range(begin, min(micro_batches, begin + loop_batch))
            forward += [(d + loop * devices, "F", m) for loop in range(loops) for m in batch]
            backward += [(d + loop * devices, "B", m) for loop in reversed(range(loops)) for m in batch]
        row = forward[: warm_up[d]]
        late = iter(forward[warm_up[d] :])
        for one in backward:
            row.append(one)
            row += [following for following in [next(late, None)] if following is not None]
        rows.append(row)
    return rows


def replayed(
    rows: Sequence[Row], forward: Sequence[int], backward: Sequence[int], handover: Sequence[int]
) -> int | None:
    """Return the iteration of passes in rows, None if some of them wait for each other.

    *handover* has the ticks behind each stage but the last one.
    """
    devices, stages = len(rows), len(forward)
    arrived: dict[tuple[int, str, int], int] = {}
    channel: dict[tuple[int, int], int] = {}
    free, at = [0] * devices, [0] * devices
    moved = True
    while moved:
        moved = False
        for d, row in enumerate(rows):
            while at[d] < len(row):
                stage, kind, m = row[at[d]]
                waits = (kind == "F" and stage > 0) or (kind != "F" and stage < stages - 1)
                if waits and row[at[d]] not in arrived:
                    break
                free[d] = max(free[d], arrived.get(row[at[d]], 0)) + (forward if kind == "F" else backward)[stage]
                at[d] += 1
                moved = True
                to = stage + 1 if kind == "F" else stage - 1
                if 0 <= to < stages:
                    key = (d, to % devices)
                    channel[key] = max(free[d], channel.get(key, 0)) + handover[min(stage, to)]
                    arrived[to, kind, m] = channel[key]
    return max(free) if all(at[d] == len(row) for d, row in enumerate(rows)) else None


def kept_at_most(row: Row, kept: Sequence[int]) -> int:
    """Return the most that a device keeps of forward passes whose backward pass has not ended."""
    held = most = 0
    for stage, kind, _ in row:
        held += kept[stage] if kind == "F" else -kept[stage]
        most = max(most, held)
    return most


def random_line(pick: random.Random, ops: int) -> ModelLine:
    """Return the line of a graph with small costs, tensors between neighbours and across, and a latency at times.

    The file lists its ops in any order, and some of them may stand anywhere along a line.
    """

    def costs(most: int) -> list[int]:
        return [pick.choice([0, 1, 1, 2, 3, 5, 8, 13, most]) for _ in range(ops)]

    forward = costs(20)
    backward = costs(40) if pick.random() < 0.5 else [2 * work for work in forward]
    parameters, kept, loose = costs(40), costs(20), pick.random() < 0.5
    tensors = []
    for v in range(ops - 1):
        if pick.random() < 0.9:
            first = pick.randrange(v + 1, ops) if loose else v + 1
            readers = sorted({first} | ({pick.randrange(v + 1, ops)} if pick.random() < 0.4 else set()))
            ticks, size = pick.choice([0, 0, 1, 2, 5, 9]), pick.choice([1, 5, 20])
            tensors.append(Tensor(f"t{v}", f"v{v}", tuple(f"v{reader}" for reader in readers), size, ticks))
    listed = [
        Op(f"v{v}", *row) for v, row in enumerate(zip(forward, [""] * ops, parameters, backward, kept, strict=True))
    ]
    pick.shuffle(listed)
    graph = CostGraph.build(name="random", time_unit="ps", ops=listed, tensors=tensors)
    instance = Instance.build(graph, Machine.uniform(1, load_device("reference")))
    return graph_line(graph, instance, backward_ratio=2, state=4, latency=pick.choice([0, 0, 3]))


def every_split(ops: int, stages: int) -> Iterator[list[int]]:
    """Go through all splits of a line."""
    for cut in combinations(range(1, ops), stages - 1):
        yield [0, *cut, ops]


def needed_bytes(problem: SplitProblem, rows: Sequence[Row], split: Sequence[int]) -> list[int]:
    """Return the bytes that each device needs under a split, tensors going from neighbour to neighbour."""
    costs = problem.line.costs
    stages = [range(begin, end) for begin, end in pairwise(split)]
    crossing = [sum(t.size_bytes or 0 for t in costs.tensors if t.producer < p <= max(t.consumers)) for p in split]
    buffers = [crossing[s] + crossing[s + 1] for s in range(len(stages))]
    kept = [sum(int(costs.kept_bytes[v]) for v in stage) for stage in stages]
    everything = problem.rules.buffers == "torch-pipelining"
    need = []
    for d, row in enumerate(rows):
        total = kept_at_most(row, kept if everything else [k + b for k, b in zip(kept, buffers, strict=True)])
        for s in range(d, len(stages), problem.devices):
            total += sum(int(costs.fixed_bytes[v]) for v in stages[s])
            total += problem.micro_batches * buffers[s] if everything else 0
        need.append(total)
    return need


def warm_ups(least: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """Go through all warm-ups that do not grow from a device to the next one."""

    def below(d: int, highest: int) -> Iterator[tuple[int, ...]]:
        if d == len(least):
            yield ()
            return
        for w in range(least[d], highest + 1):
            for rest in below(d + 1, w):
                yield (w, *rest)

    yield from below(0, most)
