"""Claim of a proof by downset search in plain integers: sets of ops as bit masks, costs from the definitions.

It shares no code with the search that made the proof, so that a mistake has to be made twice to go unnoticed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.checker.graph import TICKS_PER_S, TickGraph, ceil_div

if TYPE_CHECKING:
    from mtpp.checker.merged import MergedGraph


class Edge(NamedTuple):
    """A tensor that another op reads: its transfer in ticks, the op that makes it, and those that read it."""

    transfer: int
    maker: int
    readers: tuple[int, ...]


class GroundTensor(NamedTuple):
    """A tensor of the graph before any merges: its bytes, and the places of its ops in the graph's order.

    No op makes an input of the graph: its maker is None. A result of the graph is *kept* to the end of a stage.
    """

    size: int
    maker: int | None
    readers: tuple[int, ...]
    kept: bool = False

    @property
    def touched(self) -> tuple[int, ...]:
        """Places of all its ops."""
        return self.readers if self.maker is None else (self.maker, *self.readers)


@dataclass(frozen=True)
class StageMemory:
    """What a stage may hold, what it pays for more, and how its activations are counted.

    Attributes
    ----------
    fast_bytes, limit_bytes
        What exceeds the first is streamed at *bandwidth*; no stage may exceed the second. None: no such memory.
    bandwidth, parts
        Bytes per second, as a ratio of two whole numbers.
    reserve
        Activations of every stage; None if they are those of running it in the graph's order.
    op_at, ground
        For activations in order: the merged op that the op at each place of the order went into, and the tensors.
    """

    fast_bytes: int | None
    limit_bytes: int | None
    bandwidth: int
    reserve: int | None
    op_at: tuple[int, ...]
    ground: tuple[GroundTensor, ...]
    parts: int = 1

    @classmethod
    def of(cls, graph: TickGraph, group_of: Sequence[int], system: dict[str, Any]) -> StageMemory:
        """Take the memories of a plan's system."""
        in_order = system["peak"] == "order"
        rate = Fraction(system["bandwidth_bytes_per_s"])
        return cls(
            system["fast_memory_bytes"],
            system.get("stage_memory_bytes"),
            rate.numerator,
            None if in_order else system["activation_reserve_bytes"],
            tuple(group_of[v] for v in graph.order) if in_order else (),
            tuple(_ground(graph)) if in_order else (),
            rate.denominator,
        )

    @cached_property
    def most_activations(self) -> int:
        """No stage has more: the reserve, or all tensors at once."""
        return sum(tensor.size for tensor in self.ground) if self.reserve is None else self.reserve

    def peak(self, ops: int) -> int:
        """Return the activations of a stage: live bytes, the most over its steps, if they are counted in order.

        A tensor is live from its first op in the stage to its last, to the end if it is made there and read elsewhere
        or a result of the graph.
        """
        if self.reserve is not None:
            return self.reserve if ops else 0
        step = {place: i for i, place in enumerate(p for p, op in enumerate(self.op_at) if ops >> op & 1)}
        change = [0] * (len(step) + 1)
        for tensor in self.ground:
            touched = [step[place] for place in tensor.touched if place in step]
            if touched:
                leaves = tensor.maker in step and (tensor.kept or len(touched) <= len(tensor.readers))
                change[min(touched)] += tensor.size
                change[len(step) if leaves else max(touched) + 1] -= tensor.size
        live = peak = 0
        for difference in change:
            live += difference
            peak = max(peak, live)
        return peak

    def overflow(self, held: int) -> int:
        """Return the ticks that it takes to stream what does not fit."""
        excess = 0 if self.fast_bytes is None else max(0, held - self.fast_bytes)
        return ceil_div(excess * TICKS_PER_S * self.parts, self.bandwidth)

    def allows(self, held: int) -> bool:
        """Tell whether a stage may need that many bytes."""
        return self.limit_bytes is None or held <= self.limit_bytes


def _ground(graph: TickGraph) -> Iterator[GroundTensor]:
    """Yield the tensors and inputs of a graph that take memory."""
    place = {v: i for i, v in enumerate(graph.order)}
    for t, size in enumerate(graph.tensor_bytes):
        if size:
            readers = tuple(place[v] for v in graph.consumers[t])
            yield GroundTensor(size, place[graph.producer[t]], readers, t in graph.results)
    for _, size, ops in graph.live_inputs:
        if size:
            yield GroundTensor(size, None, tuple(place[v] for v in ops))


class SharedBytes(NamedTuple):
    """A weight or state that a stage holds once, however many of its ops read it.

    Attributes
    ----------
    home
        The op whose parameters have these bytes in them; None: no op's, and fast memory holds none of them.
    readers
        The set of ops that read it.
    """

    size: int
    home: int | None
    readers: int


