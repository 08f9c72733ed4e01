"""Proofs of bounds of the exact tier against their checkers, and cutoffs at and around the optimum."""

from __future__ import annotations

import json
from pathlib import Path

import oracles
import pytest
from cutoff_cases import LIMIT_S, MIPS, NAMES, Tally, tallied
from flow_proofs import claim_of, grouped, random_problem
from graph_strategies import LINK

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.checker.checks import check_bound
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import BOUNDS, bound_entry
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance

EXACT = [name for name, entry in BOUNDS.items() if entry.tier == "exact"]


@pytest.mark.parametrize("name", EXACT)
def test_every_exact_bound_has_a_checker(name: str) -> None:
    """What is said to be checked again from the certificate alone can be."""
    assert name in CHECKERS


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("reduced", [False, True])
def test_proofs_pass(name: str, reduced: bool) -> None:
    """On small graphs with and without memories, groups and merges, each bound is below the optimum and is proven."""
    proven = 0
    for seed in range(60):
        graph, system, k, together = random_problem(seed)
        instance, groups = grouped(graph, system, k, together)
        optimum = oracles.brute_force_optimum(graph, system, k, groups)
        if optimum >= oracles.NEVER:
            continue
        smaller = reduce_instance(instance) if reduced and name != "simple" else ReducedInstance(instance)
        limits = BoundLimits(optimum, deadline=Deadline(2))  # some get better for very long
        lower = BOUNDS[name].load()(smaller.instance, limits).lower
        if lower is None:
            continue
        assert lower.value <= optimum, seed
        proof = dict(lower.proof)
        if smaller.rounds:
            proof["merges"] = smaller.record()
        claim = claim_of(graph, system, k, together, lower.value, json.loads(json.dumps(proof)))
        check, tier = check_bound(claim, lower.method, lower.tier, optimum, None)
        assert check.passed, (seed, check.detail)
        assert tier == "exact"
        proven += 1
    assert proven > 15


CASES = 200
PARTS = 4


def hold(seeds: range, *, every: bool = True) -> dict[str, Tally]:
    """Check bounds on some cases."""
    tallies: dict[str, Tally] = {}
    refused = tallied(seeds, tallies, every=every)
    assert refused < len(seeds) / 2
    assert {name: tally.false for name, tally in tallies.items() if tally.false} == {}
    return tallies


@pytest.mark.slow
def test_some_cutoffs() -> None:
    """A few of the cases below, always run; each bound of tier solver meets the optimum somewhere."""
    tallies = hold(range(30))
    assert set(tallies) == set(NAMES)
    assert all(tallies[name].claims for name in NAMES)
    assert all(tallies[name].met for name in MIPS if name != "bottleneck-no-cut-io")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_hundreds_of_cutoffs(part: int) -> None:
    """Given to every bound of tier solver, and to the others in turn."""
    hold(range(1000 + part * CASES // PARTS, 1000 + (part + 1) * CASES // PARTS), every=False)


@pytest.mark.parametrize(
    ("name", "k"),
    [("false_bound_700693", 4), ("false_bound_800349", 2), ("false_bound_800349", 3), ("false_bound_800430", 3)],
)
@pytest.mark.slow
def test_graphs_whose_cutoff_was_once_claimed(shared_data: Path, name: str, k: int) -> None:
    """Cutoffs just above and below the optimum; costs beyond double precision are left out by all MIPs."""
    graph = read_graph(read_source(str(shared_data / "trust" / f"{name}.json")))
    instance = Instance.build(graph, Machine.uniform(k, LINK))
    optimum, beyond = _optimum(instance), name == "false_bound_700693"
    for cutoff in (optimum // 2, optimum - 1, optimum, optimum + 1, optimum + 2, optimum + optimum // 10**8 + 1):
        for bound in NAMES:
            result = bound_entry(bound).load()(instance, BoundLimits(cutoff, deadline=Deadline(LIMIT_S)))
            worked_at = bound in MIPS and simple_bound(instance).value < cutoff
            assert bool(result.left_out) == (beyond and worked_at)
            if result.lower is not None:
                assert result.lower.value <= optimum
                assert result.lower.tier != "solver" or result.lower.value < cutoff


def _optimum(instance: Instance) -> int:
    """Return OPT of up to nine ops, by brute force over the graph that the instance is of."""
    ops = [Op(name, int(work)) for name, work in zip(instance.op_names, instance.work, strict=True)]
    tensors = []
    for t in range(instance.tensor_count):
        pins = instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]].tolist()
        names = [instance.op_names[v] for v in pins]
        tensors.append(Tensor(f"t{t}", names[0], tuple(names[1:]), 0, int(instance.transfer[t])))
    graph = CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=tensors)
    return oracles.brute_force_optimum(graph, LINK, instance.k)
