"""Terms of a profile; times of a model's nodes, by ONNX Runtime's profiler, and of whole runs without it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from typing import Any

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.measured.onnxruntime_profile import Trace, read_trace
from mtpp.formats.modelled.size_terms import SizeTerms
from mtpp.host.interrupts import unwinding
from mtpp.machine.device import Device
from mtpp.runtime.checking.contents import contents_of
from mtpp.runtime.profiling.executable import Executable
from mtpp.runtime.session import SessionChoices, first_line, onnxruntime, open_session, ort_value

MOST_EVENTS = 1_000_000
"""That the profiler keeps (``kMaxNumEvents`` in ``core/common/profiler.h``); later ones are lost."""


@dataclass(frozen=True)
class ProfileRequest:
    """Terms of a profile.

    Attributes
    ----------
    dims
        Sizes of symbolic dimensions; see :mod:`mtpp.formats.modelled.size_terms`.
    arrays
        Contents of inputs.
    system
        Models the costs that measured ones are compared with.
    memory_bytes
        That may be taken; None for no limit.
    backward
        Whether the backward pass of each op is measured too.
    """

    choices: ProfileChoices
    system: Device
    dims: SizeTerms = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    seed: int = 0
    memory_bytes: int | None = None
    backward: bool = False


@dataclass(frozen=True)
class ProfileChoices:
    """How a model is measured.

    Attributes
    ----------
    warm_up, repeats
        Runs before those that count, and those.
    threads
        Of one kernel; kernels run one after the other.
    optimise
        Whether ONNX Runtime may fuse and rearrange ops.
    beside
        How many others run the model at the same time, over and over (:func:`background_load`).
    """

    warm_up: int = 3
    repeats: int = 20
    threads: int = 1
    optimise: bool = False
    beside: int = 0


@dataclass(frozen=True)
class Measurement:
    """What was measured.

    Attributes
    ----------
    trace
        What the profiler saw of the runs that count.
    walls_us, profiled_walls_us
        Each run without and with the profiler, by our own clock.
    interleaved
        Whether runs with and without the profiler took turns, so that a change of the machine's pace meets both.
    results
        What the last run gave, by name; tensors only.
    """

    trace: Trace
    walls_us: tuple[Fraction, ...]
    profiled_walls_us: tuple[Fraction, ...]
    interleaved: bool
    results: Mapping[str, Array]


def measure(
    executable: Executable,
    choices: ProfileChoices,
    *,
    room_for_two: bool,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measurement:
    """Run a model with the profiler and without it.

    Parameters
    ----------
    room_for_two
        Whether there is memory for two sessions: their runs take turns then. Otherwise the runs without the profiler
        come after those with it, in the same session.
    progress
        Is told how many of how many runs are done.
    """
    runs = choices.warm_up + choices.repeats
    total = runs if room_for_two else 2 * runs
    walls: list[Fraction] = []
    profiled_walls: list[Fraction] = []
    with unwinding(), tempfile.TemporaryDirectory(prefix="mtpp-profile-") as folder:
        profiled = _session(executable, choices, os.path.join(folder, "run"))
        plain = _session(executable, choices, None) if room_for_two else profiled
        feeds = {name: ort_value(onnxruntime(), array) for name, array in executable.feeds.items()}
        with_profiler, without = (_Runs(session, executable, feeds) for session in (profiled, plain))
        others = [_Runs(_session(executable, choices, None), executable, feeds).once for _ in range(choices.beside)]
        with background_load(others):
            for done in range(runs):
                profiled_walls.append(with_profiler.once())
                if room_for_two:
                    walls.append(without.once())
                progress(done + 1, total)
            path = Path(profiled.end_profiling())
            for done in range(0 if room_for_two else runs):
                walls.append(without.once())
                progress(runs + done + 1, total)
        names = [output.name for output in plain.get_outputs()]
        results = without.results()
        trace = read_trace(path.read_bytes(), f"profile of {executable.source}", skip_runs=choices.warm_up)
    if len(trace.walls_us) != choices.repeats:
        raise InputError(
            f"the profiler of ONNX Runtime keeps {MOST_EVENTS:,} events, fewer than {runs} runs have",
            source=executable.source,
            remedy="lower ‹repeats›",
        )
    warm = choices.warm_up
    made = {name: contents_of(value)[0] for name, value in zip(names, results, strict=True) if value.is_tensor()}
    return Measurement(trace, tuple(walls[warm:]), tuple(profiled_walls[warm:]), room_for_two, made)


def _session(executable: Executable, choices: ProfileChoices, prefix: str | None) -> Any:
    return open_session(
        executable.serialized(),
        SessionChoices(
            threads=choices.threads,
            optimise=choices.optimise,
            profile_prefix=prefix,
            as_saved=executable.as_saved,
        ),
        display=executable.source,
        weights=executable.weights,
        folder=executable.folder.absolute(),
    )


class _Runs:
    """Runs of a session on the same inputs.

    Inputs and outputs are bound beforehand where all are tensors, as workers of a pipeline do it: the interface of
    ONNX Runtime for Python otherwise takes 30 µs a run, more than all ops of a small model.
    """

    def __init__(self, session: Any, executable: Executable, feeds: Mapping[str, Any]) -> None:
        self._session, self._executable, self._feeds = session, executable, feeds
        self._results: Sequence[Any] = ()
        self._binding: Any = None
        if all(one.type.startswith("tensor(") for one in (*session.get_inputs(), *session.get_outputs())):
            self._binding = session.io_binding()
            for name, value in feeds.items():
                self._binding.bind_ortvalue_input(name, value)
            for output in session.get_outputs():
                self._binding.bind_output(output.name)

    def once(self) -> Fraction:
        """Run the model; return how long it took, in microseconds."""
        start = time.perf_counter_ns()
        try:
            if self._binding is None:
                self._results = self._session.run_with_ort_values(None, self._feeds)
            else:
                self._session.run_with_iobinding(self._binding)
        except Exception as error:  # its exceptions have no base of their own
            problem = f"ONNX Runtime cannot run it: {first_line(error)}"
            remedy = "give real inputs with ‹inputs› FILE.npz" if self._executable.made_up else None
            raise InputError(problem, source=self._executable.source, remedy=remedy) from None
        return Fraction(time.perf_counter_ns() - start, 1000)

    def results(self) -> Sequence[Any]:
        """Return what the last run gave, as ``OrtValue`` like *feeds*."""
        return self._results if self._binding is None else self._binding.get_outputs()


@contextmanager
def background_load(workers: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Call each of *workers* over and over in a thread while the context lasts; raise at its end what one raised.

    Notes
    -----
    Cores share caches, memory and often more: what an op takes alone is less than what it takes while the other cores
    work. Threads are enough: ONNX Runtime lets go of the interpreter while it runs a model.
    """
    done = Event()
    faults: list[BaseException] = []

    def work(worker: Callable[[], object]) -> None:
        try:
            while not done.is_set():
                worker()
        except BaseException as error:
            faults.append(error)

    threads = [Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
    if faults:
        raise faults[0]
