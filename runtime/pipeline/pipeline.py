"""The parent's side of a pipeline: connects the stages, starts them, takes their results, gathers their times."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from mtpp.errors import InputError
from mtpp.formats.results.stage_manifest import MODEL_INPUT
from mtpp.formats.results.stage_records import CPU
from mtpp.host.ending import EndedEarly
from mtpp.host.stop_reason import StopReason
from mtpp.runtime.checking.agreement import Agreement
from mtpp.runtime.pipeline.crew import Crew, RunLimits, no_process
from mtpp.runtime.pipeline.hand_over_line import HandOverLine
from mtpp.runtime.pipeline.memory import Ring, View, arrays
from mtpp.runtime.pipeline.message_probe import ROUNDS, WARM_UP_ROUNDS, copying, layout_of, line_of, sizes
from mtpp.runtime.pipeline.model_file import Expected, ModelFile
from mtpp.runtime.pipeline.onnx_file import OnnxFile
from mtpp.runtime.pipeline.program_file import SUFFIX, ProgramFile
from mtpp.runtime.pipeline.run_length import BatchProgress, Progress, Unheard
from mtpp.runtime.pipeline.stage_job import Read, StageJob, StageTimes, TimesTable
from mtpp.runtime.pipeline.tokens import Arrivals, Departures, PeerGone, make_link
from mtpp.runtime.pipeline.wiring import Wiring
from mtpp.runtime.session import SessionChoices
from mtpp.wording import counted

_SMALL_BYTES = 1 << 20
"""Outputs up to here are compared at every batch; larger ones at the last, so that comparing takes no time from it."""

_KEPT_BYTES = 32 << 20
"""Results of all batches up to here are kept until the run is over, and compared then: comparing takes a core."""


@dataclass(frozen=True)
class PipelineChoices:
    """How to run a pipeline.

    Attributes
    ----------
    batches, warmup
        To be timed, and before.
    session
        How each worker runs its stage.
    cores
        Of each worker; None: where the system puts it.
    seed
        Of what is made up.
    spin_s
        Seconds for which a worker looks whether something is there before it sleeps.
    """

    batches: int
    warmup: int
    session: SessionChoices
    cores: tuple[tuple[int, ...], ...] | None
    seed: int
    spin_s: float = 0.0


@dataclass(frozen=True)
class PipelineTimes:
    """What came out of a run.

    Attributes
    ----------
    stages
        The times of the batches that all stages did, in order.
    agreement
        Of the results with those expected.
    stopped
        Why it ended: ``finished``, ``time-limit`` or ``interrupted``.
    line
        Time of messages between stages; None where no stage hands anything to another.
    """

    stages: tuple[StageTimes, ...]
    agreement: Agreement
    stopped: StopReason
    line: HandOverLine | None = None

    @property
    def batches(self) -> int:
        """How many all stages did."""
        return len(self.stages[0].busy)

    @property
    def elapsed_s(self) -> float:
        """Return the seconds from when the first stage could begin until the last one was done."""
        begin = min(float(times.started[0]) for times in self.stages)
        return max(float(times.ended[-1]) for times in self.stages) - begin


def stage_models(wiring: Wiring, seed: int) -> tuple[ModelFile, ...]:
    """Return the files of all stages, with what they read and make."""
    shapes = {(region.name): (region.name, region.dtype, region.shape) for region in wiring.inputs.regions}
    made = [
        {region.name: (region.name, region.dtype, region.shape) for region in layout.regions}
        for layout in wiring.layouts
    ]
    position = {stage.index: i for i, stage in enumerate(wiring.manifest.stages)}
    return tuple(
        model_of(
            wiring.folder / stage.file,
            tuple(
                shapes[tensor.name] if tensor.source == MODEL_INPUT else made[position[tensor.source]][tensor.name]
                for tensor in stage.inputs
            ),
            tuple(made[i].values()),
            seed,
            place=stage.place,
            recorded=wiring.manifest.imports,
        )
        for i, stage in enumerate(wiring.manifest.stages)
    )


def run_pipeline(
    wiring: Wiring,
    choices: PipelineChoices,
    inputs: Ring,
    expected: Ring | None,
    limits: RunLimits,
    tell: Callable[[str], None] = lambda text: None,
    progress: Progress = Unheard(),  # noqa: B008 - it has no state
) -> PipelineTimes:
    """Run the stages as a pipeline, and compare the results with those expected.

    Parameters
    ----------
    inputs, expected
        Sets of inputs for batches in turn, and what the model makes of them; None: nothing is compared.
    tell, progress
        Are told what is being done, and how many batches are done.
    """
    with _connected(wiring, choices, inputs) as connected, Crew(limits) as crew:
        for position, job in enumerate(connected.jobs):
            crew.start(f"{wiring.label(position)} ({job.model.path.name})", job)
        sink = _Sink(connected.collected, connected.kept, expected, choices.batches, choices.warmup)
        connected.close_ends_of_workers()
        stopped = StopReason.FINISHED
        try:
            tell("the pipeline: starting its workers")
            progress.show("starting the workers", 0, choices.batches)
            crew.gather("ready")
            crew.tell_all("probe")
            crew.gather("probed")
            tell(f"the pipeline: running {counted(choices.batches, 'batch')}")
            progress.show("warming up", 0, choices.batches)
            crew.tell_all("warm up")
            crew.gather("warm", sink.awaited, sink.take)
            crew.tell_all("run")
            done = [table.open()[0] for table in connected.tables]
            shown = BatchProgress(lambda: min(int(count[0]) for count in done), choices.batches, progress)
            crew.gather("done", sink.awaited, sink.take, shown.look)
            sink.finish()
        except EndedEarly as end:
            stopped = end.stopped
        times = _times(connected.tables)
        if not len(times[0].busy):
            raise EndedEarly(stopped)
        sink.compare_kept(len(times[0].busy))
        line = None if connected.probe is None else line_of(*connected.probe)
        return PipelineTimes(times, sink.agreement, stopped, line)


def _times(tables: list[TimesTable]) -> tuple[StageTimes, ...]:
    opened = [table.open() for table in tables]
    done = min(int(count[0]) for count, _ in opened)
    return tuple(StageTimes.of(rows[:done]) for _, rows in opened)


@dataclass
class _Connected:
    """Stages with memory and pipes between them.

    Attributes
    ----------
    collected
        Where results come from: the end of a link, and the ring, of each stage that makes some, with their names.
    kept
        Rings in which the results of all batches stay, with the names of those.
    probe
        Sizes of messages that two of the workers hand over first, and where the sender and the receiver note their
        times.
    """

    jobs: list[StageJob] = field(default_factory=list)
    tables: list[TimesTable] = field(default_factory=list)
    collected: list[tuple[Arrivals, Ring, tuple[str, ...]]] = field(default_factory=list)
    kept: list[tuple[Ring, tuple[str, ...]]] = field(default_factory=list)
    theirs: set[int] = field(default_factory=set)
    probe: tuple[tuple[int, ...], TimesTable, TimesTable] | None = None

    def close_ends_of_workers(self) -> None:
        """Close this process's copies of what workers hold: a pipe ends only when nobody holds its other end."""
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs.clear()


