"""Re-checking the proofs of lower bounds from a plan alone: one checker per method of the exact tier.

Part of the independent verifier (:mod:`mtpp.verify`). A checker gets what a plan claims and the graph in ticks; it
says whether the value is proven for every partition into k stages that keeps the groups together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mtpp.verify_document import array, record, refuse, text, whole
from mtpp.verify_graph import TickGraph, ceil_div

_PROOF_PATH = ("lower_bound", "proof")


@dataclass(frozen=True)
class BoundClaim:
    """A lower bound as a plan states it, and all it may rest on.

    Attributes
    ----------
    value
        In ticks; OPT is claimed to be at least this.
    together
        Groups of op names that the partition must keep in one stage.
    proof
        As it stands in the plan: a checker looks at its shape itself.
    """

    graph: TickGraph
    system: dict[str, Any]
    k: int
    together: list[list[str]]
    value: int
    proof: dict[str, Any]


Verdict = tuple[bool, str]
Checker = Callable[[BoundClaim], Verdict]


def check_simple(claim: BoundClaim) -> Verdict:
    """Re-check the simple bound: the dearest op or group, or the average work of a stage.

    Raises
    ------
    InputError
        If the proof is malformed.

    Notes
    -----
    Archer et al. (2024), Lemma 3.3. O(n), or O(n + pins) for several ops that must share a stage.
    """
    if "rule" not in claim.proof:
        refuse("missing key", (*_PROOF_PATH, "rule"))
    rule = claim.proof["rule"]
    text(rule, (*_PROOF_PATH, "rule"))
    if rule == "largest-op":
        return _check_largest_op(claim)
    if rule == "average-work":
        return _check_average_work(claim)
    return False, f"no such rule: {rule[:60]!r}"


def _check_largest_op(claim: BoundClaim) -> Verdict:
    record({"rule": text, "ops": array(text), "work": whole()})(claim.proof, _PROOF_PATH)
    names, stated = claim.proof["ops"], claim.proof["work"]
    number = {name: v for v, name in enumerate(claim.graph.op_names)}
    unknown = next((name for name in names if name not in number), None)
    if unknown is not None:
        return False, f"the graph has no op {unknown!r}"
    ops = {number[name] for name in names}
    if not ops or len(ops) < len(names):
        return False, "the proof lists no op" if not ops else "the proof lists an op twice"
    if len(ops) > 1:
        classes = together_classes(claim.graph, claim.together)
        apart = next((name for name in names if classes[number[name]] != classes[number[names[0]]]), None)
        if apart is not None:
            return False, f"nothing makes ops {names[0]!r} and {apart!r} share a stage"
    work = sum(claim.graph.work[v] for v in ops)
    if work != stated:
        return False, f"the work of the proof's ops is {work} ticks, not {stated}"
    if work != claim.value:
        return False, f"the proof gives {work} ticks, the plan says {claim.value}"
    what = f"op {names[0]!r} alone" if len(ops) == 1 else f"{len(ops)} ops that must share a stage"
    return True, f"simple: {what} takes {work} ticks"


def _check_average_work(claim: BoundClaim) -> Verdict:
    record({"rule": text, "total_work": whole(), "k": whole(1)})(claim.proof, _PROOF_PATH)
    if claim.proof["k"] != claim.k:
        return False, f"the proof is for k = {claim.proof['k']}, the plan for k = {claim.k}"
    total = sum(claim.graph.work)
    if total != claim.proof["total_work"]:
        return False, f"the total work is {total} ticks, not {claim.proof['total_work']}"
    average = ceil_div(total, claim.k)
    if average != claim.value:
        return False, f"the proof gives {average} ticks, the plan says {claim.value}"
    return True, f"simple: {total} ticks of work in {claim.k} stages leave {average} for one of them"


def together_classes(graph: TickGraph, groups: Iterable[Iterable[str]]) -> list[int]:
    """Give each op a number so that ops with the same number must share a stage when each group shares one.

    Overlapping groups merge, and so do all ops on a cycle of the contracted graph: on a path that leaves a group
    and comes back, stages can neither rise nor fall. Names that no op has are passed over.

    Notes
    -----
    Strongly connected components by two depth-first passes (Sharir 1981), with explicit stacks. O(n + pins).
    """
    number = {name: v for v, name in enumerate(graph.op_names)}
    neighbours: list[list[int]] = [[] for _ in graph.op_names]
    backwards: list[list[int]] = [[] for _ in graph.op_names]
    links = [(u, v) for _, u, v in graph.edges()]
    for group in groups:
        members = [number[name] for name in group if name in number]
        # A cycle through the members makes the group strongly connected, which is what contracting it does.
        links.extend(zip(members, members[1:] + members[:1], strict=True))
    for u, v in links:
        neighbours[u].append(v)
        backwards[v].append(u)

    finished: list[int] = []
    seen = [False] * graph.op_count
    for root in range(graph.op_count):
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(neighbours[root]))]
        while stack:
            u, rest = stack[-1]
            unseen = next((v for v in rest if not seen[v]), None)
            if unseen is None:
                finished.append(u)
                stack.pop()
            else:
                seen[unseen] = True
                stack.append((unseen, iter(neighbours[unseen])))

    classes = [-1] * graph.op_count
    for root in reversed(finished):
        if classes[root] >= 0:
            continue
        classes[root] = root
        reached = [root]
        while reached:
            for u in backwards[reached.pop()]:
                if classes[u] < 0:
                    classes[u] = root
                    reached.append(u)
    return classes


CHECKERS: dict[str, Checker] = {"simple": check_simple}
"""Method name → checker of its proofs; a method that is not here proves nothing in the exact tier."""
