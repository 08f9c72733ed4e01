"""OPT, or a lower bound on it, by branch and bound on the exact model; every case refuted in integers."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import check_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.tree import BranchAndBound
from mtpp.solvers.bounds.configuration.stage_weights import stage_weights
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.downsets.stage_shares import shares_within

METHOD = "branch-and-bound"

_MOST_CELLS = 40_000
"""Ops times stages of the largest model: beyond, even the first linear programme takes too long."""

_PATIENCE_S = 8.0
"""Seconds between two checks of progress."""

_MOVED = 0.9
"""Part of the gap between bound and cutoff that is left, at most, where a tree whose end is far makes progress."""

_TIMES_LEFT = 4.0
"""Times the time left that the rest of a tree may seem to take: the share that is closed tells little."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return OPT, or a lower bound on it, of tier ``exact``, with a better partition if one was found.

    Each node of the tree is the linear relaxation of the model of section 3.1 of Archer et al. (2024), in prefix
    variables, with some of them fixed. HiGHS solves it; its dual values, rounded to integers, prove what holds for all
    partitions of the node whatever HiGHS may have got wrong (Neumaier and Shcherbina 2004): that there is none below
    the cutoff, or that more variables are fixed. Where ``limits.shares`` nearly rule the cutoff out, no stage
    holds more of them than their capacity: one more row for each stage.

    Notes
    -----
    O(n·k) variables and O(pins·k) rows, before those that work alone settles are left out; exponential at worst. A
    tree whose proof is longer than ``limits.proof_bytes`` has tier ``solver``: nobody could check it. Before it comes
    to that it ends with what it has proven, and goes on when it is resumed. Overflow counts by the parameters that do
    not fit, limits on memory do not count.
    """
    cells = instance.op_count * min(instance.k, instance.op_count)
    if cells > _MOST_CELLS:
        return BoundResult(None, solved=False, left_out=f"for up to {_MOST_CELLS} ops times stages, here {cells}")
    result = _Search(instance, limits).run(limits)
    if limits.shares and result.lower is None and result.resume is None and not limits.ended():
        return _Search(instance, replace(limits, shares=())).run(limits)  # full shares may leave trees stuck
    return result


class _Search:
    """A tree for each way to weigh ops, of which the one with the best beginning is worked at."""

    def __init__(self, instance: Instance, limits: BoundLimits) -> None:
        self._instance = instance
        self._upper, self._partition = limits.upper, limits.start
        self._told = False  # whether what is proven was told when its proof was nearly too long
        stages = (1,) * min(instance.k, instance.op_count)
        self._trees = []
        shares = shares_within(limits.shares, limits.upper - 1)
        if shares is not None and not shares.tells(len(stages)):
            shares = None
        for weights in stage_weights(instance):
            blocks = Blocks.of(instance, weights, stages, shares=shares)
            most = blocks.most(min(limits.target, instance.most_ticks + 1))
            self._trees.append((blocks, BranchAndBound(blocks, most, limits.proof_bytes)))

    def run(self, limits: BoundLimits) -> BoundResult:
        """Work on in the limits."""
        if limits.upper < self._upper:
            self._upper, self._partition = limits.upper, limits.start
        for blocks, tree in self._trees:
            tree.most = min(tree.most, blocks.most(limits.target))
        if len(self._trees) > 1:
            for blocks, tree in self._trees:
                tree.run(lambda: True, limits.deadline.remaining_s, partial(self._found, blocks, limits))
        best = max(self._trees, key=lambda one: one[0].cutoff(one[1].most_refuted))
        if all(tree.begun for _, tree in self._trees):
            self._trees = [best]
        blocks, tree = best
        stop, found = _StallRule(tree, limits), partial(self._found, blocks, limits)
        tree.run(lambda: stop.ended() or self._is_due(tree), limits.deadline.remaining_s, found)
        lower = _lower_bound(tree, blocks, limits)
        if self._is_due(tree):
            self._told = lower is not None and lower.is_proof
            if not self._told and not limits.ended():
                tree.run(stop.ended, limits.deadline.remaining_s, found)
                lower = _lower_bound(tree, blocks, limits)
        done = tree.finished or _refuted(tree, blocks, limits) >= limits.target
        better = self._partition if self._partition is not limits.start else None
        return BoundResult(lower, done and not tree.failed, better, resume=None if done else self.run)

    def _is_due(self, tree: BranchAndBound) -> bool:
        """Say whether what is proven is to be told now, before its proof is too long."""
        return tree.nearly_too_long and not self._told

    def _found(self, blocks: Blocks, limits: BoundLimits, block: Int32Array) -> int:
        """Take in a partition if it is one and better; return the most that stages may cost from now on."""
        by_op = np.empty_like(block)
        by_op[self._instance.order] = block
        try:
            partition = Partition.from_stages(self._instance, by_op)
            costs = stage_costs(self._instance, partition)
            check_stage_memory(self._instance, costs)
        except InvalidPartition:
            return blocks.most(limits.target)
        if costs.bottleneck < self._upper:
            self._upper, self._partition = costs.bottleneck, partition
            limits.observer.incumbent(costs.bottleneck)
        return blocks.most(min(limits.target, self._upper))


def _refuted(tree: BranchAndBound, blocks: Blocks, limits: BoundLimits) -> int:
    """Return the least ticks that partitions may cost, 0 if nothing is known."""
    return 0 if tree.most_refuted < 0 else min(blocks.cutoff(tree.most_refuted), limits.upper)


def _lower_bound(tree: BranchAndBound, blocks: Blocks, limits: BoundLimits) -> LowerBound | None:
    """Return what a tree has proven above what is known, of tier ``solver`` if the proof is too long to be shown."""
    value = _refuted(tree, blocks, limits)
    if value <= limits.lower:
        return None
    document = tree.document(value)
    if document is not None:
        return LowerBound(value, METHOD, Tier.EXACT, document)
    said = {"status": "the proof is too long to be kept", "proof_limit": limits.proof_bytes}
    return LowerBound(min(value, limits.most), METHOD, Tier.SOLVER, said)


class _StallRule:
    """Stop rule: time is up, or neither the bound of a tree nor the share of its open cases has moved for a while."""

    def __init__(self, tree: BranchAndBound, limits: BoundLimits) -> None:
        self._tree = tree
        self._limits = limits
        self._since_s = time.perf_counter()
        self._share, self._gap = tree.closed_share, tree.most - tree.most_refuted
        self._stalled = False

    def ended(self) -> bool:
        """Return whether to stop; once it is so it stays so."""
        if self._stalled or self._limits.ended():
            return True
        now_s, left_s = time.perf_counter(), self._limits.deadline.remaining_s()
        spent_s = now_s - self._since_s
        if spent_s < _PATIENCE_S or math.isinf(left_s):
            return False
        tree, gap = self._tree, self._tree.most - self._tree.most_refuted
        closed = tree.closed_share - self._share
        moves = gap <= _MOVED * self._gap or (1 - tree.closed_share) * spent_s <= _TIMES_LEFT * left_s * closed
        self._since_s, self._share, self._gap = now_s, tree.closed_share, gap
        self._stalled = not moves
        return self._stalled
