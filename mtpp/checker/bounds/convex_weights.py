"""The bound by convex weights: weights of ops of which k convex sets cannot hold all.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Let w and C be as
in :mod:`mtpp.checker.merged`, and M = L + C. A stage S of a partition within L is convex: it has every op on a path
between two of its ops. With c(S) the transfers that S cuts, w(S) + c(S) ≤ M. The proof gives weights π_u ≥ 0 of ops and
a capacity B ≥ 0. If no convex set within M holds more than B, k stages hold k·B at most, and the claim is true if
Σ_u π_u is more.

The most that such a set holds is found by :mod:`mtpp.checker.bounds.frontier_scan`, along an order of the ops, where an
op inside is worth π_u, all else nothing. Of the labellings with a given inside, one has after it no op but those that
the inside leads to. Tensors of the proof's choice are forgotten, which makes the most no less.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.checker.bounds.frontier_scan import Frontier, Scan, TooWide
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.document_shape import Path, array, flag, items, record, refuse, signed, whole

_METHOD = "convex-weights"

check_slope = items(whole(), whole(0, 64))
"""Of p and s, by which entries of a scan are left out."""

_MOST_BITS = 62


def check_convex_weights(claim: BoundClaim) -> Verdict:
    """Re-check a bound by convex weights.

    Notes
    -----
    The replay of the merges, and one :class:`mtpp.checker.bounds.frontier_scan.Scan`.
    """
    required = {
        "cutoff": whole(1),
        "stages": whole(1),
        "streamed": flag,
        "scan": array(whole()),
        "forgotten": array(whole()),
        "weights": array(items(whole(), whole(1, 2**_MOST_BITS))),
        "capacity": whole(),
        "slope": check_slope,
    }
    record(required, {"merges": check_merges})(claim.proof, claim.path)
    graph = claim.merged_by_terms()
    if isinstance(graph, str):
        return False, f"{_METHOD}: {graph}"
    fault = _fault(claim, graph)
    if fault is not None:
        return False, f"{_METHOD}: {fault}"
    capacity = claim.proof["capacity"]
    total = sum(amount for _, amount in claim.proof["weights"])
    held = f"no convex set below {claim.value} ticks holds more than {capacity} of the ops' weight of {total}"
    return True, f"{_METHOD}: {held}, so {claim.k} are too few"


def _fault(claim: BoundClaim, graph: MergedGraph) -> str | None:
    """Return what does not hold of a proof, None if all does."""
    proof = claim.proof
    weights = stage_weights(graph, claim.system, streamed=proof["streamed"])
    if weights is None:
        return WITHOUT_MEMORY
    weight, constant = weights
    frontier = frontier_of(claim, graph, weight)
    if isinstance(frontier, str):
        return frontier
    ops = [op for op, _ in proof["weights"]]
    groups = groups_of(claim, graph, ops, "has two weights")
    if isinstance(groups, str):
        return groups
    capacity, total = proof["capacity"], sum(amount for _, amount in proof["weights"])
    if total <= claim.k * capacity:
        return f"the ops have {total} in all, which {claim.k} stages of {capacity} may hold"
    value = dict(zip(groups, (amount for _, amount in proof["weights"]), strict=True))
    worths = [(0, value.get(place.op, 0), 0) for place in frontier.places]
    try:
        most = Scan(frontier, worths, claim.value - 1 + constant, proof["slope"], capacity + 1, led=True).most()
    except TooWide as wide:
        return f"scans with {wide} are not checked"
    return None if most is None else f"a convex set may hold {most}, more than {capacity}"


def frontier_of(claim: BoundClaim, graph: MergedGraph, weight: Sequence[int]) -> Frontier | str:
    """Return the ops in the order of a proof, without the tensors that it forgets, or what is wrong with either."""
    order = groups_of(claim, graph, claim.proof["scan"], "is in the order twice")
    if isinstance(order, str):
        return order
    place = {group: i for i, group in enumerate(order)}
    missing = next((group for group in range(len(weight)) if group not in place), None)
    if missing is not None:
        return f"{claim.name(graph, missing)} is not in the order"
    for _, producer, readers in graph.tensors:
        early = next((reader for reader in readers if place[reader] < place[producer]), None)
        if early is not None:
            return f"{claim.name(graph, early)} comes in the order before one that it reads from"
    forgotten = set(claim.proof["forgotten"])
    tensor = max(forgotten, default=-1)
    if tensor >= len(graph.tensors):
        return f"there is no tensor {tensor} between ops"
    if len(forgotten) < len(claim.proof["forgotten"]):
        return "a tensor is forgotten twice"
    return Frontier(graph, weight, order, forgotten)


def groups_of(claim: BoundClaim, graph: MergedGraph, ops: Sequence[int], twice: str) -> list[int] | str:
    """Return the groups of some ops, or what is wrong: there is no such op, or a group is there *twice*."""
    groups: dict[int, None] = {}
    for op in ops:
        if op >= len(graph.group_of):
            return f"there is no op {op}"
        group = graph.group_of[op]
        if group in groups:
            return f"{claim.name(graph, group)} {twice}"
        groups[group] = None
    return list(groups)


def check_amount(value: object, path: Path) -> None:
    """Take an integer of either sign below 2^62 in magnitude."""
    signed(value, path)
    assert isinstance(value, int)
    if abs(value) >= 2**_MOST_BITS:
        refuse(f"{value} is out of range", path, f"it must be below 2^{_MOST_BITS} in magnitude")