@contextmanager
def _connected(wiring: Wiring, choices: PipelineChoices, inputs: Ring) -> Iterator[_Connected]:
    """Make all memory and pipes; close what of them is left in this process at the end."""
    found = _Connected()
    with ExitStack() as stack:
        stack.callback(found.close_ends_of_workers)
        rings = []
        for position, layout in enumerate(wiring.layouts):
            keeps = _keeps_results(wiring, position, choices)
            slots = choices.warmup + choices.batches if keeps else wiring.slots[position]
            rings.append(Ring.make(layout, slots, f"the outputs of {wiring.label(position)}"))
            stack.callback(rings[-1].close)
            found.tables.append(TimesTable.make(choices.batches))
            stack.callback(found.tables[-1].ring.close)
        arrivals: list[list[Arrivals]] = [[] for _ in rings]
        departures: list[list[Departures]] = [[] for _ in rings]
        try:
            for producer, ring in enumerate(rings):
                for consumer in wiring.consumers[producer]:
                    out, into = make_link(ring.slots)
                    found.theirs |= {out.filled, out.free, into.filled, into.free}
                    departures[producer].append(out)
                    arrivals[consumer].append(into)
                if _keeps_results(wiring, producer, choices):
                    found.kept.append((ring, wiring.results(producer)))
                elif wiring.results(producer):
                    out, into = make_link(ring.slots)
                    found.theirs |= {out.filled, out.free}
                    stack.callback(os.close, into.filled)
                    stack.callback(os.close, into.free)
                    departures[producer].append(out)
                    found.collected.append((into, ring, wiring.results(producer)))
        except OSError as error:
            raise no_process(error) from None
        models = stage_models(wiring, choices.seed)
        for position in range(wiring.count):
            found.jobs.append(
                StageJob(
                    models[position],
                    choices.session,
                    _reads(wiring, position, rings, inputs),
                    rings[position],
                    tuple(arrivals[position]),
                    tuple(departures[position]),
                    found.tables[position],
                    None if choices.cores is None else choices.cores[position],
                    choices.warmup,
                    choices.batches,
                    choices.spin_s,
                )
            )
        with suppress(InputError):  # too little memory: no messages then
            _add_probe(found, wiring, stack)
        yield found


