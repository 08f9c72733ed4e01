"""An instance made ready for mixed-integer programs about its partitions below a cutoff."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd

import numpy as np

from mtpp.array_types import BoolArray
from mtpp.errors import InvalidPartition
from mtpp.inference.certificate import SOLVER_TOLERANCE
from mtpp.inference.contraction import Contraction, contract
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import check_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.working_memory import least_peaks
from mtpp.solvers.bounds.crossings import stage_windows
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.least_crossings import crossing_network, windows

_MOST_CELLS = 2_000_000
"""Ops times stages of the largest model that is built: beyond, HiGHS does not get past the first relaxation."""

_BEYOND = "the costs have more digits than the solver's double precision"

_MOST_REDUCED = 5_000
"""Ops of the largest graph whose edges are looked through for those that others imply."""

MARGIN = 2.0**-12
"""Taken off a dual bound, in units of the objective: less than 5·10⁻⁷ of a cutoff, so that a bound can be within 10⁻⁶.

It is empirical, and no proof: HiGHS promises nothing of its dual bound. Graphs of up to eight ops were held against
brute force. A cutoff taken for a bound was up to 7·10⁻⁸ above the optimum. Dual bounds of models that reach beyond the
cutoff were up to 10⁻⁶ above with the default tolerances of 10⁻⁶ and 10⁻⁷, where costs of all sizes meet. With 10⁻⁹ they
were up to 10⁻⁹ above, once rows that an optimum can meet exactly were loosened by 10⁻⁷: they had cut it off. The margin
is some hundred times as much, and holds a relaxation that is dual infeasible by 10⁻⁹ in each of 200,000 columns.
``benchmarks/cutoffs.py`` looks for bounds that it does not hold for.
"""

_BITS = 10
"""The cutoff is between 2^9 and 2^10 in units of the objective."""

_ROOM = 10_000
"""A model reaches beyond what it is asked about by one part in so many, and by one unit at least."""

_EXACT = 2**53
"""Sums of whole numbers up to this are exact in double precision."""


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """Ops numbered along a topological order, ops merged that no partition below the cutoff separates.

    Attributes
    ----------
    instance, contraction
        What the models are about, and the way back to what was given.
    stages
        No more than there are ops.
    scale
        Of ticks.
    least_work
        The simple lower bound: some stage has at least that work, in ticks.
    order
        Op of :attr:`instance` by its number here, int32; the arrays below are in these numbers.
    work, param_bytes
        Ticks and bytes, int64, shape (n,).
    producer, reader, tensor
        Of every pair of a tensor and one of its consumers: int32, int32 and int64.
    transfer
        Ticks of each tensor.
    edges
        Pairs of ops that other pairs do not imply, two int32 arrays.
    before, after
        Work of each op with its ancestors, and with its descendants, ticks.
    lowest, highest
        The first i stages of a partition below the cutoff have at least and at most so much work, for i = 0 … stages;
        None if that shows that there is none.
    least_cut
        Stage i cuts tensors with at least so many ticks of transfer, for i = 0 … stages; None if nothing is known.
    free_bytes, streamed_bytes
        Parameters that a stage may hold, and those that it may hold without streaming; None: no limit.
    """

    instance: Instance
    contraction: Contraction
    stages: int
    scale: Scale
    least_work: int
    order: Int32Array
    work: Int64Array
    param_bytes: Int64Array
    producer: Int32Array
    reader: Int32Array
    tensor: Int64Array
    transfer: Int64Array
    edges: tuple[Int32Array, Int32Array]
    before: Int64Array
    after: Int64Array
    least_cut: list[int] | None
    lowest: list[int] | None
    highest: list[int] | None
    free_bytes: int | None
    streamed_bytes: int | None

    @property
    def ticks_per_byte(self) -> float:
        """Ticks that a byte of parameters takes to stream."""
        return float(10**12 / Fraction(self.instance.device.link.rate))

    @property
    def everything(self) -> int:
        """Ticks that no stage exceeds, whatever is in it."""
        streamed = (
            0 if self.streamed_bytes is None else self.instance.device.link.streaming_ps(int(self.param_bytes.sum()))
        )
        return int(self.work.sum()) + int(self.transfer.sum()) + streamed

    def surely_outside(self, boundary: int) -> BoolArray:
        """Tell of each op whether it is in none of the first *boundary* stages of any partition below the cutoff."""
        assert self.highest is not None
        return self.before > self.highest[boundary]

    def surely_inside(self, boundary: int) -> BoolArray:
        """Tell of each op whether it is in one of the first *boundary* stages of every partition below the cutoff."""
        assert self.lowest is not None
        return int(self.work.sum()) - self.after < self.lowest[boundary]

    def cost(self, stage: BoolArray) -> int:
        """Return the least that a stage with these ops costs, in ticks: f(S), but for peaks in the graph's order."""
        instance = self.instance
        inside = np.zeros(len(stage), dtype=np.int64)
        inside[self.order] = stage
        pins = (
            np.add.reduceat(inside[instance.pins], instance.pin_offsets[:-1]) if instance.tensor_count else inside[:0]
        )
        cut = (pins > 0) & (pins < np.diff(instance.pin_offsets))
        excess = 0 if self.streamed_bytes is None else int(self.param_bytes[stage].sum()) - self.streamed_bytes
        streamed = instance.device.link.streaming_ps(max(0, excess))
        return int(self.work[stage].sum()) + int(instance.transfer[cut].sum()) + streamed

    def stages_of(self, partition: Partition) -> Int32Array | None:
        """Return the stages of a partition of what was given, empty ones last; None if it separates merged ops."""
        group = self.contraction.group_of
        stages = np.zeros(self.instance.op_count, dtype=np.int32)
        stages[group] = partition.assignment
        if bool(np.any(stages[group] != partition.assignment)):
            return None
        return np.unique(stages, return_inverse=True)[1][self.order].astype(np.int32)

    def better(self, stages: Int32Array, upper: int) -> Partition | None:
        """Return a partition of what was given, if that is what the stages are and its bottleneck is below *upper*."""
        by_op = np.empty_like(stages)
        by_op[self.order] = stages
        try:
            partition = self.contraction.lift(Partition.from_stages(self.instance, by_op))
            costs = stage_costs(self.contraction.original, partition)
            check_stage_memory(self.contraction.original, costs)
        except InvalidPartition:
            return None
        return partition if costs.bottleneck < upper else None


