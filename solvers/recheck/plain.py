"""The search over downsets in plain Python, word for word as a proof describes it: for small graphs, and for tests.

A *downset* holds with each op all that it reads from. The stages of a partition, one after the other, make a chain of
downsets from the empty set to all ops, so it is enough to look at pairs of downsets, D inside E, whose difference may
be a stage. Level by level, a downset is reached with the fewest stages that can fill it. Rules leave out pairs that no
partition within the limit needs:

*fit*: with j stages left for what is outside E, that costs at most j limits. All work outside E has to be done there,
and each tensor that is made in E and read outside has to be paid for there, at least once; so if the sum is larger,
some stage is above the limit. Likewise j stages hold at most j times what the stage memory leaves for parameters.

*crossings*: those stages also pay, twice, for what crosses between them: :mod:`mtpp.solvers.recheck.crossings`.

*weights*: no stage of a partition within the limit holds more of the weights of a proof than their capacity. So a stage
above it is none, and what is outside E weighs at most j capacities; if all weighs more than all stages hold, there is
no pair at all.

*maximal*: let E be the next downset after D in a partition within the limit, as large as there is one with no more
stages. Say v is outside E, all that it reads from is inside, and the stage, v added, is still within the limit. Move v
to it. No stage in between changes: what v reads comes from E, whatever reads it, and what v makes is read after it. The
stage that v left saves the work of v and the tensors that only v reads (they come from E, so it paid for them), and
begins to pay at most for the tensors that v makes. If v is a *giver*, that is no more than it saves, so that stage is
still within the limit, its parameters have become fewer, and E was not as large as can be. So E may be passed over.
(Where activations are counted in the graph's order they might become more without v: the rule is not for that.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mtpp.solvers.recheck.claim import DownsetClaim, Found, digest_of, members
from mtpp.solvers.recheck.crossings import least_crossings, minimum_cut_plain


def search_plain(claim: DownsetClaim, most_sets: int | None, alive: Callable[[], None] | None = None) -> Found | None:
    """Search all chains of downsets for a partition within the claim's limit.

    Parameters
    ----------
    alive
        Called for each set looked at; it may raise what ends the search.

    Returns
    -------
    What was found; None if it takes more than *most_sets* sets of ops that might be stages; None: however many.

    Notes
    -----
    O(n + pins) time for each of the sets that have the work and the inputs of a stage within the limit.
    """
    if claim.allows(claim.everything):
        return Found(1, 0, None, stages=1)
    least: list[int] | None = []
    if claim.crossings:
        least = least_crossings(claim, *_work_around(claim), minimum_cut_plain)
    if least is None or claim.too_heavy:
        return Found(1, 0, digest_of([(0, 0)], claim.op_count))
    level_of = {0: 0}
    queue = [0]
    pairs = sets = 0
    for downset in queue:  # grows on the way, and never goes down in level
        level = level_of[downset]
        if level > claim.stages - 2:
            break
        for stage in _stages_after(claim, downset):
            sets += 1
            if alive is not None:
                alive()
            if most_sets is not None and sets > most_sets:
                return None
            if not _accepted(claim, downset, stage, claim.rest_ticks(level, least), claim.rest_bytes(level)):
                continue
            if not _shares_kept(claim, downset, stage, level):
                continue
            pairs += 1
            reached = downset | stage
            if reached in level_of:
                continue
            level_of[reached] = level + 1
            queue.append(reached)
            if claim.allows(claim.everything & ~reached):
                return Found(len(queue), pairs, None, stages=level + 2)
    return Found(len(queue), pairs, digest_of(level_of.items(), claim.op_count))


def _work_around(claim: DownsetClaim) -> tuple[list[int], list[int]]:
    """Return the work of each op and of all that leads to it, and of it and all that follows."""
    upto, onward = [0] * claim.op_count, [0] * claim.op_count
    for sets, neighbours, order in ((upto, claim.before, claim.order), (onward, claim.after, claim.order[::-1])):
        for v in order:
            sets[v] = 1 << v
            for u in members(neighbours[v]):
                sets[v] |= sets[u]
    return [claim.work_of(ops) for ops in upto], [claim.work_of(ops) for ops in onward]


def _stages_after(claim: DownsetClaim, downset: int) -> Iterator[int]:
    """Yield every non-empty set of ops that makes a downset of another one and may be a stage, and others.

    They grow op by op. A set with too much work and input, or too many parameters, is not grown: another op adds to
    its work and never takes an input away. (What a set makes is another matter: its readers may still join it.)
    """
    seen = {0}
    growing = [0]
    while growing:
        stage = growing.pop()
        inside = downset | stage
        for v in members(claim.everything & ~inside):
            grown = stage | 1 << v
            if claim.before[v] & ~inside or grown in seen:
                continue
            seen.add(grown)
            held = claim.params_of(grown) + (claim.memory.reserve or 0)
            cost = claim.work_of(grown) + claim.crossing(downset, grown) + claim.memory.overflow(held)
            if cost <= claim.limit and claim.memory.allows(held):
                growing.append(grown)
                yield grown


def _accepted(claim: DownsetClaim, downset: int, stage: int, rest_ticks: int, rest_bytes: int) -> bool:
    """Tell whether a pair of downsets counts: the stage between them is allowed, and both rules let it pass."""
    inside = downset | stage
    rest = claim.everything & ~inside
    if not claim.allows(stage):
        return False
    if claim.work_of(rest) + claim.crossing(inside, rest) > rest_ticks or claim.params_of(rest) > rest_bytes:
        return False
    return not claim.maximal or not any(
        claim.before[v] & ~inside == 0 and claim.allows(stage | 1 << v) for v in members(rest & claim.givers)
    )


def _shares_kept(claim: DownsetClaim, downset: int, stage: int, level: int) -> bool:
    """Tell whether a stage after a downset holds no more weight than it can, and leaves no more than the others can."""
    rest = claim.everything & ~(downset | stage)
    return claim.weight_of(stage) <= claim.capacity and claim.weight_of(rest) <= claim.rest_weight(level)
