"""Least traffic between stages: the rule *crossings* of a proof by downset search, in plain integers.

Take a partition into stages 1 … k, the last ones perhaps empty, that cost at most L each. Let D_i be all ops of the
first i stages, and n_i the transfers of tensors that stage i makes for later ones: it pays for each, and so does at
least one later stage, which reads it. Adding up the costs of stages 1 … i, and of all after them,

* i·L ≥ work(D_i) + n_1 + … + n_i, and
* (k − i)·L ≥ work(V − D_i) + c_i + 2·(n_{i+1} + … + n_{k−1}), where c_i ≥ n_i are the transfers of all tensors that are
  made in D_i and read outside: the stages after i pay for them once, and for what they make for each other twice.

With numbers μ_i ≤ n_i, the work of D_i is between

* a_i = max(0, W − (k − i)·L + μ_i + 2·(μ_{i+1} + … + μ_{k−1})) and
* b_i = min(W, i·L − (μ_1 + … + μ_i)),

W being all work; if a_i > b_i for some i there is no such partition. An op is in no D_i if it and all that leads to it
have more work than b_i, and it is in every D_i if all work but its own and that of what follows it is less than a_i. An
op of D_i that is in no D_{i−1} is in stage i. So n_i is at least the *cut*: the least, over all downsets D that hold
what is in every D_i and nothing that is in none, of the transfers of tensors from ops of D that are in no D_{i−1} to
ops outside D. If there is no such D, or the cut is above L, there is no such partition; else the cut is a new μ_i.

The second line is a sharper *fit*. Say the search reached D with j stages within the limit, and what is outside D can
be cut into k − j more. All of them together are a partition within the limit, whose next downset is E = D_{j+1}: so
work(V − E) + c + 2·(μ_{j+2} + … + μ_{k−1}) ≤ (k − j − 1)·L, c being what E makes for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mtpp.solvers.recheck.claim import DownsetClaim, members

MOST_ROUNDS = 8
"""A proof's numbers are those after so many rounds, if they have not stopped growing before."""

SOURCE, SINK = 0, 1


class Network(NamedTuple):
    """Arcs with capacities between nodes, of which 0 is the source and 1 the sink.

    Attributes
    ----------
    nodes
        Their number.
    arcs
        Tail, head and capacity.
    ops
        The op that each node from the third on stands for, as far as nodes stand for ops.
    """

    nodes: int
    arcs: list[tuple[int, int, int]]
    ops: list[int]


MinimumCut = Callable[[Network], tuple[int, set[int]]]
"""Returns the value of a minimum cut and the nodes on the source's side of one."""


def least_crossings(
    claim: DownsetClaim, upto: Sequence[int], onward: Sequence[int], minimum_cut: MinimumCut
) -> list[int] | None:
    """Return μ_0 … μ_k for a claim, or None if they show that there is no partition within its limit.

    Parameters
    ----------
    upto, onward
        Work of each op and of all that leads to it, and of it and all that follows.

    Notes
    -----
    At most :data:`MOST_ROUNDS` · (k − 1) minimum cuts.
    """
    k, limit = claim.stages, claim.limit
    total = sum(claim.work)
    least = [0] * (k + 1)
    for _ in range(MOST_ROUNDS):
        windows = _windows(claim, least)
        if any(a > b for a, b in windows):
            return None
        found = list(least)
        for i in range(1, k):
            (a, b), (_, b_before) = windows[i], windows[i - 1]
            inside = _set_of(total - work < a for work in onward)
            outside = _set_of(work > b for work in upto)
            new = _set_of(work > b_before for work in upto)
            if inside & outside:
                return None
            if inside and outside and new:
                found[i] = max(least[i], _cut(claim, inside, outside, new, minimum_cut))
            if found[i] > limit:
                return None
        if found == least:
            break
        least = found
    return None if any(a > b for a, b in _windows(claim, least)) else least


def _windows(claim: DownsetClaim, least: list[int]) -> list[tuple[int, int]]:
    k, limit, total = claim.stages, claim.limit, sum(claim.work)
    return [
        (
            max(0, total - (k - i) * limit + least[i] + 2 * sum(least[i + 1 :])),
            min(total, i * limit - sum(least[: i + 1])),
        )
        for i in range(k + 1)
    ]


def _set_of(holds: Iterable[bool]) -> int:
    """Return the set of the ops that something holds of, given op by op."""
    return int("".join("1" if of_op else "0" for of_op in holds)[::-1], 2)


def _cut(claim: DownsetClaim, inside: int, outside: int, new: int, minimum_cut: MinimumCut) -> int:
    network = _network(claim, inside, outside, new)
    value, side = minimum_cut(network)
    downset = inside
    for node, op in enumerate(network.ops, start=2):
        if node in side:
            downset |= 1 << op
    if any(claim.before[v] & ~downset for v in members(downset)) or downset & outside:
        raise RuntimeError("a minimum cut is no downset")
    if claim.crossing(downset & new, claim.everything & ~downset) != value:
        raise RuntimeError("a minimum cut has another value")
    return value


def _network(claim: DownsetClaim, inside: int, outside: int, new: int) -> Network:
    """Return the network whose cuts are the downsets between *inside* and all but *outside*, at their cost.

    The source's side is the downset. A tensor is a node: it costs its transfer to have it on the other side than the
    op that makes it, and cannot be on the source's side unless all its readers are. An op on the source's side draws
    all that it reads from there.
    """
    free = [v for v in range(claim.op_count) if not (inside | outside) >> v & 1]
    node_of = {v: i for i, v in enumerate(free, start=2)}
    for v in members(inside):
        node_of[v] = SOURCE
    for v in members(outside):
        node_of[v] = SINK
    never = 1 + sum(edge.transfer for edge in claim.edges)
    arcs = [(node_of[v], node_of[u], never) for v in free for u in members(claim.before[v]) if node_of[u] != SOURCE]
    nodes = 2 + len(free)
    for transfer, maker, readers in claim.edges:
        heads = {node_of[v] for v in readers} - {SOURCE}
        if new >> maker & 1 and node_of[maker] != SINK and heads and transfer:
            arcs.append((node_of[maker], nodes, transfer))
            arcs += ((nodes, head, never) for head in sorted(heads))
            nodes += 1
    return Network(nodes, arcs, free)


def minimum_cut_plain(network: Network) -> tuple[int, set[int]]:
    """Find a minimum cut by augmenting paths of fewest arcs (Edmonds and Karp 1972)."""
    left: list[dict[int, int]] = [{} for _ in range(network.nodes)]
    for tail, head, capacity in network.arcs:
        left[tail][head] = left[tail].get(head, 0) + capacity
        left[head].setdefault(tail, 0)
    value = 0
    while True:
        came_from = {SOURCE: SOURCE}
        queue = [SOURCE]
        for node in queue:  # grows on the way
            for head, capacity in left[node].items():
                if capacity and head not in came_from:
                    came_from[head] = node
                    queue.append(head)
        if SINK not in came_from:
            return value, set(came_from)
        path = [SINK]
        while path[-1] != SOURCE:
            path.append(came_from[path[-1]])
        steps = list(zip(path[1:], path[:-1], strict=True))
        amount = min(left[tail][head] for tail, head in steps)
        for tail, head in steps:
            left[tail][head] -= amount
            left[head][tail] += amount
        value += amount