class BeyondPrecision(Exception):
    """The costs of an instance are too large, beside their unit, for a solver that works in double precision."""


def prepared(
    instance: Instance, limits: BoundLimits, asked: int | None = None, *, with_windows: bool = True
) -> BlockProblem | BoundResult:
    """Make an instance ready for a bound of tier ``solver``, or say what it comes to without a model.

    Parameters
    ----------
    asked, with_windows
        As in :func:`block_problem`; None: what the limits ask for.
    """
    try:
        problem = block_problem(
            instance, limits.target if asked is None else asked, most=limits.most, with_windows=with_windows
        )
    except BeyondPrecision as error:
        return BoundResult(None, solved=False, left_out=str(error))
    return BoundResult(None, solved=True) if problem is None else problem


def block_problem(
    instance: Instance, asked: int, *, most: int | None = None, with_windows: bool = True
) -> BlockProblem | None:
    """Make an instance ready; None if it is too large, or if the simple bound is what is asked for.

    Parameters
    ----------
    asked
        No bound above so many ticks is of use. What is made reaches a little beyond: see
        :class:`~mtpp.solvers.bounds.mip.block_problem.Scale`.
    most
        No bound above so many ticks may be claimed; None: *asked*.
    with_windows
        Whether to look for what has to cross between the stages, which takes minimum cuts.

    Notes
    -----
    A tensor whose transfer alone reaches the cutoff is never cut: its ops are merged. Windows hold for partitions below
    the cutoff: see :mod:`mtpp.solvers.downsets.least_crossings`.
    """
    stages = min(instance.k, instance.op_count)
    least = simple_bound(instance).value
    if least >= asked or instance.op_count * stages > _MOST_CELLS:
        return None
    scale = Scale.of(asked, _unit(instance), most)
    contraction = contract(instance, _inseparable(instance, scale.limit))
    inner = contraction.instance
    stages = min(stages, inner.op_count)
    if beyond_precision(int(inner.work.sum()) + int(inner.transfer.sum()) + _streamed_ticks(inner), scale.unit):
        raise BeyondPrecision(_BEYOND)
    arrays = downset_arrays(inner)
    network = crossing_network(arrays)
    window: tuple[list[int], list[int]] | None = None
    total = int(inner.work.sum())
    least_cut: list[int] | None = None
    if with_windows:
        found = stage_windows(replace(inner, k=stages), BoundLimits(scale.cutoff), scale.limit)
        window = None if found is None else (found.lowest, found.highest)
        if found is not None:
            least_cut = [made + read for made, read in zip(found.made, found.read, strict=True)]
    else:
        window = windows([0] * (stages + 1), total, scale.limit)
    system = inner.device
    peak = int(least_peaks(inner).min())
    place = np.empty(inner.op_count, dtype=np.int32)
    place[inner.order] = np.arange(inner.op_count, dtype=np.int32)
    producer, reader = (place[ops] for ops in inner.edges)
    counts = np.diff(inner.pin_offsets) - 1
    return BlockProblem(
        instance=inner,
        contraction=contraction,
        stages=stages,
        scale=scale,
        least_work=least,
        order=inner.order,
        work=arrays.work,
        param_bytes=arrays.param_bytes,
        producer=producer,
        reader=reader,
        tensor=np.repeat(np.arange(inner.tensor_count, dtype=np.int64), counts),
        transfer=inner.transfer,
        edges=needed_edges(arrays.successor_offsets, arrays.successors),
        before=network.before,
        after=network.after,
        least_cut=least_cut,
        lowest=None if window is None else window[0],
        highest=None if window is None else window[1],
        free_bytes=_room(system.memory_bytes, peak, int(arrays.param_bytes.sum())),
        streamed_bytes=_room(system.fast_memory_bytes, peak, int(arrays.param_bytes.sum())),
    )


