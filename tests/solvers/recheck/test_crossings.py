"""What has to cross between stages: cuts by two ways agree, and no partition within the limit crosses less."""

from __future__ import annotations

import random

import oracles
import pytest
from downset_proofs import narrow_case, random_case

from mtpp.solvers.recheck import compiled
from mtpp.solvers.recheck.arrays import work_around
from mtpp.solvers.recheck.compiled import minimum_cut_compiled
from mtpp.solvers.recheck.crossings import SINK, SOURCE, Network, least_crossings, minimum_cut_plain


def random_network(seed: int) -> Network:
    """Return a network of up to nine nodes, arcs in both directions, some capacities zero."""
    pick = random.Random(seed)
    nodes = pick.randint(2, 9)
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and v != SOURCE and u != SINK]
    arcs = [(u, v, pick.randint(0, 9)) for u, v in pairs if pick.random() < 0.4]
    return Network(nodes, arcs, [])


def value_of(network: Network, side: set[int]) -> int:
    """Return what it costs to have these nodes on the source's side."""
    return sum(capacity for tail, head, capacity in network.arcs if tail in side and head not in side)


def test_minimum_cuts_are_minimum() -> None:
    """Both ways find the least value over all sets of nodes, and a set of that value."""
    for seed in range(150):
        network = random_network(seed)
        sides = [
            {SOURCE} | {node for node in range(2, network.nodes) if mask >> node & 1}
            for mask in range(0, 1 << network.nodes, 4)
        ]
        least = min(value_of(network, side) for side in sides)
        for minimum_cut in (minimum_cut_plain, minimum_cut_compiled):
            value, side = minimum_cut(network)
            assert value == least, seed
            assert SOURCE in side
            assert SINK not in side
            assert value_of(network, side) == least, seed


@pytest.mark.parametrize(
    ("arc", "by", "fault"),
    [(0, 1, "not within its capacities"), (1, 1, "not within its capacities"), (None, 0, "not a maximum one")],
)
def test_a_wrong_flow_is_noticed(arc: int | None, by: int, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the kernel changes capacities, or stops too early."""
    network = Network(3, [(SOURCE, 2, 4), (2, SINK, 3)], [])

    def wrong(arcs: object, residual: list[int], *rest: object, **options: object) -> int:
        if arc is not None:
            residual[arc] += by
        return 3

    monkeypatch.setattr(compiled, "max_flow", wrong)
    with pytest.raises(RuntimeError, match=fault):
        minimum_cut_compiled(network)


def test_an_unbalanced_flow_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What enters a node leaves it."""
    network = Network(3, [(SOURCE, 2, 4), (2, SINK, 3)], [])

    def wrong(arcs: object, residual: list[int], *rest: object, **options: object) -> int:
        residual[0], residual[2] = 0, 4  # the first arc and its reverse
        return 4

    monkeypatch.setattr(compiled, "max_flow", wrong)
    with pytest.raises(RuntimeError, match="not balanced"):
        minimum_cut_compiled(network)


def test_every_partition_within_the_limit_crosses_as_much() -> None:
    """Stage by stage, empty ones at the end; and where there is said to be no partition, there is none."""
    positive = impossible = 0
    for seed in range(2000, 2160):
        case = narrow_case(seed, most_ops=7) if seed % 2 else random_case(seed)
        if case is None or case.k < 2 or case.system.memory_bytes is not None:
            continue
        for cutoff in (case.optimum - 2, case.optimum, case.optimum + 1, case.optimum + 6):
            claim = case.claim(max(0, cutoff), ["crossings", "fit"])
            around = work_around(claim)
            least = least_crossings(claim, *around, minimum_cut_plain)
            assert least == least_crossings(claim, *around, minimum_cut_compiled)
            if least is None:
                impossible += 1
                assert cutoff <= case.optimum, seed
                continue
            positive += any(least)
            ticks = oracles.to_ticks(case.graph, case.system, case.k)
            for stages in oracles.monotone_assignments(case.graph, claim.stages):
                if any(len({stages[v] for v in group}) > 1 for group in case.groups):
                    continue
                if oracles.bottleneck(case.graph, case.system, stages, case.k) > claim.limit:
                    continue
                for i in range(1, claim.stages):
                    made = sum(
                        cost
                        for cost, (u, readers) in zip(ticks.transfer, oracles.tensors_of(case.graph), strict=True)
                        if stages[u] == i - 1 and any(stages[v] > i - 1 for v in readers)
                    )
                    assert made >= least[i], (seed, stages)
    assert positive > 20
    assert impossible > 20
