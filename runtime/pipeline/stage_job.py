"""The worker process of a stage: wait for inputs and for room, run, hand on, batch by batch."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from mtpp.runtime.pipeline.memory import Ring
from mtpp.runtime.pipeline.model_file import ModelFile
from mtpp.runtime.pipeline.times import TimesTable
from mtpp.runtime.pipeline.tokens import Arrivals, Departures
from mtpp.runtime.session import SessionChoices


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

    def descriptors(self) -> tuple[int, ...]:
        """Return those that the worker must inherit."""
        rings = {read.ring.descriptor for read in self.reads} | {self.output.descriptor, self.times.ring.descriptor}
        pipes = {end for link in self.arrivals for end in (link.filled, link.free)}
        pipes |= {end for link in self.departures for end in (link.filled, link.free)}
        return tuple(sorted(rings | pipes))

    def run(self, parent: Connection) -> None:
        """Do it: load, say ``ready``, warm up, say ``warm``, run, say ``done``; go on when the parent says so.

        Raises
        ------
        InputError
            If the model cannot be loaded or run.
        PeerGone
            If another worker has died.
        EOFError
            If the parent has.
        """
        keep_to(self.cores)
        loop = _Loop(self)
        parent.send(("ready", None))
        parent.recv()
        for batch in range(self.warmup):
            loop.step(batch, None)
        parent.send(("warm", None))
        parent.recv()
        done, rows = self.times.open()
        for row in range(self.batches):
            loop.step(self.warmup + row, rows[row])
            done[0] = row + 1
        parent.send(("done", None))


def keep_to(cores: tuple[int, ...] | None) -> None:
    """Have this process, and the threads that it will start, run on some cores only."""
    if cores is not None:
        os.sched_setaffinity(0, cores)


class _Loop:
    """The model with its memory; values are made once per slot, so that a batch costs no allocation."""

    def __init__(self, job: StageJob) -> None:
        self._job = job
        self._model = job.model.open(job.choices)
        self._reads: list[tuple[int, list[dict[str, Any]]]] = []
        for read in job.reads:
            slots = [self._model.shared({name: views[name] for name in read.names}) for views in read.ring.views()]
            self._reads.append((read.ring.slots, slots))
        self._outputs = [self._model.shared(views) for views in job.output.views()]
        self._total = job.warmup + job.batches

    def step(self, batch: int, row: Any) -> None:
        """Do one batch and note down in *row*, unless it is None, what it took."""
        job = self._job
        clock = time.monotonic
        started = clock()
        for arrivals in job.arrivals:
            arrivals.wait()
        arrived = clock()
        for departures in job.departures:
            departures.wait(batch)
        inputs: dict[str, Any] = {}
        for count, slots in self._reads:
            inputs |= slots[batch % count]
        outputs = self._outputs[batch % job.output.slots]
        cpu, began = time.process_time(), clock()
        self._model.run_into(inputs, outputs)
        ended, cpu = clock(), time.process_time() - cpu
        for departures in job.departures:
            departures.tell()
        for arrivals in job.arrivals:
            arrivals.release(batch, self._total)
        if row is not None:
            row[:] = (started, arrived - started, began - arrived, ended - began, cpu, ended)
