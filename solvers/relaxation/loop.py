"""Relax, solve, lift: bounds and partitions of wide graphs, from relaxations that give ops back where it matters.

*Decremental state-space relaxation* (Righini and Salani 2008): leave ops out, find the optimum of the rest, which is a
lower bound, and put the ops back for a partition. Where the two do not meet, the ops that cost in the slow stages of
the partition come back, and so on. There are several sets to begin with, from many ops left out to few; they take
turns, with more steps in each round. Each round begins with a beam search over all ops, for the partition's side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.certificate import LowerBound
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition, as_placed
from mtpp.inference.relaxation import Relaxation, relax
from mtpp.solvers.downsets.beam import BeamSearch
from mtpp.solvers.downsets.enumeration import downset_problem
from mtpp.solvers.downsets.prover import Problem
from mtpp.solvers.limits import InstanceLimits
from mtpp.solvers.local_search.annealing import COOL, WARM, Annealer, Assignment, Start
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.relaxation.candidates import Candidates
from mtpp.solvers.relaxation.placement import PLACING_STEPS, Placement, windows
from mtpp.solvers.relaxation.relaxed_search import RelaxedSearch, Rules
from mtpp.solvers.threads import Threads

FIRST_STEPS = 1 << 18
"""Of one relaxed search, in the first round."""

MOVES_PER_STEP = 6
"""Moves of annealing that take as long as a step of a search."""

_MORE = 2
"""Times as many in each round."""

UNLIMITED_STEPS = 1 << 62
"""A number of steps that no search makes."""

_PROGRESS = 0.95
"""Of the gap between bound and bottleneck: what a round has to leave at most to have helped."""

_WORTH = 0.99
"""The same for a turn of one chain, for it to get another one at once."""

_NEGLIGIBLE = 2e-4
"""Part of all work that is lost at most where a relaxation may come close to the optimum."""

_TIMES_PROMISING = 8
"""Times the steps that the first such relaxation gets, which never waits, until ops come back to it."""

_MOST_TURNS = 2
"""Times the steps of one search that a chain makes in a turn, at most, where each of its searches ends."""

_STANDSTILL = 2
"""Rounds that did not help after which there is no hope left; with a time limit, a promising relaxation is some."""

_SEARCHES = 22
"""At a time, which share the memory: two of each of ten sets, one by a beam, and one for places."""

_BEAM_TURNS, _FEWEST_BEAM_TURNS = 5.0, 0.5
"""Times as many steps for a beam search over all ops as for the search of one relaxation, and the fewest: a quarter
each time that it finds nothing."""

MOST_OPS = 8_192
"""Ops up to which relaxations are tried."""

DEFAULT_MEMORY_BYTES = 2**30
"""What the downsets of a search may take where nobody says otherwise."""

_SHARE_BACK = 0.25
"""Of the ops that cost where a partition is slow, those to give back at once; doubled where that does not help."""

_FEWEST_BACK = 4

RUNS, SWEEPS = 2, 60
"""Runs of annealing that start at a lifted partition, and moves per op of each."""


def lifting_steps(op_count: int) -> int:
    """Return how many steps of a search take as long as the annealing of a lifted partition."""
    return RUNS * SWEEPS * op_count // MOVES_PER_STEP


class _Chain:
    """One sequence of relaxations, each with fewer ops left out than the one before.

    Attributes
    ----------
    left_out
        Of the present one, bool, shape (n,).
    promising
        Whether it lacks hardly any work, and nothing has come back yet.
    search
        Its search, None before it began.
    waits
        Rounds that it lets the others go on.
    """

    def __init__(self, left_out: NDArray[np.bool_], promising: bool) -> None:
        self.left_out = left_out
        self.promising = promising
        self.search: RelaxedSearch | None = None
        self.waits = 0
        self._in_vain = 0
        self._share = _SHARE_BACK
        self._before = left_out
        self._ranked = np.zeros(0, dtype=np.int32)
        self._count = 0

    def rate(self, *, helped: bool) -> None:
        """Say whether a turn helped: after each one in vain, it waits for twice as many rounds as before, and one."""
        self._in_vain = 0 if helped else self._in_vain + 1
        self.waits = (1 << self._in_vain) - 1

    def give_back(self, ranked: Int32Array, *, helped: bool) -> None:
        """Go on with a share of some ops given back, the first of *ranked*; a larger one if the last did not help."""
        self._share = _SHARE_BACK if helped else min(1.0, 2 * self._share)
        self._before, self._ranked = self.left_out, ranked
        self._begin(max(_FEWEST_BACK, round(self._share * len(ranked))))

    def give_back_fewer(self) -> bool:
        """Give half as many back as the last time; return whether that is another relaxation."""
        if self._count <= 1:
            return False
        self._begin(self._count // 2)
        return True

    def _begin(self, count: int) -> None:
        self._count = min(count, len(self._ranked))
        self.left_out = self._before.copy()
        self.left_out[self._ranked[: self._count]] = False
        self.search = None
        self.promising = False


class RelaxationLoop:
    """Closes the gap between a partition and a lower bound of one instance, from both sides.

    Parameters
    ----------
    lower, upper
        Ticks that no partition can beat, and the bottleneck of one.
    enough
        A lower bound that is all that is asked for, in ticks: what raises it goes first. None: better partitions count
        as much, so that all have equal turns.
    problem_of
        Makes a relaxed instance ready for searches. Where devices differ, what these find is put back without a search,
        and there is no beam.
    rules
        Weights for relaxed searches that go on for long; None: there are none.

    Attributes
    ----------
    lower, upper
        As the parameters, and what was found since.
    bound
        The proof that raised :attr:`lower` last, None if none did.
    partition
        The best partition found here, None if none was.
    steps
        Steps of all searches so far.
    finished
        Whether no relaxation is left to try: more steps do not raise the bound.
    """

    def __init__(
        self,
        reduced: ReducedInstance,
        lower: int,
        upper: int,
        limits: InstanceLimits,
        threads: Threads,
        enough: int | None = None,
        problem_of: Callable[[Instance], Problem] = downset_problem,
        rules: Rules | None = None,
    ) -> None:
        instance = reduced.original
        self.lower = lower
        self.upper = upper
        self.bound: LowerBound | None = None
        self.partition: Partition | None = None
        self.steps = 0
        self._last_step = UNLIMITED_STEPS
        self._reduced = reduced
        self._instance = instance
        self._limits = limits
        self._enough = enough
        self._problem_of = problem_of
        self._rules = rules
        self._annealer: Annealer | None = None
        if instance.uniform:
            seats = min(instance.k, instance.op_count)
            self._annealer = Annealer(instance, seats, threads, limits.seed, stopped=self._stopped)
        self._memory_bytes = DEFAULT_MEMORY_BYTES if limits.memory_bytes is None else limits.memory_bytes
        self._beam: BeamSearch | None = None
        self._beam_turns = _BEAM_TURNS
        self._chains: list[_Chain] = []
        if instance.op_count <= MOST_OPS:
            candidates = Candidates.of(instance if instance.uniform else instance.envelope)
            most = _NEGLIGIBLE * int(instance.work.sum())
            for left_out in candidates.levels(upper, self._stopped, trees=enough is not None):
                self._chains.append(_Chain(left_out, candidates.lost_work(left_out) <= most))
            if (
                instance.cost.boundary is not None and not instance.cost.boundary.one_link
            ):  # merges are for bounds alone
                self._chains.append(_Chain(np.zeros(instance.op_count, dtype=np.bool_), promising=True))
        self._tried: dict[bytes, int] = {}
        self._next_steps = FIRST_STEPS
        self.finished = not self._chains

    def renew(
        self, lower: int, upper: int, limits: InstanceLimits, threads: Threads, enough: int | None = None
    ) -> None:
        """Take in other limits, and what has become known elsewhere."""
        self._limits, self._enough = limits, enough
        if self._annealer is not None:
            self._annealer.threads = threads
        self.lower = max(self.lower, lower)
        if upper < self.upper:
            self.upper, self.partition = upper, None

    def run(
        self, most_steps: int = UNLIMITED_STEPS, first_steps: int | None = None, most_rounds: int | None = None
    ) -> None:
        """Go on until bound and partition meet, nothing helps any more, the steps are made, or the limits say so.

        Parameters
        ----------
        most_steps
            Of all searches together, about.
        first_steps
            Of one search in the first round; None: twice as many as in the last one before.
        most_rounds
            At most, in each of which every set of ops that does not wait has a turn; None: any number.
        """
        steps = self._next_steps if first_steps is None else first_steps
        idle, woken = 0, False
        self._last_step = self.steps + most_steps
        while self._chains and idle < _STANDSTILL and not self._ended():
            gap = self.upper - self.lower
            self._search_by_beam(steps)
            before = self.steps
            self._take_turns(steps)
            if self.steps == before and not self._ended():
                self._wake()
                self._take_turns(steps)
                if self.steps == before and not self._ended():  # all searches are decided, or have no memory left
                    self.finished = all(tried <= _TIMES_PROMISING * steps for tried in self._tried.values())
            if self.finished or self._ended():
                break
            if self.upper - self.lower <= _PROGRESS * gap:
                idle, woken = 0, False
            elif self._limits.deadline.limit_s is None or not any(chain.promising for chain in self._chains):
                idle += 1
            if idle == _STANDSTILL and not woken and any(chain.waits for chain in self._chains):
                self._wake()
                idle, woken = idle - 1, True
            self._next_steps = steps = min(_MORE * steps, UNLIMITED_STEPS)
            most_rounds = None if most_rounds is None else most_rounds - 1
            if most_rounds == 0:
                break
        self.finished |= not self._chains

    def _wake(self) -> None:
        for chain in self._chains:
            chain.waits = 0

    def _take_turns(self, steps: int) -> None:
        """Let each chain that does not wait go on; if a bound is asked for, as long as that closes the gap."""
        for_bound = self._enough is not None
        for chain in list(self._chains):
            leads = for_bound and chain is next((one for one in self._chains if one.promising), None)
            if chain.waits and not leads:
                chain.waits -= 1
                continue
            helped = 0
            while not self._ended():
                gap = self.upper - self.lower
                self._advance(chain, _TIMES_PROMISING * steps if leads and chain.promising else steps)
                if self.upper - self.lower > _WORTH * gap:
                    break
                helped += 1
                if not for_bound:
                    break
                self._tried.pop(chain.left_out.tobytes(), None)
            if self._ended():
                return
            chain.rate(helped=helped > 0)

    def _stopped(self) -> bool:
        return self._limits.ended()

    def _ended(self) -> bool:
        target = self.upper if self._enough is None else min(self.upper, self._enough)
        return self.lower >= target or self.steps >= self._last_step or self._limits.stop is not None

    def _search_by_beam(self, steps: int) -> None:
        """Look for a better partition by a beam over the downsets of all ops; *steps* are those of one relaxation."""
        if self._annealer is None:
            return
        if self._beam is None:
            problem = downset_problem(self._reduced.instance)
            self._beam = BeamSearch(problem, self._memory_bytes // _SEARCHES, self._stopped)
        made = self._beam.steps
        most = min(int(self._beam_turns * steps), self._last_step - self.steps)
        found = self._beam.improve(self.lower, self.upper, most)
        self.steps += self._beam.steps - made
        if found is None:
            self._beam_turns = max(_FEWEST_BEAM_TURNS, self._beam_turns / 4)
        else:
            self._beam_turns = _BEAM_TURNS
            self._offer(self._reduced.lift(found))

    def _advance(self, chain: _Chain, steps: int) -> None:
        """Solve the relaxation of a chain, and those that follow from it, as long as each takes no more steps."""
        last_step, began = self.steps + _MOST_TURNS * steps, chain.promising
        while not self._ended() and self.steps < last_step and chain.promising == began:
            key = chain.left_out.tobytes()
            if self._tried.get(key, 0) >= steps:
                return
            self._tried[key] = steps
            before, known = chain.search, self.lower
            if chain.search is None:
                try:
                    chain.search = self._search(chain.left_out)
                except ValueError:  # too many paths
                    self._chains.remove(chain)
                    return
            search = chain.search
            made = search.steps if search is before else 0
            search.run(self.lower, self.upper, min(steps, self._last_step - self.steps))
            chain.promising &= search.steps > made and not search.closed
            self.steps += search.steps - made
            self._take_in(search)
            if self._ended():  # so many steps were not made
                self._tried.pop(key, None)
            if search.partition is None or search.cost >= self.upper:
                if search.closed or not chain.give_back_fewer():
                    return
                continue
            placed, stage = self._lift(search)
            if self._stopped():
                self._tried.pop(key, None)
            if not search.closed or self._ended() or not chain.left_out.any():
                return
            ranked = blamed(placed, chain.left_out, stage, search.lower)
            chain.give_back(ranked, helped=self.lower > known)

    def _search(self, left_out: NDArray[np.bool_]) -> RelaxedSearch:
        relaxation = relax(self._instance, left_out)
        return RelaxedSearch(
            relaxation,
            self.lower,
            self.upper,
            self._memory_bytes // _SEARCHES,
            self._stopped,
            self._problem_of,
            self._rules,
        )

    def _take_in(self, search: RelaxedSearch) -> None:
        if search.lower > self.lower and search.bound is not None:
            self.lower, self.bound = search.lower, search.bound
            self._limits.observer.bound(self.lower)

    def _lift(self, search: RelaxedSearch) -> tuple[Instance, Int32Array]:
        """Put the left-out ops back into the partition of a search, keep the result if it is better, and return it.

        Returns
        -------
        The instance with stages in order, and the stage of each op.
        """
        assert search.partition is not None
        if self._annealer is None:
            assert isinstance(search.partition, PlacedPartition)
            stage = put_back(search.relaxation, search.partition)
            return self._offer(PlacedPartition.on(self._instance, stage, search.partition.devices)), stage
        found = improved(put_back(search.relaxation, search.partition), self._annealer)
        self.steps += lifting_steps(len(found.stage))
        self._offer(Partition.from_stages(self._instance, found.stage))
        if self._ended():
            return self._instance, found.stage
        placement = Placement(search.relaxation, search.partition, self._stopped)
        steps = min(PLACING_STEPS, max(0, self._last_step - self.steps))
        placed = placement.best(self.upper, steps, self._memory_bytes // _SEARCHES)
        self.steps += placement.steps
        if placed is None:
            return self._instance, found.stage
        return self._offer(placed), placed.assignment

    def _offer(self, partition: Partition) -> Instance:
        """Keep a partition if it is better, and return the instance with its stages in order."""
        placed = as_placed(self._instance, partition)
        costs = stage_costs(placed, partition)
        if costs.bottleneck < self.upper and keeps_stage_memory(placed, costs):
            self.upper, self.partition = costs.bottleneck, partition
            self._limits.observer.incumbent(self.upper)
        return placed


def put_back(relaxation: Relaxation, partition: Partition) -> Int32Array:
    """Return a stage for each op of the original, int32, shape (n,), that agrees with a partition of the relaxed one.

    A left-out op comes as early as what it reads allows; one that reads nothing, as late as its readers allow.
    """
    original = relaxation.original
    after = original.successor_lists()
    latest = windows(relaxation, partition)[1].tolist()
    stage = [-1] * original.op_count
    for v, s in zip(relaxation.kept.tolist(), partition.assignment.tolist(), strict=True):
        stage[v] = s
    earliest = [-1] * original.op_count
    for v in original.order.tolist():
        if stage[v] < 0:
            stage[v] = earliest[v] if earliest[v] >= 0 else latest[v]
        for w in after[v]:
            earliest[w] = max(earliest[w], stage[v])
    return np.array(stage, dtype=np.int32)


def improved(stage: Int32Array, annealer: Annealer) -> Assignment:
    """Return the best of short runs of annealing from an assignment, in which empty stages come last."""
    stage = np.unique(stage, return_inverse=True)[1].astype(np.int32)
    found, _ = annealer.round([Start(stage, COOL), Start(stage, WARM)], SWEEPS * len(stage))
    return min(found, key=lambda one: one.bottleneck)


def blamed(instance: Instance, left_out: NDArray[np.bool_], stage: Int32Array, enough: int) -> Int32Array:
    """Return the left-out ops that cost in the stages of more than *enough* ticks, the most expensive first, int32.

    An op costs its work there, and the tensors that its stage cuts and that it touches. Where none costs anything, all
    left-out ops are returned, the most expensive to run first.
    """
    slow = stage_costs(instance, Partition.from_stages(instance, stage)).cost > enough
    tensor = instance.tensor_of_pin
    first = stage[instance.producer]
    cut = np.zeros(instance.tensor_count, dtype=np.bool_)
    cut[tensor[stage[instance.pins] != first[tensor]]] = True
    blame = np.where(slow[stage], instance.work, 0)
    touches = cut[tensor] & slow[stage[instance.pins]]
    np.add.at(blame, instance.pins[touches], instance.transfer[tensor[touches]])
    blame = np.where(left_out, blame, -1)
    if not np.any(blame > 0):
        blame = np.where(left_out, instance.work + 1, -1)
    ranked = np.argsort(-blame, kind="stable").astype(np.int32)
    return ranked[: np.count_nonzero(blame > 0)]
