"""The worker process of a stage: wait for inputs and for room, run, hand on, batch by batch."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.runtime.element_types import unpacked
from mtpp.runtime.pipeline.memory import Layout, OpenTensor, Ring, View, arrays
from mtpp.runtime.pipeline.model_file import ModelFile
from mtpp.runtime.pipeline.tokens import Arrivals, Departures
from mtpp.runtime.session import SessionChoices

COLUMNS = ("started", "wait_in", "wait_out", "busy", "cpu", "ended", "hand_over")
"""Of a row; the first and the last but one on the system's monotonic clock, all in seconds."""


@dataclass(frozen=True)
class Read:
    """Tensors that a stage reads from one ring, by name."""

    ring: Ring
    names: tuple[str, ...]


@dataclass(frozen=True)
class StageJob:
    """All that a worker has to know; it can be pickled, and its descriptors are open in the worker.

    Attributes
    ----------
    reads
        Of the model's inputs and of other stages' outputs; the slot is the batch's number modulo that of slots.
    output
        Where the stage's outputs go.
    arrivals, departures
        Links from its producers, and to its consumers and to the collector of the results.
    cores
        That the process is to keep to, None for all.
    warmup, batches
        Batches before the clock starts, and after.
    spin_s
        Seconds for which it looks whether something is there before it sleeps.
    probe
        Job that is done before, of a model that copies messages; None where another pair of workers does it.
    """

    model: ModelFile
    choices: SessionChoices
    reads: tuple[Read, ...]
    output: Ring
    arrivals: tuple[Arrivals, ...]
    departures: tuple[Departures, ...]
    times: TimesTable
    cores: tuple[int, ...] | None
    warmup: int
    batches: int
    spin_s: float = 0.0
    probe: StageJob | None = None

    def descriptors(self) -> tuple[int, ...]:
        """Return those that the worker must inherit."""
        rings = {read.ring.descriptor for read in self.reads} | {self.output.descriptor, self.times.ring.descriptor}
        pipes = {end for link in self.arrivals for end in (link.filled, link.free)}
        pipes |= {end for link in self.departures for end in (link.filled, link.free)}
        of_probe = () if self.probe is None else self.probe.descriptors()
        return tuple(sorted(rings | pipes | set(of_probe)))

    def run(self, parent: Connection) -> None:
        """Load, probe, warm up and run; say ``ready``, ``probed``, ``warm`` and ``done``, and go on when told to."""
        keep_to(self.cores)
        loop = _Loop(self)
        probe = None if self.probe is None else _Loop(self.probe)
        parent.send(("ready", None))
        parent.recv()
        if probe is not None:
            probe.warm_up()
            probe.run()
        parent.send(("probed", None))
        parent.recv()
        loop.warm_up()
        parent.send(("warm", None))
        parent.recv()
        loop.run()
        parent.send(("done", None))


def keep_to(cores: tuple[int, ...] | None) -> None:
    """Have this process, and the threads that it will start, run on some cores only."""
    if cores is not None:
        os.sched_setaffinity(0, cores)


class _Loop:
    """The model with its memory; values are made once per slot, so that a batch costs no allocation.

    Of tensors of open size, and of those whose elements share bytes, they are made for each batch.
    """

    def __init__(self, job: StageJob) -> None:
        self._job = job
        self._model = job.model.open(job.choices)
        self._reads = [
            [self._slot({name: views[name] for name in read.names}) for views in read.ring.views()]
            for read in job.reads
        ]
        self._outputs = [self._slot(views) for views in job.output.views()]
        self._total = job.warmup + job.batches

    def warm_up(self) -> None:
        """Do the batches before the clock starts."""
        for batch in range(self._job.warmup):
            self.step(batch, None)

    def run(self) -> None:
        """Do the batches that are timed."""
        done, rows = self._job.times.open()
        for row in range(self._job.batches):
            self.step(self._job.warmup + row, rows[row])
            done[0] = row + 1

    def _slot(self, views: Mapping[str, View]) -> _Slot:
        fixed = {name: view for name, view in views.items() if not isinstance(view, OpenTensor)}
        others = {name: view for name, view in views.items() if isinstance(view, OpenTensor)}
        return _Slot(self._model.shared(fixed), others)

    def step(self, batch: int, row: Any) -> None:
        """Do one batch and note down in *row*, unless it is None, what it took."""
        job = self._job
        clock, spin_s = time.monotonic, job.spin_s
        started, wait_in, wait_out = clock(), 0.0, 0.0
        for arrivals in job.arrivals:
            wait_in += arrivals.wait(spin_s)
        for departures in job.departures:
            wait_out += departures.wait(batch, spin_s)
        cpu, began = time.process_time(), clock()
        inputs: dict[str, Any] = {}
        for slots in self._reads:
            slot = slots[batch % len(slots)]
            inputs |= slot.values
            if slot.others:
                inputs |= self._model.shared(arrays(slot.others))
        outputs = self._outputs[batch % len(self._outputs)]
        made = self._model.run_into(inputs, outputs.values, tuple(outputs.others))
        for name, value in made.items():
            outputs.others[name].put(self._model.array(value))
        ended, cpu = clock(), time.process_time() - cpu
        for departures in job.departures:
            departures.tell()
        for arrivals in job.arrivals:
            arrivals.release(batch, self._total)
        if row is not None:
            hand_over = (began - started - wait_in - wait_out) + (clock() - ended)
            row[:] = (started, wait_in, wait_out, ended - began, cpu, ended, hand_over)


class _Slot(NamedTuple):
    """Tensors of a slot: values on their memory, and those that are made for each batch."""

    values: dict[str, Any]
    others: dict[str, OpenTensor]


@dataclass(frozen=True)
class TimesTable:
    """Where a worker notes down its times: a row per batch, written before the batch counts as done."""

    ring: Ring

    @classmethod
    def make(cls, rows: int) -> TimesTable:
        """Make an empty one."""
        layout = Layout.of([("done", "int64", (1,)), ("rows", "float64", (rows, len(COLUMNS)))])
        return cls(Ring.make(layout, 1, "the times of all batches"))

    def open(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the number of rows that are done, shape (1,), and the rows, shape (batches, columns)."""
        views = arrays(self.ring.views()[0])
        return unpacked(views["done"]), unpacked(views["rows"])


@dataclass(frozen=True)
class StageTimes:
    """The times of one stage, a number per batch, in seconds.

    Attributes
    ----------
    busy
        Within ONNX Runtime, by the clock on the wall.
    cpu
        What of that its process was running.
    wait_in, wait_out
        For inputs, and for room for the outputs.
    started, ended
        When it began to wait for a batch's inputs, and when its outputs were made.
    hand_over
        Seconds of taking inputs that are there, of saying that outputs are and of giving slots back.
    """

    started: NDArray[np.float64]
    wait_in: NDArray[np.float64]
    wait_out: NDArray[np.float64]
    busy: NDArray[np.float64]
    cpu: NDArray[np.float64]
    ended: NDArray[np.float64]
    hand_over: NDArray[np.float64]

    @property
    def held(self) -> NDArray[np.float64]:
        """Seconds for which the stage had a batch: all but waiting."""
        return self.busy + self.hand_over

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> StageTimes:
        """Return the times in the rows of a table."""
        return cls(*(rows[:, column].copy() for column in range(len(COLUMNS))))
