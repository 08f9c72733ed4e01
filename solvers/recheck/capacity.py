"""Rooms of devices behind a capacity bound, searched for again: convex sets with more work than a proof allows.

The ops are gone through in the graph's own order, and each is put into the set or not. A *case* is what later ops have
to know: of the ops read later, which are inside and which are behind the set, that is, read from inside or from behind
without being inside; and of the tensors read later, which ones the set has paid for. A set that reads from behind
itself is not convex. It pays for a tensor made inside once some reader is not, and for one made outside once some
reader is.

Of the sets of a case, one is dropped if another one has no less work, no more ticks and no more bytes: whatever may be
added to the one may be added to the other. Dropped are also those that come to no more work than the room in question
even if all later ops were theirs, or if every tick left went into the op that has most work for its ticks.

Tensors that the proof forgets cost nothing and keep no order. This makes sets convex that are not, and others cheaper.
Working memory in the graph's order is left out, and weights of several ops count in shares: sets hold no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from mtpp.checker.bounds.capacity import measure_of
from mtpp.checker.facts import counted
from mtpp.solvers.recheck.claim import SearchTooLarge, StageMemory
from mtpp.solvers.recheck.pipelines import Unwatched, Watcher

if TYPE_CHECKING:
    from mtpp.checker.claim import BoundClaim
    from mtpp.checker.graph import TickGraph
    from mtpp.checker.report import Outcome

_BYTES_PER_SET = 300

Case = tuple[int, int, int]
"""Ops inside, ops behind and tensors paid for, a bit each."""

Sets = list[tuple[int, int, int]]
"""Ticks, bytes and negated work of sets."""


@dataclass(frozen=True)
class Room:
    """The claim that a stage below a cutoff has at most so much work on a device.

    Attributes
    ----------
    order, work, param_bytes, transfer
        Of the graph.
    limit
        Ticks of the stage at most.
    most
        The work.
    measure
        Work of each op.
    tensors
        Number, maker and readers of each tensor that is not forgotten.
    memory
        None: any stage fits, and pays nothing for it.
    """

    order: Sequence[int]
    work: Sequence[int]
    param_bytes: Sequence[int]
    transfer: Sequence[int]
    memory: StageMemory | None
    limit: int
    most: int
    measure: Sequence[int]
    tensors: Sequence[tuple[int, int, frozenset[int]]]

    def ticks(self, paid: int, held: int) -> int | None:
        """Return the cost of a set with so many bytes, None above the memory."""
        if self.memory is None:
            return paid
        held += self.memory.reserve or 0
        return paid + self.memory.overflow(held) if self.memory.allows(held) else None

    @property
    def rate(self) -> Fraction | None:
        """The most work in a tick; None: an op takes none."""
        pairs = [(y, w) for y, w in zip(self.measure, self.work, strict=True) if y > 0]
        return None if any(w == 0 for _, w in pairs) else max((Fraction(y, w) for y, w in pairs), default=Fraction(0))


def recheck_capacity(claim: BoundClaim, watcher: Watcher | None = None, memory_bytes: int = 2**30) -> Outcome:
    """Search for a stage with more work than a claim's proof has room for.

    Parameters
    ----------
    claim
        Whose terms and sum have been checked (:mod:`mtpp.checker.bounds.capacity`).
    memory_bytes
        That the sets of one step may take.

    Notes
    -----
    Plain Python: O(sets) in all, and O(sets²) for those of a case where memory matters.
    """
    measure, forgotten = measure_of(claim), set(claim.proof["forgotten"])
    by_class = [(claim.graph, claim.system)] if claim.by_class is None else list(claim.by_class)
    count = len(by_class) * claim.graph.op_count
    looked_at, heard = 0, watcher or Unwatched()
    for c, ((graph, system), most) in enumerate(zip(by_class, claim.proof["rooms"], strict=True)):
        tensors = [
            (t, maker, frozenset(readers))
            for t, (maker, readers) in enumerate(zip(graph.producer, graph.consumers, strict=True))
            if readers and t not in forgotten
        ]
        whole = Room(
            graph.order, graph.work, graph.param_bytes, graph.transfer,
            _memory(graph, system), claim.value - 1, most, measure, tensors,
        )  # fmt: skip
        room = _counting(whole, claim.proof["counted"][c])
        done = c * graph.op_count
        try:
            found = _search(room, partial(_tell, heard, done, count), memory_bytes // _BYTES_PER_SET)
        except SearchTooLarge as error:
            return None, f"the search was not run to its end: {error}"
        looked_at += found.sets
        if found.most is not None:
            said = f"a device of class {c} has room for {found.most} ticks of work, the proof says {most}"
            return False, f"below {claim.value} ticks, {said}"
    return True, f"no stages below {claim.value} ticks have all work: {counted(looked_at, 'convex set')} looked at"


@dataclass(frozen=True)
class _Found:
    """The most work of a set above the room, None if there is none, and the number of sets gone on from."""

    most: int | None
    sets: int


def _counting(room: Room, counted: str) -> Room:
    """Return a room in which only what a proof counts does; bytes alone take the place of ticks."""
    memory = room.memory
    if counted == "both":
        return room
    if counted == "time":
        return replace(room, memory=None)
    if memory is None or memory.limit_bytes is None:
        return replace(room, most=-1)  # any set keeps to it
    free, limit = [0] * len(room.work), memory.limit_bytes - (memory.reserve or 0)
    moved = [0] * len(room.transfer)
    return replace(room, work=room.param_bytes, param_bytes=free, transfer=moved, memory=None, limit=limit)


def _tell(watcher: Watcher, done: int, count: int, i: int) -> None:
    watcher.alive()
    watcher.searched(done + i, count)


def _memory(graph: TickGraph, system: Mapping[str, object]) -> StageMemory | None:
    memory = StageMemory.of(graph, range(graph.op_count), dict(system))
    return memory if (memory.fast_bytes, memory.limit_bytes) != (None, None) else None


def _search(room: Room, alive: Callable[[int], None], most_sets: int) -> _Found:
    place = {v: i for i, v in enumerate(room.order)}
    rest, rate, sets = sum(room.measure), room.rate, 0
    reads: list[list[tuple[int, int]]] = [[] for _ in room.order]
    tensor_ends: list[int] = [0] * len(room.order)
    op_ends = [0] * len(room.order)
    last_reader: dict[int, int] = {}
    for t, maker, readers in room.tensors:
        last = max(place[v] for v in readers)
        tensor_ends[last] |= 1 << t
        last_reader[maker] = max(last, last_reader.get(maker, 0))
        for v in readers:
            reads[place[v]].append((t, maker))
    for maker, last in last_reader.items():
        op_ends[last] |= 1 << maker

    cases: dict[Case, Sets] = {(0, 0, 0): [(0, 0, 0)]}
    for i, v in enumerate(room.order):
        alive(i)
        rest -= room.measure[v]
        own = 1 << v if v in last_reader else 0
        ops_left, tensors_left = ~op_ends[i], ~tensor_ends[i]
        found: dict[Case, list[Sets]] = {}
        for (inside, behind, paid), known in cases.items():
            follows = False
            enters = leaves = came = went = 0
            convex = True
            for t, maker in reads[i]:
                bit = 1 << t
                if behind >> maker & 1:
                    convex = False
                elif inside >> maker & 1:
                    follows = True
                    if not paid & bit:
                        leaves += room.transfer[t]
                        went |= bit
                elif not paid & bit:
                    enters += room.transfer[t]
                    came |= bit
            if convex:
                case = (inside | own) & ops_left, behind & ops_left, (paid | came) & tensors_left
                more = _grown(known, (room.work[v] + enters, room.param_bytes[v], -room.measure[v]))
                found.setdefault(case, []).append(_worth_while(more, room, rest, rate))
            after = behind | own if follows or not convex else behind
            case = inside & ops_left, after & ops_left, (paid | went) & tensors_left
            found.setdefault(case, []).append(_worth_while(_grown(known, (leaves, 0, 0)), room, rest, rate))
        cases = {case: _undominated(parts, room.memory is not None) for case, parts in found.items()}
        sets += sum(map(len, cases.values()))
        if sum(map(len, cases.values())) > most_sets:
            raise SearchTooLarge(f"more than {most_sets} sets of ops take all the memory that it may")
    most = max((-work for known in cases.values() for _, _, work in known), default=0)
    return _Found(most if most > room.most else None, sets)


def _grown(known: Sets, added: tuple[int, int, int]) -> Sets:
    """Return sets with as much more of everything."""
    ticks, size, work = added
    return [(a + ticks, b + size, c + work) for a, b, c in known] if ticks or size or work else known


def _worth_while(known: Sets, room: Room, rest: int, rate: Fraction | None) -> Sets:
    """Return the sets that keep to the limit and may come to more work than the room."""
    kept = []
    most, limit = room.most, room.limit
    p, q = (0, 1) if rate is None else (rate.numerator, rate.denominator)
    for one in known:
        ticks = one[0] if room.memory is None else room.ticks(one[0], one[1])
        if ticks is None or ticks > limit or rest - one[2] <= most:
            continue
        if rate is None or (limit - ticks) * p - one[2] * q > most * q:
            kept.append(one)
    return kept


def _undominated(parts: Iterable[Sets], by_bytes: bool) -> Sets:
    """Return the sets of a case of which no other one is as good in everything."""
    kept: Sets = []
    least = 1
    front: list[tuple[int, int]] = []
    for one in sorted(one for part in parts for one in part):
        if by_bytes:
            if any(size <= one[1] and work <= one[2] for size, work in reversed(front)):
                continue
            front.append(one[1:])
        elif one[2] >= least:
            continue
        least = one[2]
        kept.append(one)
    return kept