def _add_probe(found: _Connected, wiring: Wiring, stack: ExitStack) -> None:
    """Have the first two stages of which one reads what the other makes hand over messages before they run."""
    pairs = [(producer, own[0]) for producer, own in enumerate(wiring.consumers) if own]
    if not pairs:
        return
    producer, consumer = pairs[0]
    messages = sizes(max(region.room for i, _ in pairs for region in wiring.layouts[i].regions))
    rings, tables = [], []
    for slots in (1, wiring.slots[producer], 1):
        rings.append(Ring.make(layout_of(messages), slots, "messages"))
        stack.callback(rings[-1].close)
    for _ in range(2):
        tables.append(TimesTable.make(ROUNDS * len(messages)))
        stack.callback(tables[-1].ring.close)
    out, into = make_link(wiring.slots[producer])
    found.theirs |= {out.filled, out.free, into.filled, into.free}
    names = tuple(region.name for region in rings[0].layout.regions)
    ends: tuple[tuple[tuple[Arrivals, ...], tuple[Departures, ...]], ...] = (((), (out,)), ((into,), ()))
    for i, (position, (arrivals, departures)) in enumerate(zip((producer, consumer), ends, strict=True)):
        job = found.jobs[position]
        copies = replace(
            job,
            model=copying(messages, job.model),
            reads=(Read(rings[i], names),),
            output=rings[i + 1],
            arrivals=arrivals,
            departures=departures,
            times=tables[i],
            warmup=WARM_UP_ROUNDS * len(messages),
            batches=ROUNDS * len(messages),
        )
        found.jobs[position] = replace(job, probe=copies)
    found.probe = messages, tables[0], tables[1]


def _keeps_results(wiring: Wiring, position: int, choices: PipelineChoices) -> bool:
    """Whether the outputs of a stage, all of them results, may stay where they are until the run is over."""
    size = wiring.layouts[position].slot_bytes * (choices.warmup + choices.batches)
    return not wiring.consumers[position] and bool(wiring.results(position)) and size <= _KEPT_BYTES


def _reads(wiring: Wiring, position: int, rings: list[Ring], inputs: Ring) -> tuple[Read, ...]:
    stages = wiring.manifest.stages
    names: dict[int, list[str]] = {}
    for tensor in stages[position].inputs:
        names.setdefault(tensor.source, []).append(tensor.name)
    ring_of: Mapping[int, Ring] = {MODEL_INPUT: inputs} | {
        stage.index: ring for stage, ring in zip(stages, rings, strict=True)
    }
    return tuple(Read(ring_of[source], tuple(own)) for source, own in names.items())


class _Sink:
    """Takes the results of every batch, compares them, and gives their slots back."""

    def __init__(
        self,
        collected: list[tuple[Arrivals, Ring, tuple[str, ...]]],
        kept: list[tuple[Ring, tuple[str, ...]]],
        expected: Ring | None,
        batches: int,
        warmup: int,
    ) -> None:
        self.agreement = Agreement()
        self._expected = () if expected is None else expected.views()
        self._warmup, self._total = warmup, warmup + batches
        self._kept = [(ring.views(), names) for ring, names in kept]
        self._links = {arrivals.filled: arrivals for arrivals, _, _ in collected}
        self._views: dict[int, list[dict[str, View]]] = {}
        self._next = dict.fromkeys(self._links, 0)
        for arrivals, ring, names in collected:
            self._views[arrivals.filled] = [{name: views[name] for name in names} for views in ring.views()]
        size = sum(array.nbytes for views in self._expected[:1] for array in arrays(views).values())
        self._compare_all = bool(self._expected) and size <= _SMALL_BYTES
        self._ended: set[int] = set()

    def awaited(self) -> list[int]:
        """Return the descriptors that more results will come from: one at its end could always be read."""
        return [end for end, batch in self._next.items() if batch < self._total and end not in self._ended]

    def take(self, descriptor: int) -> None:
        """Take the next results of one stage."""
        batch, link = self._next[descriptor], self._links[descriptor]
        try:
            link.wait()
            if batch >= self._warmup:
                self._compare(batch, self._views[descriptor][batch % link.slots], self._total)
            self._next[descriptor] += 1
            link.release(batch, self._total)
        except PeerGone:  # its connection tells why
            self._ended.add(descriptor)

    def _compare(self, batch: int, views: Mapping[str, View], total: int) -> None:
        """Compare the results of a batch, of *total*, if they are small or the last of their kind."""
        if self._compare_all or batch >= total - len(self._expected):
            self.agreement.add(arrays(views), arrays(self._expected[batch % len(self._expected)]))

    def compare_kept(self, done: int) -> None:
        """Compare the results that were kept, of as many batches as are done."""
        total = self._warmup + done
        for slots, names in self._kept if self._expected else ():
            for batch in range(self._warmup, total):
                self._compare(batch, {name: slots[batch][name] for name in names}, total)

    def finish(self) -> None:
        """Take what is left after all workers are done."""
        while awaited := self.awaited():
            for descriptor in awaited:
                self.take(descriptor)


def model_of(
    path: Path,
    inputs: Sequence[Expected],
    outputs: Sequence[Expected],
    seed: int,
    *,
    whole: bool = False,
    spare: Sequence[str] = (),
    numbers: Mapping[str, int] | None = None,
    place: str = CPU,
    recorded: tuple[str, ...] = (),
    called: str = "",
) -> ModelFile:
    """Return a file as what it is, by its suffix."""
    kind = ProgramFile if path.suffix == SUFFIX else OnnxFile
    ends = tuple(inputs), tuple(outputs)
    return kind(path, *ends, seed, whole, tuple(spare), numbers or {}, place, recorded, called)