@dataclass(frozen=True)
class DownsetClaim:
    """The claim that no partition into *stages* non-empty stages or fewer has all of them cost at most *limit*.

    Attributes
    ----------
    work, param_bytes
        Of each op of the graph as merged; ops are numbered by the first op in the file that went into them.
    edges
        Tensors that another op reads; others cost nothing.
    stages
        At most the number of ops.
    limit
        In ticks; −1 if the cutoff is 0.
    crossings, maximal
        Rules that leave pairs of downsets out; :mod:`mtpp.solvers.recheck.plain` says why they may. *fit* always does.
    shared
        Where stages hold whole what several ops read: that. Else they hold what their ops' parameters have of it.
    weights, capacity
        Of each op, and the most that a stage within the limit holds; without them, none and 0.
    """

    work: tuple[int, ...]
    param_bytes: tuple[int, ...]
    edges: tuple[Edge, ...]
    memory: StageMemory
    stages: int
    limit: int
    crossings: bool
    maximal: bool
    shared: tuple[SharedBytes, ...] = ()
    weights: tuple[int, ...] = ()
    capacity: int = 0

    @classmethod
    def of(
        cls,
        merged: MergedGraph,
        graph: TickGraph,
        system: dict[str, Any],
        k: int,
        cutoff: int,
        rules: Collection[str] = (),
        systems: Sequence[dict[str, Any]] | None = None,
    ) -> DownsetClaim:
        """Make the claim that a graph as merged cannot be cut into k stages that all cost less than *cutoff*.

        Parameters
        ----------
        systems
            Of all classes of devices; None: the one.
        """
        shared = _shared(graph, merged.group_of, systems or [system]) if "whole" in rules else ()
        return cls(
            tuple(merged.work),
            tuple(merged.param_bytes),
            tuple(Edge(transfer, maker, tuple(readers)) for transfer, maker, readers in merged.tensors if readers),
            StageMemory.of(graph, merged.group_of, system),
            min(k, len(merged.work)),
            cutoff - 1,
            "crossings" in rules,
            "maximal" in rules,
            shared,
        )

    def with_shares(self, merged: MergedGraph, shares: dict[str, Any] | None) -> DownsetClaim:
        """Return the claim with the weights of a proof, if it has any; those of unknown ops are passed over."""
        if shares is None:
            return self
        weights = [0] * self.op_count
        for op, amount in shares["weights"]:
            if op < len(merged.group_of):
                weights[merged.group_of[op]] = amount
        return replace(self, weights=tuple(weights), capacity=shares["capacity"])

    @property
    def too_heavy(self) -> bool:
        """Whether all stages together cannot hold the weights."""
        return sum(self.weights) > self.stages * self.capacity

    @property
    def op_count(self) -> int:
        """Number of ops, n."""
        return len(self.work)

    @property
    def everything(self) -> int:
        """The set of all ops."""
        return (1 << self.op_count) - 1

    @cached_property
    def before(self) -> list[int]:
        """The set of ops that each op reads from."""
        before = [0] * self.op_count
        for edge in self.edges:
            for v in edge.readers:
                before[v] |= 1 << edge.maker
        return before

    @cached_property
    def order(self) -> list[int]:
        """A topological order; shorter than the number of ops if some wait for each other."""
        missing = [makers.bit_count() for makers in self.before]
        order = [v for v in range(self.op_count) if missing[v] == 0]
        for u in order:  # grows on the way
            for v in members(self.after[u]):
                missing[v] -= 1
                if missing[v] == 0:
                    order.append(v)
        return order

    @cached_property
    def after(self) -> list[int]:
        """The set of ops that read from each op."""
        after = [0] * self.op_count
        for edge in self.edges:
            for v in edge.readers:
                after[edge.maker] |= 1 << v
        return after

    @cached_property
    def givers(self) -> int:
        """Ops whose removal cannot raise the cost of a stage that contains none of their producers.

        Without it the stage saves its work and what nobody else reads, and pays at most for what it makes.
        """
        saved, due = list(self.work), [0] * self.op_count
        for transfer, maker, readers in self.edges:
            due[maker] += transfer
            if len(readers) == 1:
                saved[readers[0]] += transfer
        return sum(1 << v for v in range(self.op_count) if saved[v] >= due[v])

    @cached_property
    def memory_matters(self) -> bool:
        """Whether there is a memory that not everything at once fits into."""
        most = sum(self.param_bytes) + self.kept(self.everything) + self.memory.most_activations
        return any(size is not None and size < most for size in (self.memory.fast_bytes, self.memory.limit_bytes))

    def stages_left(self, level: int) -> int:
        """Return the number of stages after the one that follows a downset of some level."""
        return self.stages - level - 1

    def rest_ticks(self, level: int, least: Sequence[int]) -> int:
        """Return what those stages can take of the work and the transfers that come to them from before.

        *least* holds what has to cross from each stage to later ones; they pay twice for what is among them.
        """
        return self.stages_left(level) * self.limit - 2 * sum(least[level + 2 :])

    def rest_bytes(self, level: int) -> int:
        """Return how many bytes of parameters those stages can hold: all, where there is no limit."""
        limit = self.memory.limit_bytes
        if limit is None:
            return sum(self.param_bytes)
        return self.stages_left(level) * (limit - (self.memory.reserve or 0))

    def rest_weight(self, level: int) -> int:
        """Return how much weight those stages can hold."""
        return self.stages_left(level) * self.capacity

    def weight_of(self, ops: int) -> int:
        """Return the weight of a set of ops: nothing, where there are no weights."""
        return sum(self.weights[v] for v in members(ops)) if self.weights else 0

    def work_of(self, ops: int) -> int:
        """Return the work of a set of ops."""
        return sum(self.work[v] for v in members(ops))

    def params_of(self, ops: int) -> int:
        """Return the bytes of parameters of a set of ops."""
        return sum(self.param_bytes[v] for v in members(ops))

    def held_by(self, ops: int) -> int:
        """Return the bytes of parameters that a set of ops holds as a stage."""
        return self.params_of(ops) + sum(
            row.size for row in self.shared if row.home is not None and ops & row.readers and not ops >> row.home & 1
        )

    def kept(self, ops: int) -> int:
        """Return the bytes of states that a set of ops keeps, of those that no op's parameters have in them."""
        return sum(row.size for row in self.shared if row.home is None and ops & row.readers)

    def crossing(self, source: int, target: int) -> int:
        """Return the transfers of tensors that one set of ops makes and another one reads."""
        return sum(
            transfer
            for transfer, maker, readers in self.edges
            if source >> maker & 1 and any(target >> v & 1 for v in readers)
        )

    def allows(self, stage: int) -> bool:
        """Tell whether a non-empty set of ops may be a stage: f is within the limit, and it keeps to its memory."""
        outside = self.everything & ~stage
        held = self.held_by(stage) + self.memory.peak(stage)
        cost = self.work_of(stage) + self.crossing(outside, stage) + self.crossing(stage, outside)
        return cost + self.memory.overflow(held) <= self.limit and self.memory.allows(held + self.kept(stage))


