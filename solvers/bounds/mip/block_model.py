"""Partitions into blocks of consecutive stages as a mixed-integer program in prefix variables.

Blocks 1 … B stand for one stage each, or for several. y[v, b] tells whether op v is in one of the blocks 1 … b, so that
x[v, b] = y[v, b] − y[v, b−1] tells whether it is in block b; y[·, 0] = 0 and y[·, B] = 1. c[t, b] tells whether block b
cuts tensor t: for every consumer v of t, whose producer is u, c[t, b] ≥ x[v, b] − x[u, b] (it comes in) and
c[t, b] ≥ x[u, b] − x[v, b] (it goes out); both are at least as tight as (9) and (10) of Archer et al. (2024), Figure 3.
What is known of y makes most of these hold by themselves, and they are left out.

A block in the middle that is singled out gets columns of its own for x, and they are integral. Where it is all
that counts, y is not: what is before and after a convex set need not be told apart. Such models solve several times
faster that way.

A block that stands for s stages costs at most s times the bottleneck, cuts inside it left out (section 3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.solvers.bounds.mip.block_problem import BlockProblem
from mtpp.solvers.bounds.mip.model import CompiledModel, FloatArray, ModelBuilder

_MEMORY_SLACK = 1e-6
"""Limits on memory are loosened by so much, relatively, for the tolerances of the solver."""

_SLACK = 1e-7
"""Windows, least cuts and the least work are, for the rounding of their sums."""


class Block(NamedTuple):
    """Consecutive stages.

    Attributes
    ----------
    stages
        How many.
    counted
        Whether the objective is at least their average cost.
    least_work
        Ticks of work that are in the block; None for one that is not singled out.
    """

    stages: int
    counted: bool = True
    least_work: int | None = None


@dataclass(frozen=True, eq=False)
class BlockModel:
    """A model about blocks, ready to be solved.

    Attributes
    ----------
    compiled
        The model.
    prefixes
        Columns of the builder that are y, int64, shape (n, B + 1).
    inside, outside
        What of y is known to be 1, and to be 0, shape (n, B + 1).
    """

    compiled: CompiledModel
    prefixes: Int64Array
    inside: BoolArray
    outside: BoolArray
    builder: ModelBuilder

    def start(self, block: Int32Array) -> FloatArray | None:
        """Return the solution that has each op in that block (from 0 on), None if the model rules it out."""
        count = self.prefixes.shape[1] - 1
        y = block[:, None] < np.arange(count + 1)[None, :]
        if bool(np.any(y & self.outside) or np.any(~y & self.inside)):
            return None
        values = self.compiled.fixed.copy()
        values[self.prefixes] = y
        completed = self.builder.completed(values)[self.compiled.kept]
        model = self.compiled.model
        if model is None or bool(np.any(completed > model.upper + 1e-9)):
            return None
        return completed

    def projected(self, block: Int32Array) -> Int32Array:
        """Return blocks that are as *block* where that agrees with what is known; they follow the edges if it does."""
        count = self.prefixes.shape[1] - 1
        y = block[:, None] < np.arange(count + 1)[None, :]
        y = (y | self.inside) & ~self.outside
        projected: Int32Array = (count - y.sum(axis=1)).astype(np.int32)
        return projected

    def blocks(self, solution: FloatArray) -> Int32Array:
        """Return the block of each op (from 0 on) in a solution of the model."""
        y = self.compiled.whole(solution)[self.prefixes] > 0.5
        blocks: Int32Array = (self.prefixes.shape[1] - 1 - y.sum(axis=1)).astype(np.int32)
        return blocks


def block_model(
    problem: BlockProblem,
    blocks: Sequence[Block],
    inside: BoolArray | None = None,
    outside: BoolArray | None = None,
    *,
    ordered: bool = True,
    cuts: bool = True,
    nonempty_first: bool = False,
    by_stage: bool = False,
    loose: bool = True,
) -> BlockModel:
    """Build the model that minimises the largest cost of a counted block.

    Parameters
    ----------
    inside, outside
        What is known of y, shape (n, B + 1); None: nothing but its first and last column.
    ordered
        Whether edges lead to the same block or a later one (8).
    cuts
        Whether tensors that are cut cost anything.
    nonempty_first
        Whether to leave out partitions with an empty block before one that is not.
    by_stage
        Whether block b is stage b, so that what is known of the windows and cuts of stages holds for it.
    loose
        Whether solutions of any cost are let in, so that there always is one, limits on memory aside. The least of
        them says as much of partitions below the cutoff.

    Notes
    -----
    O((n + pins)·B) entries.
    """
    n, count = len(problem.work), len(blocks)
    inside = np.zeros((n, count + 1), dtype=bool) if inside is None else inside.copy()
    outside = np.zeros((n, count + 1), dtype=bool) if outside is None else outside.copy()
    inside[:, count], outside[:, 0] = True, True
    middle = [b for b, block in enumerate(blocks) if block.least_work is not None and 0 < b < count - 1]
    alone = sum(block.counted for block in blocks) == 1 and bool(middle)
    builder = ModelBuilder()
    members = problem.instance.first_members[problem.order].tolist()
    y = builder.add_columns(
        inside.astype(float),
        (~outside).astype(float),
        lambda: [f"y_{op}_{b}" for op in members for b in range(count + 1)],
        integral=not alone,
    )
    make = _Rows(problem, builder, y, inside, outside, by_stage)
    if ordered:
        make.order()
    for b in range(1, count):
        if b in middle:
            make.choose(b)
        else:
            builder.add_rows(n, [(np.arange(n), y[:, b + 1], 1.0), (np.arange(n), y[:, b], -1.0)], lower=0.0)
    if nonempty_first:
        make.nonempty_first()
    if by_stage and not loose:
        make.windows()
    terms = [make.terms(b, block, cuts, ordered) for b, block in enumerate(blocks)]
    least = problem.scale.objective(problem.least_work)
    most = problem.scale.objective(problem.everything) if loose else problem.scale.ceiling
    z = builder.add_columns([least], [most], lambda: ["bottleneck"], cost=1.0)
    for b, block in enumerate(blocks):
        if block.counted:
            entries = [(0, z, float(block.stages)), *terms[b]]
            builder.add_rows(1, entries, lower=0.0, defines=z)
    if by_stage and loose:
        make.loose_windows(int(z[0]))
    return BlockModel(builder.compile(), y, inside, outside, builder)


class _Rows:
    """Makes the rows of one model."""

    def __init__(
        self,
        problem: BlockProblem,
        builder: ModelBuilder,
        y: Int64Array,
        inside: BoolArray,
        outside: BoolArray,
        by_stage: bool,
    ) -> None:
        self._problem = problem
        self._builder = builder
        self._y = y
        self._inside, self._outside = inside, outside
        self._by_stage = by_stage
        self._ops = np.arange(len(problem.work))
        scale = problem.scale
        self._work = np.array([scale.objective(ticks) for ticks in problem.work.tolist()])
        self._transfer = np.array([scale.objective(ticks) for ticks in problem.transfer.tolist()])
        self._cut_columns: dict[int, Int64Array] = {}
        self._chosen: dict[int, Int64Array] = {}

    def choose(self, b: int) -> None:
        """Give the ops of block b (from 0 on) columns of their own, x[·, b], which are integral in place of y."""
        y, rows = self._y, self._ops
        may = ~self._outside[:, b + 1] & ~self._inside[:, b]
        must = self._inside[:, b + 1] & self._outside[:, b]
        members = self._problem.instance.first_members[self._problem.order].tolist()
        x = self._builder.add_columns(
            must.astype(float), may.astype(float), lambda: [f"x_{op}_{b + 1}" for op in members], integral=True
        )
        entries = [(rows, x, -1.0), (rows, y[:, b + 1], 1.0), (rows, y[:, b], -1.0)]
        self._builder.add_rows(len(rows), entries, lower=0.0, upper=0.0, defines=x)
        self._chosen[b] = x

    def _in_block(self, b: int, ops: Int64Array | Int32Array) -> list[tuple[Int64Array, float]]:
        """Return x[ops, b] as columns with their signs."""
        if b in self._chosen:
            return [(self._chosen[b][ops], 1.0)]
        return [(self._y[ops, b + 1], 1.0), (self._y[ops, b], -1.0)]

    def order(self) -> None:
        """Edges lead on: y[u, b] ≥ y[v, b]."""
        tails, heads = self._problem.edges
        for b in range(1, self._y.shape[1] - 1):
            rows = np.arange(len(tails))
            self._builder.add_rows(
                len(tails), [(rows, self._y[tails, b], 1.0), (rows, self._y[heads, b], -1.0)], lower=0.0
            )

    def nonempty_first(self) -> None:
        """Of each block that may be empty: it has an op, or all ops are before it."""
        n, last = len(self._ops), self._y.shape[1] - 1
        tails, _ = self._problem.edges
        sinks = np.setdiff1d(self._ops, tails)
        lowest, highest = self._problem.lowest, self._problem.highest
        for b in range(1, last + 1):
            name = f"done_{b - 1}"
            if lowest is not None and highest is not None and highest[b - 1] < lowest[b]:
                continue
            done = self._builder.add_columns([0.0], [1.0], partial(list, [name]))
            rows = np.arange(len(sinks))
            self._builder.add_rows(len(sinks), [(rows, self._y[sinks, b - 1], 1.0), (rows, done, -1.0)], lower=0.0)
            entries = [(0, done, 1.0), (np.zeros(n), self._y[:, b], 1.0), (np.zeros(n), self._y[:, b - 1], -1.0)]
            self._builder.add_rows(1, entries, lower=1.0, defines=done)

    def windows(self) -> None:
        """Add the least and the most work of the first b stages."""
        lowest, highest = self._problem.lowest, self._problem.highest
        assert lowest is not None
        assert highest is not None
        objective = self._problem.scale.objective
        for b in range(1, self._y.shape[1] - 1):
            entries = [(np.zeros(len(self._ops)), self._y[:, b], self._work)]
            least, most = objective(lowest[b]) * (1 - _SLACK), objective(highest[b]) * (1 + _SLACK)
            self._builder.add_rows(1, entries, lower=least, upper=most)

    def loose_windows(self, z: int) -> None:
        """Add the same for any bottleneck z: by as much as it is above the limit, each stage may hold more."""
        problem, zeros = self._problem, np.zeros(len(self._ops))
        assert problem.lowest is not None
        assert problem.highest is not None
        objective, limit, total = problem.scale.objective, problem.scale.limit, int(problem.work.sum())
        stages = self._y.shape[1] - 1
        for b in range(1, stages):
            entries = [(zeros, self._y[:, b], self._work)]
            later = stages - b
            if problem.lowest[b] > 0:
                least = objective(problem.lowest[b] + later * limit) * (1 - _SLACK)
                self._builder.add_rows(1, [*entries, (0, z, float(later))], lower=least)
            if problem.highest[b] < total:
                most = objective(problem.highest[b] - b * limit)
                most += _SLACK * objective(b * limit)
                self._builder.add_rows(1, [*entries, (0, z, -float(b))], upper=most)

    def terms(self, b: int, block: Block, cuts: bool, ordered: bool) -> list[tuple[object, object, object]]:
        """Add what block b (from 0 on) needs; return minus its cost, as terms of row 0."""
        problem = self._problem
        zeros = np.zeros(len(self._ops))
        holds = [(zeros, columns, sign) for columns, sign in self._in_block(b, self._ops)]
        if block.least_work:
            least = problem.scale.objective(block.least_work) * (1 - _SLACK)
            self._builder.add_rows(1, [(row, column, sign * self._work) for row, column, sign in holds], lower=least)
        if problem.free_bytes is not None:
            room = max(1.0, float(problem.free_bytes) * block.stages)
            entries = [(row, column, sign * problem.param_bytes / room) for row, column, sign in holds]
            most = problem.free_bytes * block.stages / room + _MEMORY_SLACK
            self._builder.add_rows(1, entries, upper=most)
        if not block.counted:
            return []
        cost: list[tuple[object, object, object]] = [(row, col, -sign * self._work) for row, col, sign in holds]
        if problem.streamed_bytes is not None:
            rate = problem.ticks_per_byte * problem.scale.objective(1)
            most = problem.scale.objective(problem.everything) * block.stages * 2
            streamed = self._builder.add_columns([0.0], [most], lambda: [f"streamed_{b + 1}"])
            entries = [(row, column, -sign * rate * problem.param_bytes) for row, column, sign in holds]
            free = rate * problem.streamed_bytes * block.stages
            self._builder.add_rows(1, [(0, streamed, 1.0), *entries], lower=-free, defines=streamed)
            cost.append((0, streamed, -1.0))
        if cuts:
            tensors, columns = self._cuts(b, ordered)
            cost.append((np.zeros(len(tensors)), columns, -self._transfer[tensors]))
            least = self._problem.least_cut[b + 1] if self._by_stage and self._problem.least_cut is not None else 0
            if least > 0:
                entries = [(np.zeros(len(tensors)), columns, self._transfer[tensors])]
                self._builder.add_rows(1, entries, lower=problem.scale.objective(least) * (1 - _SLACK))
        return cost

    def _cuts(self, b: int, ordered: bool) -> tuple[Int64Array, Int64Array]:
        """Add the columns c[t, b] that may have to be 1, and their rows; return their tensors and themselves."""
        problem, last = self._problem, self._y.shape[1] - 1
        if ordered and last == 2 and b == 1 and self._cut_columns:  # what leaves the first block enters the second
            tensors = np.flatnonzero(self._cut_columns[0] >= 0)
            return tensors, self._cut_columns[0][tensors]
        may = ~self._outside[:, b + 1] & ~self._inside[:, b]
        must = self._inside[:, b + 1] & self._outside[:, b]
        u, v, t = problem.producer, problem.reader, problem.tensor
        counts = problem.transfer[t] > 0
        comes = may[v] & ~must[u] & counts & (b > 0 or not ordered)
        goes = may[u] & ~must[v] & counts & (b + 1 < last or not ordered)
        tensors = np.unique(np.concatenate([t[comes], t[goes]]))
        columns = np.full(len(problem.transfer), -1, dtype=np.int64)
        columns[tensors] = self._builder.add_columns(
            np.zeros(len(tensors)), 1.0, lambda: [f"c_{tensor}_{b + 1}" for tensor in tensors.tolist()]
        )
        self._cut_columns[b] = columns
        for pairs, inner, outer in ((comes, v, u), (goes, u, v)):
            rows = np.arange(int(pairs.sum()))
            x, other = inner[pairs], outer[pairs]
            entries = [(rows, columns[t[pairs]], 1.0)]
            entries += [(rows, column, -sign) for column, sign in self._in_block(b, x)]
            entries += [(rows, column, sign) for column, sign in self._in_block(b, other)]
            self._builder.add_rows(len(rows), entries, lower=0.0, defines=columns[t[pairs]])
        return tensors, columns[tensors]


def middle_model(problem: BlockProblem, *, ordered: bool = True, cuts: bool = True) -> BlockModel:
    """Return the model of section 3.2: some stage has at least the work L (14); minimise what it costs.

    The stage may be anywhere, so nothing is known of y. Without order there is no before and after: any set of ops.
    """
    work = Block(1, least_work=problem.least_work)
    rest = Block(max(1, problem.stages - 1), counted=False)
    blocks = [rest, work, rest] if ordered else [work, rest]
    return block_model(problem, blocks, ordered=ordered, cuts=cuts)
