"""Scan of the ops in topological order, over all ways to place each before a stage, in it, or after it.

A *labelling* says of each op that it is before a stage, inside, or after it. It is *monotone* if no edge leads from an
op to one of an earlier label: before an op that is before there are only such, behind one that is after likewise. Of
any partition, each stage gives a monotone labelling, by the stages of the other ops; its inside is the stage. So does
each convex set S, with after it the ops outside that it leads to, and all others before it.

Some tensors may be *forgotten*: they cost nothing, and their edges need not be heeded. Both allow for more labellings
at lower costs. Let w(S) + c(S) be the weight of the ops inside, and the transfers of the other tensors that they cut.
Each label of an op has a worth, or is not allowed. Asked for is the most that a monotone labelling is worth in all, of
those with w(S) + c(S) ≤ *room*.

**States.** After some ops of the order, all that counts of their labels, for the ops to come, are the tensors made and
not read by all of their readers. Each is in one of five states:

    made before, and read inside not yet (0) or already (1); made inside, and read after not yet (2) or already (3);
    made after (4).

A tensor is paid for when it gets from 0 to 1 or from 2 to 3. Its readers are inside or after in states 2 and 3, after
in state 4. Tensors whose states mean the same for all readers to come, with the labels that these may have, share one.

**Entries.** Labellings of the ops so far that lead to the same state are compared by cost and worth: one that costs no
less and is worth no more than another is left out, for whatever completes it completes the other.

**Slope and floor.** For any integers p, s ≥ 0 let the value of a labelling, or of part of one, be worth·2^s − p·cost,
and let *ahead* be the highest value of all completions of a state, whatever they cost. A labelling within the room that
is worth *floor* or more has a value ≥ floor·2^s − p·room. So an entry is left out if its value and what is ahead of its
state are less together: no such labelling begins with it. What is found is then exact as far as it reaches the floor,
and else no labelling reaches it. A good slope leaves most entries out, a bad one makes the scan slow, never wrong.

Labels of which no labelling within the room is worth so much: the same entries are made of the completions of each
state, from the end. An op has a label in such a labelling if and only if an entry before it and a completion behind it
fit together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mtpp.checker.merged import MergedGraph

BEFORE, INSIDE, AFTER = 0, 1, 2
"""Labels: a tensor of state d has a producer of label d >> 1."""

ALL_LABELS = 0b111
"""Labels as bits."""

MOST_STATES = 10_000_000
MOST_ENTRIES = 20_000_000
"""Of the layers of one scan together; more take more memory than most machines have."""

Worths = tuple[int | None, int | None, int | None]
"""Worth of each label of an op, None if it is not allowed."""

_DIGIT = 3
"""Bits of the state of a tensor."""


class TooWide(Exception):
    """A scan has more states or entries than are looked at."""


class Place(NamedTuple):
    """An op in the order.

    Attributes
    ----------
    inputs, outputs
        Tensor, first bit of its state, and transfer of all tensors that are not forgotten.
    last
        Tensors that no later op reads.
    mask
        Bits of the states of the inputs.
    """

    op: int
    weight: int
    inputs: list[tuple[int, int, int]]
    outputs: list[tuple[int, int, int]]
    last: set[int]
    mask: int


class Frontier:
    """Tensors between ops that have been looked at and ops that have not, along an order.

    Attributes
    ----------
    places
        The ops of the order.
    """

    def __init__(self, graph: MergedGraph, weight: Sequence[int], order: Sequence[int], forgotten: set[int]) -> None:
        reads: list[list[int]] = [[] for _ in weight]
        makes: list[list[int]] = [[] for _ in weight]
        for tensor, (_, producer, readers) in enumerate(graph.tensors):
            if tensor not in forgotten:
                makes[producer].append(tensor)
                for reader in readers:
                    reads[reader].append(tensor)
        left = Counter(tensor for tensors in reads for tensor in tensors)
        bit: dict[int, int] = {}
        free: list[int] = []
        self.places: list[Place] = []
        for op in order:
            inputs = [(tensor, bit[tensor], graph.tensors[tensor][0]) for tensor in reads[op]]
            left.subtract(reads[op])
            last = {tensor for tensor in reads[op] if left[tensor] == 0}
            free += [bit.pop(tensor) for tensor in last]
            for tensor in makes[op]:
                bit[tensor] = free.pop() if free else _DIGIT * len(bit)
            outputs = [(tensor, bit[tensor], graph.tensors[tensor][0]) for tensor in makes[op]]
            mask = sum(0b111 << at for _, at, _ in inputs)
            self.places.append(Place(op, weight[op], inputs, outputs, last, mask))


class _Option(NamedTuple):
    """A label of an op, given the states of its inputs.

    Attributes
    ----------
    bits
        States of its inputs and outputs behind it.
    loss
        The value that is lost with it.
    step
        What is added to entries.
    """

    label: int
    bits: int
    cost: int
    loss: int
    step: int


Front = list[int]
"""Entries by rising cost and worth, each an integer: the cost before :attr:`Scan._bits` bits of lost value."""


class Scan:
    """All labellings of one stage.

    Parameters
    ----------
    worths
        Of each op of the order.
    slope
        p and s.
    floor
        Labellings that are worth less are of no interest.
    led
        Whether ops are after the stage only if some input is inside or after it: enough for convex sets, if no label
        but inside is worth anything.

    Attributes
    ----------
    size
        States and entries so far.

    Raises
    ------
    TooWide
        In the methods too.

    Notes
    -----
    O(states · labels) for the states and what is ahead of them, and O(entries · labels), beside sorting, for the rest.
    The lost value in an entry is p·cost − worth·2^s with a constant that keeps it from being negative.
    """

    def __init__(
        self,
        frontier: Frontier,
        worths: Sequence[Worths],
        room: int,
        slope: Sequence[int],
        floor: int,
        *,
        led: bool = False,
    ) -> None:
        self._places, self._worths = frontier.places, worths
        self._room, (self._price, self._scale), self._floor, self._led = room, slope, floor, led
        known = [[worth for worth in row if worth is not None] for row in worths]
        self._zero = sum(max(0, *row) for row in known) << self._scale
        lowest = sum(min(0, *row) for row in known) << self._scale
        self._bits = (self._zero - lowest + self._price * room).bit_length()
        self._mask = (1 << self._bits) - 1
        self._later = _labels_of_later_readers(self._places, worths)
        self._tables: list[dict[int, list[_Option]]] = [{} for _ in worths]
        self._ahead = self._losses_ahead(self._layers())
        self._fronts: list[dict[int, Front]] | None = None
        self.size = sum(map(len, self._ahead))

    def most(self) -> int | None:
        """Return the most that a labelling is worth; None if none within the room is worth the floor."""
        fronts = self._all_fronts()
        front = fronts[-1].get(0)
        if front is None:
            return None
        worth = (self._zero - self._lost_worth(front[-1])) >> self._scale
        return worth if worth >= self._floor else None

    def labels(self, least: int) -> list[int]:
        """Return of each op of the order, as bits, the labels that labellings worth *least* or more give it.

        *least* is no less than the floor.
        """
        assert least >= self._floor
        fronts = self._all_fronts()
        most_lost = 2 * self._zero - (least << self._scale)
        limit = most_lost + self._price * self._room
        found = [0] * len(self._places)
        behind: dict[int, Front] = {0: [self._zero]} if fronts[-1] else {}
        for i in range(len(self._places) - 1, -1, -1):
            table, mask = self._tables[i], self._places[i].mask
            nearer: dict[int, Front] = {}
            for key, front in fronts[i].items():
                local = key & mask
                least_lost = min([entry & self._mask for entry in front])
                room = self._room - (front[0] >> self._bits)
                gathered: Front = []
                parts = 0
                for label, bits, cost, loss, step in table[local]:
                    completions = behind.get(key ^ local | bits)
                    if completions is not None:
                        extended = self._extended(completions, room - cost, limit - least_lost - loss, step)
                        if extended:
                            parts += 1
                            gathered += extended
                            if not found[i] >> label & 1 and self._fit(front, extended, most_lost):
                                found[i] |= 1 << label
                if parts:
                    nearer[key] = gathered if parts == 1 else self._best(gathered)
            behind = nearer
        return found

    def _layers(self) -> list[list[int]]:
        """Return the states before each op, and behind the last one, that some labels lead to within the room."""
        layers: list[list[int]] = []
        spent = {0: 0}
        room, count = self._room, 0
        for i, place in enumerate(self._places):
            layers.append(list(spent))
            count += len(spent)
            if count > MOST_STATES:
                raise TooWide(f"more than {MOST_STATES} states")
            table, mask = self._tables[i], place.mask
            following: dict[int, int] = {}
            for key, before in spent.items():
                local = key & mask
                options = table.get(local)
                if options is None:
                    options = table[local] = list(self._options(i, local))
                rest = key ^ local
                for _, bits, cost, _, _ in options:
                    total = before + cost
                    if total <= room and total < following.get(rest | bits, room + 1):
                        following[rest | bits] = total
            spent = following
        layers.append(list(spent))
        return layers

    def _losses_ahead(self, layers: list[list[int]]) -> list[dict[int, int]]:
        """Return the least value that is lost from each state on; states that lead nowhere are left out."""
        ahead = [dict.fromkeys(layers.pop(), 0)]
        for i in range(len(self._places) - 1, -1, -1):
            table, mask, following = self._tables[i], self._places[i].mask, ahead[-1]
            losses: dict[int, int] = {}
            for key in layers.pop():
                local = key & mask
                rest = key ^ local
                least = None
                for _, bits, _, loss, _ in table[local]:
                    other = following.get(rest | bits)
                    if other is not None and (least is None or other + loss < least):
                        least = other + loss
                if least is not None:
                    losses[key] = least
            ahead.append(losses)
        return ahead[::-1]

    def _all_fronts(self) -> list[dict[int, Front]]:
        if self._fronts is None:
            self._fronts = list(self._made_fronts())
        return self._fronts

    def _made_fronts(self) -> Iterator[dict[int, Front]]:
        """Yield the entries of the states before each op, and behind the last one."""
        limit = self._zero - (self._floor << self._scale) + self._price * self._room
        layer: dict[int, Front] = {}
        if 0 in self._ahead[0] and self._zero + self._ahead[0][0] <= limit:
            layer[0] = [self._zero]
        count = 0
        for i, place in enumerate(self._places):
            yield layer
            table, mask, ahead = self._tables[i], place.mask, self._ahead[i + 1]
            following: dict[int, Front] = {}
            several: set[int] = set()
            for key, front in layer.items():
                local = key & mask
                rest = key ^ local
                for _, bits, cost, loss, step in table[local]:
                    other = rest | bits
                    lost = ahead.get(other)
                    if lost is not None:
                        extended = self._extended(front, self._room - cost, limit - lost - loss, step)
                        if extended:
                            if other in following:
                                following[other] += extended
                                several.add(other)
                            else:
                                following[other] = extended
            for key in several:
                following[key] = self._best(following[key])
            layer = following
            count += sum(map(len, layer.values()))
            if count > MOST_ENTRIES:
                raise TooWide(f"more than {MOST_ENTRIES} entries")
        yield layer
        self.size += count

    def _options(self, i: int, local: int) -> Iterator[_Option]:
        """Yield what an op may be, given the states of its inputs."""
        _, weight, inputs, outputs, last, _ = self._places[i]
        later = self._later[i]
        digits = [local >> at & 0b111 for _, at, _ in inputs]
        lowest = max((digit >> 1 for digit in digits), default=BEFORE)
        for label in range(lowest, AFTER + 1):
            worth = self._worths[i][label]
            if worth is None or (self._led and label == AFTER and lowest == BEFORE):
                continue
            cost = weight if label == INSIDE else 0
            bits = 0
            for digit, (tensor, at, transfer) in zip(digits, inputs, strict=True):
                if digit == 2 * (label - 1):  # made before and read inside, or made inside and read after
                    digit += 1
                    cost += transfer
                if tensor not in last:
                    bits |= _shared(digit, transfer, later[tensor]) << at
            for tensor, at, transfer in outputs:
                bits |= _shared(2 * label, transfer, later[tensor]) << at
            loss = self._price * cost - (worth << self._scale)
            yield _Option(label, bits, cost, loss, (cost << self._bits) + loss)

    def _extended(self, front: Front, room: int, limit: int, step: int) -> Front:
        """Add a step to the entries that cost no more than there is room, and lose no more value than a limit."""
        mask = self._mask
        end = room + 1 << self._bits
        if front[-1] >= end:
            front = front[: bisect_left(front, end)]
        return [entry + step for entry in front if entry & mask <= limit]

    def _best(self, entries: Front) -> Front:
        """Leave out entries that cost no less and are worth no more than others."""
        entries.sort()
        price, mask, width = self._price, self._mask, self._bits
        best: Front = []
        least = None
        for entry in entries:
            lost = (entry & mask) - price * (entry >> width)
            if least is None or lost < least:
                least = lost
                best.append(entry)
        return best

    def _lost_worth(self, entry: int) -> int:
        return (entry & self._mask) - self._price * (entry >> self._bits)

    def _fit(self, front: Front, completions: Front, most_lost: int) -> bool:
        """Tell whether an entry and a completion are within the room and lose no more worth than that together."""
        last = len(completions) - 1
        for entry in front:
            room = self._room - (entry >> self._bits)
            while completions[last] >> self._bits > room:
                last -= 1
                if last < 0:
                    return False
            if self._lost_worth(entry) + self._lost_worth(completions[last]) <= most_lost:
                return True
        return False


def _labels_of_later_readers(places: Sequence[Place], worths: Sequence[Worths]) -> list[dict[int, int]]:
    """Return of each op of an order the labels, as bits, that readers of its tensors may have behind it."""
    allowed: Counter[int] = Counter()
    later = []
    for place, row in zip(reversed(places), reversed(worths), strict=True):
        later.append({tensor: allowed[tensor] for tensor, _, _ in (*place.inputs, *place.outputs)})
        own = sum(1 << label for label, worth in enumerate(row) if worth is not None)
        for tensor, _, _ in place.inputs:
            allowed[tensor] |= own
    return later[::-1]


def _shared(digit: int, transfer: int, later: int) -> int:
    """Return the state that stands for all that mean the same for readers to come with these labels.

    Nothing is left to pay for if there is no transfer, or no reader with the label; states 3 and 4 are as good as 1
    where no reader has a label that they rule out.
    """
    if digit == 0 and (transfer == 0 or not later >> INSIDE & 1):
        return 1
    if digit == 2 and (transfer == 0 or not later >> AFTER & 1):
        digit = 3
    if (digit == 3 and not later >> BEFORE & 1) or (digit == 4 and later | 1 << AFTER == 1 << AFTER):
        return 1
    return digit