def _shared(graph: TickGraph, group_of: Sequence[int], systems: Sequence[dict[str, Any]]) -> tuple[SharedBytes, ...]:
    """Return what several ops of a graph as merged read, and its states, with the bytes of all sequences.

    Parameters of ops have states in them where a device has a limit and none a fast memory.
    """
    count = systems[0].get("sequences", 1)
    limited = any(system.get("stage_memory_bytes") is not None for system in systems)
    joined = limited and all(system["fast_memory_bytes"] is None for system in systems)
    weights = [(size, readers, True) for _, size, readers in graph.weights]
    states = [(size * count, readers, joined) for _, size, readers in graph.states]
    rows = []
    for size, readers, charged in weights + states:
        groups = 0
        for v in readers:
            groups |= 1 << group_of[v]
        rows.append(SharedBytes(size, group_of[readers[-1]] if charged else None, groups))
    return tuple(rows)


class SearchTooLarge(Exception):
    """A search does not fit into the memory that it may take; the text says why."""


class Found(NamedTuple):
    """What a search over the downsets of a claim came to.

    Attributes
    ----------
    downsets, pairs
        How many were reached, the empty one among them, and how many pairs were accepted.
    digest
        SHA-256 of the downsets reached; None if the search was ended early.
    stages
        Of a partition within the limit, if there is one: the claim is false. None if there is none.
    """

    downsets: int
    pairs: int
    digest: str | None
    stages: int | None = None


def members(ops: int) -> Iterator[int]:
    """Yield the ops of a set in ascending order."""
    while ops:
        lowest = ops & -ops
        yield lowest.bit_length() - 1
        ops ^= lowest


def digest_of(level_of: Iterable[tuple[int, int]], op_count: int) -> str:
    """Return the SHA-256 of downsets, given with their levels, as a proof states it.

    Each makes a record of 4 bytes for its level, most significant first, and a bit per op, least significant first.
    """
    length = (op_count + 7) // 8
    records = sorted(level.to_bytes(4, "big") + ops.to_bytes(length, "little") for ops, level in level_of)
    return sha256(b"".join(records)).hexdigest()
