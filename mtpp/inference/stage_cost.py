"""Cost of a stage: f_j(S), what the device of stage j takes for a set S of ops, and its parts.

As eq. 1-3 of Archer et al. (2024), by class of device: f_j(S) = Σ work of S + Σ transfer of the tensors that S cuts +
the overflow of its memory, with f_j(∅) = 0. Devices that differ in their names alone are of one class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.inference.weights import NO_WEIGHTS, Weights, sum_by
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine


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
        Ticks by link and tensor, int64, shape (links, m); links as in :attr:`~mtpp.Machine.links`.
    param_bytes
        Parameters of each op and its share of the weights that it reads with others, int64, shape (n,): a stage holds
        at least the sum of its ops', and exactly that sum where no weight is shared.
    weights
        Weights that several ops read: a stage holds each of them once.
    """

    machine: Machine
    work: Int64Array
    transfer: Int64Array
    param_bytes: Int64Array
    weights: Weights = NO_WEIGHTS

    @cached_property
    def own_bytes(self) -> Int64Array:
        """Parameters of each op that no other one reads, int64, shape (n,)."""
        shared = self.weights.names
        return self.param_bytes - self.weights.shared_out(len(self.param_bytes)) if shared else self.param_bytes

    @cached_property
    def read_bytes(self) -> Int64Array:
        """All parameters that each op reads, int64, shape (n,): a stage that has it holds no less."""
        return self.own_bytes + self.weights.read_by(len(self.param_bytes)) if self.weights.names else self.param_bytes

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
        return _least(self.transfer)

    def class_of(self, k: int) -> Int64Array:
        """Return the class of the device of each of *k* stages, int64, shape (k,)."""
        if len(self.machine.classes) == 1:
            return np.zeros(k, dtype=np.int64)
        return np.array(self.machine.class_of[:k], dtype=np.int64)

    @cached_property
    def link_of(self) -> Int64Array:
        """Link of each class of devices, int64, shape (classes,)."""
        return np.array([self.machine.links.index(device.link) for device in self.machine.classes], dtype=np.int64)

    def overflow(self, param_bytes: int, peak_bytes: int, device: Device | None = None) -> int:
        """Return the time to stream memory that exceeds the fast memory (eq. 2), in ticks, rounded up.

        Parameters
        ----------
        device
            That the stage stands on; None: the envelope.
        """
        return (device or self.device).overflow_ps(param_bytes + peak_bytes)

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

    def enveloped(self) -> StageCost:
        """Return the cost on the envelope: no stage costs more, or needs more memory, on it than on any device."""
        rows = self.least_work[np.newaxis], self.least_transfer[np.newaxis]
        return StageCost(self.machine.envelope(), *rows, self.param_bytes, self.weights)

    def on(self, machine: Machine) -> StageCost:
        """Return the cost on another machine of devices of the same classes, some of them or all."""
        classes, links = self.machine.classes, self.machine.links
        work = self.work[[classes.index(device) for device in machine.classes]]
        transfer = self.transfer[[links.index(link) for link in machine.links]]
        return StageCost(machine, work, transfer, self.param_bytes, self.weights)


def _least(by_row: Int64Array) -> Int64Array:
    """Return the least of each column; of one row that row itself."""
    least: Int64Array = by_row[0] if len(by_row) == 1 else by_row.min(axis=0)
    return least