def _inseparable(instance: Instance, limit: int) -> list[list[int]]:
    tensors = np.flatnonzero(instance.transfer > limit)
    offsets = instance.pin_offsets
    return [instance.pins[offsets[t] : offsets[t + 1]].tolist() for t in tensors.tolist()]


def _streams(instance: Instance) -> bool:
    memory = instance.device.fast_memory_bytes
    return memory is not None and memory < instance.most_bytes


def _streamed_ticks(instance: Instance) -> int:
    return instance.device.link.streaming_ps(int(instance.param_bytes.sum())) if _streams(instance) else 0


def _unit(instance: Instance) -> int:
    """Return the largest number of ticks that every stage cost is a multiple of."""
    if _streams(instance):
        return 1
    return max(1, gcd(*instance.work.tolist(), *instance.transfer.tolist()))


def _room(memory: int | None, peak: int, all_params: int) -> int | None:
    """Return the parameters that fit beside the least peak of any stage; None if all do."""
    if memory is None:
        return None
    room = max(0, memory - peak)
    return room if room < all_params else None


def needed_edges(offsets: Int64Array, successors: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Return the edges without those that a longer path implies; O(edges · n / 64) time, n² / 8 bytes."""
    n = len(offsets) - 1
    tails = np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets))
    if n > _MOST_REDUCED:
        return tails, successors
    needed = np.ones(len(successors), dtype=bool)
    reach = [0] * n
    heads = successors.tolist()
    for u in range(n - 1, -1, -1):
        reached = 0
        for e in range(int(offsets[u]), int(offsets[u + 1])):
            if reached >> heads[e] & 1:
                needed[e] = False
            reached |= reach[heads[e]]
        reach[u] = reached | 1 << u
    return tails[needed], successors[needed]


def beyond_precision(ticks: int, unit: int) -> bool:
    """Tell whether costs of so many ticks in all, each a multiple of *unit*, are too large for double precision."""
    return ticks // unit > _EXACT


@dataclass(frozen=True)
class Scale:
    """Scale from ticks to units of the objective, and the bounds that may be claimed.

    Attributes
    ----------
    cutoff
        The model holds for partitions below so many ticks; above all that may be claimed.
    most
        The highest bound that may be claimed, in ticks.
    unit
        The cost of every stage is a multiple of so many ticks.
    shift
        One unit is 2^shift units of the objective: a power of two, so that no cost is rounded.
    """

    cutoff: int
    most: int
    unit: int
    shift: int

    @classmethod
    def of(cls, asked: int, unit: int, most: int | None = None) -> Scale:
        """Return the scale that puts the cutoff between 2^9 and 2^10.

        Parameters
        ----------
        asked
            No bound above so many ticks is of use. Partitions of that cost, and some above, are in the model: a solver
            that takes the least of them for infeasible would be off by far more than its tolerances.
        most
            No bound above so many ticks may be claimed: None: *asked*.
        """
        above = -(-asked // unit) * unit
        limit = above + max(1, -(-asked // (unit * _ROOM))) * unit
        claimed = above if most is None else min(above, most // unit * unit)
        return cls(limit + 1, claimed, unit, _BITS - (limit // unit).bit_length())

    @property
    def limit(self) -> int:
        """The most that a partition below the cutoff can cost, in ticks."""
        return (self.cutoff - 1) // self.unit * self.unit

    @property
    def enough(self) -> int:
        """Ticks of a bound that is as good as :attr:`most`, but for the tolerance of the solver."""
        return math.ceil(self.most / (1 + SOLVER_TOLERANCE))

    def objective(self, ticks: int) -> float:
        """Return ticks in units of the objective."""
        return float(Fraction(ticks, self.unit) * Fraction(2) ** self.shift)

    @property
    def ceiling(self) -> float:
        """A limit on the objective that every partition below the cutoff stays below, by twice the margin."""
        return self.objective(self.limit) + 2 * MARGIN

    def lower(self, dual_bound: float) -> int | None:
        """Return the ticks that a dual bound is worth, at most :attr:`most`; None for an infinite one.

        Parameters
        ----------
        dual_bound
            On the least objective of all partitions below the cutoff.

        Notes
        -----
        The margin is taken off first, then it is rounded up to a multiple of the unit: OPT is such a multiple.
        """
        if not math.isfinite(dual_bound):
            return None
        value = (Fraction(dual_bound) - Fraction(MARGIN)) / Fraction(2) ** self.shift
        return max(0, min(self.most, math.ceil(value) * self.unit))
