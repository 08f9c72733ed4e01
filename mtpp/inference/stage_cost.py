"""Cost of a stage: f_j(S), what the device of stage j takes for a set S of ops, and its parts.

As eq. 1-3 of Archer et al. (2024), by class of device: f_j(S) = Σ work of S + Σ transfer of the tensors that S cuts +
the overflow of its memory, with f_j(∅) = 0. Devices that differ in their names alone are of one class. With transport
by neighbours a stage pays at its boundaries instead (:mod:`mtpp.machine.boundary_cost`): at least as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph
from mtpp.inference.weights import NO_WEIGHTS, Weights, sum_by
from mtpp.machine.boundary_cost import BoundaryCost
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine

_LARGEST_CODE = 2**61


@dataclass(frozen=True, eq=False)
class StageCost:
    """Parts of f_j for the ops and tensors of an instance, each rounded up to ticks once.

    Attributes
    ----------
    machine
        Stage j stands on device j.
    work
        Ticks by class of device and op, int64, shape (classes, n).
    transfer
        Ticks by link and tensor, int64, shape (links, m); links as in :attr:`~mtpp.Machine.links`. Of neighbours, and
        *by_class*, by class of device; of neighbours over the best link that another device gives it.
    param_bytes
        Parameters of each op and its share of the weights that it reads with others, int64, shape (n,): a stage holds
        at least the sum of its ops', and exactly that sum where no weight is shared. Shares of states count where they
        *join* weights.
    weights
        Weights that several ops read: a stage holds each of them once.
    states
        What stages keep for all sequences of each state, by the ops that read it.
    boundary
        What stages pay for tensors at their boundaries; None: transport is direct.
    by_class
        Whether classes with the same link may pay unequal ticks for a tensor, as where ops were left out.

    Notes
    -----
    States count in the memory limit and not in the fast memory. Where there is a limit and no fast memory they join
    weights: one sum of bytes is all that matters. Where there are both they stand apart: bounds leave them out, and
    searches count them in units of :attr:`state_code`. Without a limit they do not count.
    """

    machine: Machine
    work: Int64Array
    transfer: Int64Array
    param_bytes: Int64Array
    weights: Weights = NO_WEIGHTS
    states: Weights = NO_WEIGHTS
    boundary: BoundaryCost | None = None
    by_class: bool = False

    @classmethod
    def of(
        cls,
        machine: Machine,
        work: Int64Array,
        transfer: Int64Array,
        param_bytes: Int64Array,
        weights: Weights,
        states: Weights,
        boundary: BoundaryCost | None = None,
    ) -> StageCost:
        """Return the cost of ops with parameters and shares of weights, and with states, which join them or do not."""
        apart = cls(machine, work, transfer, param_bytes, weights, states, boundary)
        if not apart.states_join:
            return apart
        return replace(apart, param_bytes=param_bytes + states.shared_out(len(param_bytes)))

    @cached_property
    def states_count(self) -> bool:
        """Whether there are states, and a limit on the memory that they take."""
        return bool(self.states.names) and any(device.memory_bytes is not None for device in self.machine.classes)

    @cached_property
    def states_join(self) -> bool:
        """Whether states are to memory what weights are: no fast memory tells them apart."""
        return self.states_count and all(device.fast_memory_bytes is None for device in self.machine.classes)

    @property
    def shares_memory(self) -> bool:
        """Whether stages hold something whole that sums over ops count in parts, or not at all."""
        return bool(self.weights.names) or self.states_count

    @cached_property
    def own_bytes(self) -> Int64Array:
        """Parameters of each op that no other one reads, int64, shape (n,)."""
        shared = self.weights.beside(self.states) if self.states_join else self.weights
        return self.param_bytes - shared.shared_out(len(self.param_bytes)) if shared.names else self.param_bytes

    @cached_property
    def read_bytes(self) -> Int64Array:
        """All parameters and states that each op reads, int64, shape (n,): a stage that has it holds no less."""
        if not self.shares_memory:
            return self.param_bytes
        return self.own_bytes + self.limited.read_by(len(self.param_bytes))

    @cached_property
    def limited(self) -> Weights:
        """Weights that several ops read, and states where they count."""
        return self.weights.beside(self.states) if self.states_count else self.weights

    @cached_property
    def all_bytes(self) -> int:
        """Bytes of all parameters, and of all states where they count."""
        total: int = sum(self.param_bytes.tolist())
        return total + (sum(self.states.bytes.tolist()) if self.states_count and not self.states_join else 0)

    @cached_property
    def state_code(self) -> tuple[int, int]:
        """How one integer tells weights and states of a stage apart: weights + states / unit · split.

        The split, 0 where nothing has to be told apart, and the unit: the greatest common divisor of all states.

        Raises
        ------
        InputError
            If no integer of 64 bits is large enough.
        """
        if self.states_join or not self.states_count:
            return 0, 1
        unit = max(1, int(np.gcd.reduce(self.states.bytes)))
        op_count = len(self.param_bytes)
        split = 1 + sum(self.read_bytes.tolist())
        if split * (1 + sum(self.states.read_by(op_count).tolist()) // unit) >= _LARGEST_CODE:
            raise InputError(
                "states and weights are too large to be told apart: the first count in the stage memory and not in the "
                "fast memory",
                parameter="fast_memory",
                remedy="leave it or ‹stage_memory› out",
            )
        return split, unit

    @cached_property
    def coded(self) -> Weights:
        """The same as :attr:`limited`, with bytes of states by :attr:`state_code`."""
        split, unit = self.state_code
        if not split:
            return self.limited
        return self.weights.beside(replace(self.states, bytes=self.states.bytes // unit * split))

    @cached_property
    def stage_ticks(self) -> tuple[Int64Array | None, ...]:
        """Ticks of a stage of 0, 1, … ops for each class of devices that has times of stages; None for others."""
        return tuple(
            np.array((0, *device.stage_times_ps), dtype=np.int64) if device.stage_times_ps else None
            for device in self.machine.classes
        )

    @cached_property
    def counts_ops(self) -> bool:
        """Whether stages on some devices cost what their number of ops says."""
        return any(ticks is not None for ticks in self.stage_ticks)

    @cached_property
    def moves(self) -> Int64Array:
        """1 for each class of devices whose stages pay for transfers, 0 for the others; int64, shape (classes,)."""
        return np.array([ticks is None for ticks in self.stage_ticks], dtype=np.int64)

    @property
    def device(self) -> Device:
        """Envelope of the devices: for each quantity the best of any."""
        return self.machine.device

    @cached_property
    def least_work(self) -> Int64Array:
        """Work of each op on the device that takes least for it, int64, shape (n,)."""
        return _least(self.work)

    @cached_property
    def least_transfer(self) -> Int64Array:
        """Transfer of each tensor over the fastest link, int64, shape (m,)."""
        return np.zeros_like(self.transfer[0]) if self.counts_ops else _least(self.transfer)

    def class_of(self, k: int) -> Int64Array:
        """Return the class of the device of each of *k* stages, int64, shape (k,)."""
        if len(self.machine.classes) == 1:
            return np.zeros(k, dtype=np.int64)
        return np.array(self.machine.class_of[:k], dtype=np.int64)

    @cached_property
    def link_of(self) -> Int64Array:
        """Row of :attr:`transfer` of each class of devices, int64, shape (classes,)."""
        if self.boundary is not None or self.by_class:
            return np.arange(len(self.work), dtype=np.int64)
        return np.array([self.machine.links.index(device.link) for device in self.machine.classes], dtype=np.int64)

    def overflow(self, param_bytes: int, peak_bytes: int, device: Device | None = None) -> int:
        """Return the time to stream memory that exceeds the fast memory (eq. 2), in ticks, rounded up.

        Parameters
        ----------
        device
            That the stage stands on; None: the envelope.
        """
        return (device or self.device).overflow_ps(param_bytes + peak_bytes)

    def state_bytes(self, stage: Int32Array, k: int) -> Int64Array:
        """Return the states that each of *k* stages keeps, int64, shape (k,), given the stage of each op."""
        return self.states.held(stage, k) if self.states.names else np.zeros(k, dtype=np.int64)

    def held_bytes(self, stage: Int32Array, k: int) -> Int64Array:
        """Return the parameters of each of *k* stages, int64, shape (k,), given the stage of each op."""
        held = sum_by(stage, self.own_bytes, k)
        return held + self.weights.held(stage, k) if self.weights.names else held

    def of_envelope(self, work: Int64Array, transfer: Int64Array, param_bytes: Int64Array) -> StageCost:
        """Return the cost of other ops and tensors on the envelope, whose parts are the same for all stages.

        Weights stay shared out: stages hold no more than in truth.

        Parameters
        ----------
        work, transfer, param_bytes
            By op or tensor, int64, one dimension.
        """
        return StageCost(self.machine.envelope(), work[np.newaxis], transfer[np.newaxis], param_bytes)

    def of_classes(self, work: Int64Array, transfer: Int64Array, param_bytes: Int64Array) -> StageCost:
        """Return the cost of other ops and tensors on the same devices, as :meth:`of_envelope` does.

        Parameters
        ----------
        work, transfer
            By class of device, and op or tensor, int64.
        """
        return StageCost(self.machine, work, transfer, param_bytes, by_class=True)

    def of_neighbours(self, work: Int64Array, boundary: BoundaryCost, param_bytes: Int64Array) -> StageCost:
        """Return the cost of other ops on the same devices with transport by neighbours, as :meth:`of_classes` does."""
        return StageCost(self.machine, work, boundary.least, param_bytes, boundary=boundary)

    def enveloped(self) -> StageCost:
        """Return the cost on the envelope: no stage costs more, or needs more memory, on it than on any device."""
        rows = self.least_work[np.newaxis], self.least_transfer[np.newaxis]
        return StageCost.of(self.machine.envelope(), *rows, self._without_states, self.weights, self.states)

    def on(self, devices: Sequence[int]) -> StageCost:
        """Return the cost on some of the devices, by their numbers."""
        machine, class_of = self.machine.on(devices), self.machine.class_of
        old = [class_of[i] for i in devices]
        rows = [old[machine.class_of.index(c)] for c in range(len(machine.classes))]
        boundary = None
        if self.boundary is not None:
            boundary = self.boundary.on(machine.class_of, old)
            transfer = boundary.least
        elif self.by_class:
            transfer = self.transfer[rows]
        else:
            links = [self.machine.links.index(link) for link in machine.links]
            transfer = self.transfer[links]
        cost = StageCost.of(
            machine, self.work[rows], transfer, self._without_states, self.weights, self.states, boundary
        )
        return replace(cost, by_class=True) if self.by_class else cost

    @property
    def _without_states(self) -> Int64Array:
        """Parameters of each op and its share of weights, int64, shape (n,)."""
        return (
            self.param_bytes - self.states.shared_out(len(self.param_bytes)) if self.states_join else self.param_bytes
        )


def _least(by_row: Int64Array) -> Int64Array:
    """Return the least of each column; of one row that row itself."""
    least: Int64Array = by_row[0] if len(by_row) == 1 else by_row.min(axis=0)
    return least


def require_one_chain(graph: CostGraph, machine: Machine) -> None:
    """Raise InputError, with the place in the machine, unless each op is read by the next one alone.

    O(n + pins).
    """
    at = next(i for i, group in enumerate(machine.groups) if group.device.stage_times_ps)
    position = np.empty(graph.op_count, dtype=np.int64)
    position[graph.order] = np.arange(graph.op_count)
    made_at = np.repeat(position[graph.tensor_producer], np.diff(graph.consumer_offsets))
    distance = position[graph.consumers] - made_at
    wrong = np.flatnonzero(distance != 1)
    problem = ""
    if len(wrong):
        reader = graph.op_names[int(graph.consumers[wrong[0]])]
        maker = graph.op_names[int(graph.order[made_at[wrong[0]]])]
        problem = f"{reader!r} reads from {maker!r}, which is not the op before it"
    elif len(np.unique(made_at)) < graph.op_count - 1:
        followed = np.zeros(graph.op_count, dtype=bool)
        followed[made_at] = True
        alone = int(np.flatnonzero(~followed[:-1])[0])
        names = [graph.op_names[int(v)] for v in graph.order[alone : alone + 2]]
        problem = f"{names[1]!r} reads nothing from {names[0]!r}"
    if problem:
        raise InputError(
            f"stage_times are of a chain of equal layers, and {graph.name!r} is none: {problem}",
            parameter="machine",
            where=f"/device/{at}/stage_times",
        )
