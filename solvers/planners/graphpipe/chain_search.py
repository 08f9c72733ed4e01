"""Chains of downsets of a model's layers whose stages keep to time, memory and devices, for one list of options.

The stages of any plan, in a topological order, are a chain of downsets of layers. A stage S with option o (a size of
micro-batches and a number of replicas) begins no sooner than the passes on any path into it, and they end after it. So
in time T it keeps to

* M · t(S) ≤ T − the longest path into S, forward and back,
* M · t(S) + synchronisation ≤ T − the longest forward path into S,
* t(S) ≤ T − the longest path into S − the longest path out of S, whose layers take M micro-batches, and
* t(S) ≤ T − the longest path to where a tensor comes from − its transfers, M of them in one direction and one back,

where layers on the paths take what they take at their fastest on the devices that S leaves, and the tensors that enter
or leave S cross a link. The fourth holds because a channel carries one micro-batch after the other: the last of them is
not there before M transfers, and its passes and the way back follow; or gradients go back M times after the first
passes of S. Where stages form a line, all layers of the stages before are on the path.

The memory of S holds the fewest micro-batches in flight that any stage may have: the least k of kFkB, and two if a
stage is behind it. If no chain of such stages gets by with K devices, no plan has an iteration of T ticks. Layers may
be left out, with their edges: the others of any plan are a chain still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mtpp.array_types import Int64Array, UInt64Array
from mtpp.solvers.planners.graphpipe.kernels.chain_arrays import NONE, BranchEdges, Branches, ChainLimits
from mtpp.solvers.planners.graphpipe.kernels.downset_chains import least_ticks
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.planners.graphpipe.stage_size import StageSize

LARGEST = 2**61
"""Above all sums of costs."""

_WORD_BITS = 64

_MOST_DOWNSETS = 100_000
_MOST_ENTRIES = 2**24
"""Downsets of a search, and downsets times numbers of devices: 128 MiB of ticks."""


class ChainSearch:
    """Chains of downsets of some layers, whose stages have one of some options.

    Parameters
    ----------
    groups
        Of equal branches, in a topological order: layers that are not in them are left out.
    devices
        K.
    most_ticks, most_bytes
        The largest that :meth:`least` is asked about. What takes more is counted as one more: as often as there are
        layers and devices, that has to stay below :data:`LARGEST`. With None for the ticks, nothing takes time.

    Attributes
    ----------
    least_ticks, least_bytes
        Of the iteration and of a device if all devices had equal parts of the least work and bytes, rounded up.
    """

    def __init__(
        self,
        costs: LeastCosts,
        groups: Sequence[Sequence[Sequence[int]]],
        options: Sequence[StageSize],
        devices: int,
        most_ticks: int | None,
        most_bytes: int,
    ) -> None:
        self._costs, self._options, self._devices = costs, options, devices
        self._groups = groups
        self._layers = [layer for group in groups for branch in group for layer in branch]
        self._most = 0 if most_ticks is None else most_ticks + 1, most_bytes + 1
        ticks = [0] * len(costs.kinds) if most_ticks is None else costs.work(options)
        self._works = ticks, costs.device_bytes(options)
        all_ticks, all_bytes = (sum(works[layer] for layer in self._layers) for works in self._works)
        self.least_ticks, self.least_bytes = -(-all_ticks // devices), -(-all_bytes // devices)
        self._arrays: tuple[Branches, BranchEdges] | None = None

    def least(self, most_ticks: int, memory_bytes: int, most_steps: int, enough_ticks: int = 0) -> tuple[int, int]:
        """Return the least ticks of a chain, and the steps made.

        Parameters
        ----------
        most_ticks, memory_bytes
            Of chains that count, and of each device.
        most_steps
            After which the answer is ``UNKNOWN``.
        enough_ticks
            Any chain with no more ticks will do.

        Returns
        -------
        Ticks, or ``NONE`` or ``UNKNOWN`` of :mod:`~mtpp.solvers.planners.graphpipe.kernels.chain_arrays`; and steps.
        """
        if self.least_ticks > most_ticks or self.least_bytes > memory_bytes:
            return NONE, 0
        self._arrays = self._arrays or self._build()
        downsets = min(_MOST_DOWNSETS, _MOST_ENTRIES // (self._devices + 1) + 1)
        limits = ChainLimits(most_ticks, enough_ticks, self._devices, memory_bytes, downsets, most_steps)
        return least_ticks(limits, *self._arrays)

    def _build(self) -> tuple[Branches, BranchEdges]:
        branches = [branch for group in self._groups for branch in group]
        ends = np.cumsum([0, *(len(branch) + 1 for branch in branches)], dtype=np.int64)
        sums = np.zeros((int(ends[-1]), len(self._options), 4), dtype=np.int64)
        for o, option in enumerate(self._options):
            for kind, cost in enumerate(self._kinds_of_sums(option)):
                sums[:, o, kind] = self._prefixes(branches, cost, self._most[kind // 2])
        works, passed = (np.zeros((int(ends[-1]), 2), dtype=np.int64) for _ in range(2))
        for kind in range(2):
            works[:, kind] = self._prefixes(branches, self._works[kind].__getitem__, LARGEST)
            if self._costs.sequential:
                passed[:, kind] = self._prefixes(branches, self._fastest(kind), self._most[0])
        known = Branches(
            np.array([i > 0 for group in self._groups for i in range(len(group))]),
            ends[:-1].copy(),
            np.array([len(branch) for branch in branches], dtype=np.int64),
            np.array([option.data_parallel for option in self._options], dtype=np.int64),
            np.array([self._costs.batches(option) for option in self._options], dtype=np.int64),
            sums,
            works,
            passed,
            *self._codes(),
        )
        return known, self._beginnings(branches, ends)

    def _kinds_of_sums(self, option: StageSize) -> Sequence[Callable[[int], int]]:
        costs = self._costs
        return (
            lambda layer: costs.load(layer, option),
            lambda layer: costs.load(layer, option) + costs.synchronisation(layer, option),
            lambda layer: costs.memory(layer, option, False),
            lambda layer: costs.memory(layer, option, True),
        )

    def _fastest(self, kind: int) -> Callable[[int], int]:
        """Return the ticks of a layer's passes of a micro-batch at their fastest: 0 both, 1 forward."""
        passes = self._costs.passes
        if kind == 0:
            return lambda layer: min(passes(layer, option).both for option in self._options)
        return lambda layer: min(passes(layer, option).forward for option in self._options)

    def _prefixes(self, branches: Sequence[Sequence[int]], cost: Callable[[int], int], most: int) -> list[int]:
        """Return sums over the layers of each branch before each position; larger costs than *most* count as that."""
        known: dict[int, int] = {}
        found = []
        for branch in branches:
            total = 0
            found.append(total)
            for layer in branch:
                kind = self._costs.kinds[layer]
                if kind not in known:
                    known[kind] = min(cost(layer), most)
                total += known[kind]
                found.append(total)
        return found

    def _beginnings(self, branches: Sequence[Sequence[int]], ends: Int64Array) -> BranchEdges:
        """Return when stages that an edge enters begin, and what follows one that it leaves."""
        model = self._costs.model
        branch_of = {layer: p for p, branch in enumerate(branches) for layer in branch}
        position = {layer: int(ends[p]) + i for p, branch in enumerate(branches) for i, layer in enumerate(branch)}
        into: dict[int, list[tuple[int, int]]] = {layer: [] for layer in self._layers}
        for edge, (source, target) in zip(model.edges, model.ends, strict=True):
            if source in into and target in into:
                into[target].append((source, edge.communication_bytes))
        degrees = {option.data_parallel for option in self._options}
        arrivals = {d: self._arrivals(into, d) for d in degrees}
        behind = {d: self._behind(into, d) for d in degrees}
        ends_at = np.zeros((int(ends[-1]), len(self._options)), dtype=np.int64)
        exits: list[list[list[int]]] = [[] for _ in branches]
        inner = np.zeros((int(ends[-1]), len(self._options), 3), dtype=np.int64)
        rows: list[list[tuple[int, list[list[int]]]]] = [[] for _ in branches]
        leaving: list[list[int]] = [[] for _ in branches]
        for v in self._layers:
            for u, moved in into[v]:
                row = [
                    [
                        min(time, self._most[0])
                        for time in self._entrance(arrivals[option.data_parallel][u], moved, option)
                    ]
                    for option in self._options
                ]
                exit_times = [
                    min(self._exit(behind[option.data_parallel][v], moved, option), self._most[0])
                    for option in self._options
                ]
                if branch_of[u] == branch_of[v]:
                    inner[position[v]], ends_at[position[v]] = row, exit_times
                else:
                    rows[branch_of[v]].append((branch_of[u], row))
                    leaving[branch_of[u]].append(branch_of[v])
                    exits[branch_of[u]].append(exit_times)
        left = np.array([one for here in exits for one in here], dtype=np.int64).reshape(-1, len(self._options))
        entrances = np.array([row for here in rows for _, row in here], dtype=np.int64)
        return BranchEdges(
            inner,
            *_columns([[u for u, _ in here] for here in rows]),
            entrances.reshape(-1, len(self._options), 3),
            ends_at,
            *_columns(leaving),
            left,
        )

    def _arrivals(self, into: Mapping[int, Sequence[tuple[int, int]]], replicas: int) -> dict[int, tuple[int, int]]:
        """Return when each layer can be passed outside of a stage of so many replicas, both ways and forward."""
        others = [option for option in self._options if option.data_parallel <= self._devices - replicas]
        arrival: dict[int, tuple[int, int]] = {}
        known: dict[int, tuple[int, int]] = {}
        for v in self._layers:
            kind = self._costs.kinds[v]
            if kind not in known:
                passes = [self._costs.passes(v, option) for option in others]
                both, forward = (one.both for one in passes), (one.forward for one in passes)
                known[kind] = min(both, default=self._most[0]), min(forward, default=self._most[0])
            arrival[v] = (
                max((arrival[u][0] for u, _ in into[v]), default=0) + known[kind][0],
                max((arrival[u][1] for u, _ in into[v]), default=0) + known[kind][1],
            )
        return arrival

    def _behind(self, into: Mapping[int, Sequence[tuple[int, int]]], replicas: int) -> dict[int, int]:
        """Return how long each layer and those behind it take outside of a stage of so many replicas."""
        others = [option for option in self._options if option.data_parallel <= self._devices - replicas]
        taken: dict[int, int] = {}
        after: dict[int, int] = {}
        known: dict[int, tuple[int, int]] = {}
        for v in reversed(self._layers):
            kind = self._costs.kinds[v]
            if kind not in known:
                once = (self._costs.passes(v, option).both for option in others)
                all_of = (self._costs.load(v, option) for option in others)
                known[kind] = min(once, default=self._most[0]), min(all_of, default=self._most[0])
            once_v, all_of_v = known[kind]
            taken[v] = min(max(once_v + after.get(v, 0), all_of_v), self._most[0])
            for u, _ in into[v]:
                after[u] = max(after.get(u, 0), taken[v])
        return taken

    def _exit(self, behind: int, moved: int, option: StageSize) -> int:
        """Return what follows the forward pass of a micro-batch until its gradients are back, over an edge."""
        sizes = {one.micro_batch for one in self._options}  # the reader may have any
        back = min(self._costs.transfer(moved, size, option.data_parallel) for size in sizes)
        return self._costs.transfer(moved, option.micro_batch, option.data_parallel) + behind + back

    def _entrance(self, arrival: tuple[int, int], moved: int, option: StageSize) -> tuple[int, int, int]:
        """Return when a stage that an edge enters can begin: both ways and forward, and what its channel takes."""
        costs, (both, forward) = self._costs, arrival
        batch = costs.transfers.mini_batch
        sizes = {one.micro_batch for one in self._options}  # the sender of the forward pass may have any
        sent = [(costs.transfer(moved, size, option.data_parallel), batch // size) for size in sizes]
        there, all_there = min(one for one, _ in sent), min(one * count for one, count in sent)
        back = costs.transfer(moved, option.micro_batch, option.data_parallel)
        channel = max(all_there + back, there + costs.batches(option) * back)
        return both + there + back, forward + there, both + channel

    def _codes(self) -> tuple[Int64Array, UInt64Array]:
        """Return what positions add to which word of a downset's code.

        Notes
        -----
        A branch without an equal writes the layers reached as a number; of equal branches, it is counted how many have
        reached each layer and no further.
        """
        words: list[int] = []
        values: list[int] = []
        word = used = 0
        for group in self._groups:
            length = len(group[0])
            if len(group) == 1:
                fields, bits = [0] * length, length.bit_length()
                amounts = list(range(1, length + 1))
            else:
                fields, bits, amounts = list(range(length)), len(group).bit_length(), [1] * length
            places = []
            for _ in range(max(fields) + 1):
                if used + bits > _WORD_BITS:
                    word, used = word + 1, 0
                places.append((word, used))
                used += bits
            here = [places[i] for i in fields]
            words += [0, *(w for w, _ in here)] * len(group)
            values += [0, *(amount << shift for amount, (_, shift) in zip(amounts, here, strict=True))] * len(group)
        return np.array(words, dtype=np.int64), np.array(values, dtype=np.uint64)


def _columns(rows: Sequence[Sequence[int]]) -> tuple[Int64Array, Int64Array]:
    """Return rows of different lengths in CSR form."""
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return starts, np.array([one for row in rows for one in row], dtype=np.int64)
