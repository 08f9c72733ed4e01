"""Merges that leave the optimum as it is.

Let w and c be the work of a set of ops and the transfers of the tensors that it cuts, and f = w + c what it costs as a
stage. c is submodular and does not tell a set from its complement: c(S ∪ X) + c(S ∩ X) ≤ c(S) + c(X) and
c(S ∖ X) + c(X ∖ S) ≤ c(S) + c(X). What is common to all rules: some ops *move* to the stage of another one, their
*leader*, and no stage of any partition costs more afterwards. So they may as well be merged with it.

**Pairs.** An op m may move to the stage of a neighbour l if w(m) + c({l, m}) ≤ c({l}), that is f({l, m}) ≤ f({l}), and

* ``pull-down``: l is the only op that reads from m;
* ``pull-up``: l is the only op that m reads from;
* ``first-reader``: l reads from m, and everything else that does comes after l (can be reached from it);
* ``last-producer``: m reads from l, and everything else that it reads from comes before l.

*Proof.* The order of stages holds: on the side of l the neighbours of m are beyond l, on the other side they are beyond
m. Let X = {l, m}, S the stage of l, R that of m. f(S ∪ m) − f(S) ≤ f(X) − f({l}) ≤ 0 by the first inequality, for
S ∩ X = {l}, and c(R ∖ m) ≤ c(R) + c(X) − c({l}) ≤ c(R) − w(m) by the second, for X ∖ R = {l}. Tensors that only l and m
have count twice in c({m}) − (c(X) − c({l})), those that both have among others once: that is how it is computed.

So a cheap op joins the neighbour that it exchanges more with than with all others, credit for what they share
included; chains collapse; a source without work joins its first reader, and a sink without work its last producer.

**Regions.** ``region-up``: the ops of X may move to v ∈ X if

1. every other op of X comes after v on a path inside X;
2. whatever else they read from outside X comes before v;
3. f(X) ≤ f(A) for every A ⊆ X that contains v and, with an op, all ops of X that it reads from;
4. c(Q) ≤ w(B) + c(B ∪ Q) for every B ⊆ X ∖ v, Q being everything outside X but what 2. speaks of.

``region-down`` is the same with all edges reversed. *Proof.* What X reads from outside comes before v, and what reads
from X comes after it, so the order of stages holds. No path between two ops of a stage leaves it: hence for the stage S
of v, A = S ∩ X is as in 3., and f(S ∪ X) − f(S) ≤ f(X) − f(A) ≤ 0. Another stage R with ops B of X comes after S, so
R ∖ B ⊆ Q, and c(R) − c(R ∖ B) ≥ c(Q ∪ B) − c(Q) ≥ −w(B) by submodularity: R gets no more expensive. Both 3. and 4.
are minimum cuts. They take what hangs between two ops and is cheaper to run than to cut, such as a gate beside an
expensive tensor.

**Several moves at a time.** Let every op move at most once, all conditions hold before the first move, and the
moves from any op lead to one that stays. Beginning with those, one move after the other is a move to an op that has
arrived, and takes nobody along; so none of them makes a stage more expensive, and in the end every op is where the last
one on its way is. A partition into stages of one op each shows that merging them leaves no cycle. The same order serves
to replay the merges one by one: merging others only adds paths and takes ops out of Q, f(X) − f(A) can only fall when
both gain the same ops, and sets that keep others together cost what they did.

**Memory.** If a stage has a fast memory and its activations have a fixed reserve, an op that moves brings at most the
time to stream all parameters that it reads: ceil(max(0, a + b)) ≤ ceil(max(0, a)) + ceil(b). That is added to its work
where it joins; the stage that it leaves needs less. Under a hard limit on a stage's memory only ops without parameters
move. Where the activations depend on the order of the ops, nothing does.

**Unequal devices.** The proof of a pair compares the costs of each stage before and after, on the same device: a move
whose condition holds on every class of devices makes no stage more expensive, nor needs more memory than it may have.
Regions are looked for on equal devices only.

**Neighbours.** Let all pairs of devices have one link, and c(D) be the transfers of tensors that cross from a downset
D. An op m that moves from stage R to a later stage S, that of l, leaves all downsets D between the two. None of these
has l, so that tensors that l reads cross before and after. Those from m stop crossing where only l and ops after it
read them, those to m begin to. Hence c(D ∖ m) − c(D) ≤ c({l, m}) − c({l}) ≤ −w(m), and likewise upwards: S pays no
more with m, all others no more either. If R had m alone, the stages before and after it get one boundary in place of
two, over the same link.

Over another link that might cost more. Where links differ the condition has to hold with each link that a device of a
class has, and only *with relays*: a stage without ops then stands where R stood, and pays for both of its boundaries,
no more than R did. The optimum with relays is at most that without, so that this is for lower bounds.

Merges that hold in every class need not hold on the envelope, whose
proofs are of its own merges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mtpp.host.memory_limit import memory_left
from mtpp.inference.contraction import merge
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.machine.boundary_cost import NO_PAIR
from mtpp.solvers.reduction.kernels.pair_merges import MergeArrays, Search, find_pairs
from mtpp.solvers.reduction.merge_regions import RegionFinder
from mtpp.solvers.reduction.reduced_instance import ALL_RULES, PAIR_RULES, REGION_RULES, ReducedInstance, Reduction

_PATH_STEPS = 1_000
"""Pins that a search for paths may look at: it keeps the reduction linear, and only costs an opportunity."""

_MOST_OPS = 20_000
"""Ops up to which regions are looked for: in plain Python, milliseconds per thousand ops."""

_REGION_BYTES = 200
"""For each pin, while regions are looked for."""

_WORTHWHILE = 2_000
"""A round that merges fewer than one op in so many is the last: on a million ops another one takes half a second."""


def reduce_instance(
    instance: Instance,
    rules: Collection[str] = ALL_RULES,
    *,
    ended: Callable[[], bool] = lambda: False,
    relays: bool = False,
) -> ReducedInstance:
    """Apply the rules until none fits, or too few to be worth the time where there are thousands of ops.

    Parameters
    ----------
    rules
        Those to use, names in :data:`ALL_RULES`.
    ended
        Tells whether to end now, with what has been merged so far.
    relays
        Whether stages without ops may pass on what crosses, where links of neighbours differ.

    Returns
    -------
    The instance after all rounds of merges, itself if nothing can be merged. Its optimum is that of *instance*, and
    its partitions lift to partitions of the same costs.

    Notes
    -----
    O(pins·log pins) per round; a chain is one round, real networks take three to five. Regions, where there are few
    enough ops to look for them, are tried when no pair is left.
    """
    pairs = np.array([name in rules for name in PAIR_RULES], dtype=np.uint8)
    reduced = ReducedInstance(instance)
    boundary = instance.cost.boundary
    if instance.peaks_in_order or (boundary is not None and not boundary.one_link and not relays):
        return reduced
    while not ended():
        inner = reduced.instance
        target, rule = find_moves(inner, pairs, _PATH_STEPS)
        if not np.any(rule >= 0) and inner.uniform and inner.op_count <= _MOST_OPS and _fits(inner):
            target, rule = _regions(inner, rules, ended)
        if not np.any(rule >= 0):
            break
        reduced = ReducedInstance(instance, (*reduced.rounds, _merged(inner, target, rule)))
        if np.count_nonzero(rule >= 0) * _WORTHWHILE < inner.op_count:
            break
    return reduced


def find_moves(instance: Instance, allowed: NDArray[np.uint8], steps: int) -> tuple[Int32Array, Int32Array]:
    """Return the op that each op moves to by a rule for pairs, itself if none, and the rule's number, −1 if none.

    Parameters
    ----------
    allowed
        Whether each of :data:`PAIR_RULES` may be used, uint8.
    steps
        Pins that a search for paths may look at.
    """
    if not instance.uniform:
        return _moves_on_all_classes(instance, allowed, steps)
    n = instance.op_count
    target, rule = np.arange(n, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    search = Search(rule.copy(), rule.copy(), np.empty(steps + 1, dtype=np.int32))
    find_pairs(_merge_arrays(instance), allowed, steps, target, rule, target.copy(), search)
    return target, rule


def _moves_on_all_classes(instance: Instance, allowed: NDArray[np.uint8], steps: int) -> tuple[Int32Array, Int32Array]:
    """Return the moves that are found on each class of devices alone, over each of its links, to the same op."""
    first, *others = _alone(instance)
    target, rule = find_moves(first, allowed, steps)
    for one in others:
        same = find_moves(one, allowed, steps)[0] == target
        target = np.where(same, target, np.arange(len(target), dtype=np.int32)).astype(np.int32)
        rule = np.where(same, rule, -1).astype(np.int32)
    return target, rule


def _alone(instance: Instance) -> Iterator[Instance]:
    """Yield the instance on each class of devices alone, of neighbours over each link that one of the class has."""
    boundary = instance.cost.boundary
    for c in range(len(instance.machine.classes)):
        alone = instance.of_class(c)
        if boundary is None or boundary.one_link:
            yield alone
            continue
        for link in sorted({row for row in boundary.row_of[c].tolist() if row != NO_PAIR}):
            yield replace(alone, cost=replace(alone.cost, transfer=boundary.ticks[[link]]))


def _fits(instance: Instance) -> bool:
    """Tell whether a limit on memory leaves enough to look for regions."""
    left = memory_left()
    return left is None or len(instance.pins) * _REGION_BYTES <= left // 2


def _regions(instance: Instance, rules: Collection[str], ended: Callable[[], bool]) -> tuple[Int32Array, Int32Array]:
    """Return moves and rules as :func:`find_moves` does."""
    target = np.arange(instance.op_count, dtype=np.int32)
    rule = np.full(instance.op_count, -1, dtype=np.int32)
    for name in REGION_RULES:
        if name not in rules or ended():
            continue
        finder = RegionFinder(
            instance, _charges(instance), _positions(instance), upwards=name == "region-up", ended=ended
        )
        for leader, *others in finder.find():
            target[others] = leader
            rule[others] = ALL_RULES.index(name)
        if np.any(rule >= 0):
            break
    return target, rule


def _merged(instance: Instance, target: Int32Array, rule: Int32Array) -> Reduction:
    """Merge every op with the one that stays at the end of its way, in the order of those that stay."""
    end = target
    while not np.array_equal(end, end[end]):
        end = end[end]
    staying = np.flatnonzero(target == np.arange(instance.op_count))
    position = _positions(instance)
    leader = staying[np.argsort(position[staying])].astype(np.int32)
    group = np.empty(instance.op_count, dtype=np.int32)
    group[leader] = np.arange(len(leader), dtype=np.int32)
    return Reduction(merge(instance, group[end], len(leader)), leader, target, rule)


def _positions(instance: Instance) -> Int32Array:
    position = np.empty(instance.op_count, dtype=np.int32)
    position[instance.order] = np.arange(instance.op_count, dtype=np.int32)
    return position


def _merge_arrays(instance: Instance) -> MergeArrays:
    pin_counts = np.diff(instance.pin_offsets)
    cut = np.zeros(instance.op_count, dtype=np.int64)
    np.add.at(cut, instance.pins, np.where(pin_counts > 1, instance.transfer, 0)[instance.tensor_of_pin])
    offsets, tensors = instance.op_tensors
    return MergeArrays(
        _charges(instance),
        cut,
        instance.transfer.copy(),
        instance.pin_offsets.copy(),
        instance.pins.copy(),
        offsets,
        tensors,
        _positions(instance),
    )


def _charges(instance: Instance) -> Int64Array:
    """Return what a stage pays at most for an op that joins it, without transfers; −1 if the op must not move."""
    system = instance.device
    charge = instance.work.copy()
    if not instance.memory_matters:
        return charge
    if system.fast_memory_bytes is not None:
        brought = instance.cost.own_bytes + instance.cost.weights.read_by(instance.op_count)
        charge += np.array([system.link.streaming_ps(size) for size in brought.tolist()], dtype=np.int64)
    if system.memory_bytes is not None:
        charge[instance.cost.read_bytes > 0] = -1
    return charge
