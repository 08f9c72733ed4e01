"""Algorithms compared on many models: every algorithm on every model for every k, one run after the other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.api.cells.overheads import Overheads
from mtpp.api.cells.work import Session
from mtpp.api.observer import listener
from mtpp.api.options.search import Comparing
from mtpp.api.output import SavedResult
from mtpp.errors import InputError, Interrupted
from mtpp.host.stop_reason import StopReason
from mtpp.names import FILL, MEMORY
from mtpp.units import PICOSECONDS, format_picoseconds

if TYPE_CHECKING:
    from fractions import Fraction

    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading
    from mtpp.inference.model_file import ModelFile
    from mtpp.machine.device import Device
    from mtpp.solvers.certify.cells.cell import Outcome
    from mtpp.solvers.certify.comparison import ComparedRuns, Mean, Run, RunCell
    from mtpp.solvers.variants import Variant
    from mtpp.views.terminal import Medium


def compare_algorithms(
    models: Sequence[str | Model], asked: Comparing, reading: Reading, observer: Observer, overheads: Overheads
) -> ComparedRuns:
    """Check all models, then run every algorithm on each of them for each k.

    Ctrl-C ends the work with the runs there are.

    Parameters
    ----------
    overheads
        Seconds that are gone before the first model is read.

    Raises
    ------
    InputError
        If a model cannot be read, or no op of any of them takes time; before the first run.
    """
    from mtpp.api.inputs.model_files import ReadingLimits, counts_of
    from mtpp.solvers.certify.cells.cell import run_here
    from mtpp.solvers.certify.comparison import ComparedRuns
    from mtpp.solvers.variants import default_variants, parse_variants

    variants = default_variants() if asked.algorithms is None else parse_variants(asked.algorithms)
    variants = _usable(variants, models, reading, observer)
    system = _system_of(models, reading)
    counts = counts_of(asked.k, models, reading)
    runs = _Runs(counts, variants, asked, observer)
    runs.work(models, reading, ReadingLimits(asked.time_limit_s, overheads=overheads), run_here)
    names = tuple(variant.name for variant in variants)
    return ComparedRuns(
        tuple(runs.models), tuple(runs.done), counts, names, system, runs.limits, interrupted=runs.interrupted
    )


def _usable(
    variants: tuple[Variant, ...], models: Sequence[str | Model], reading: Reading, observer: Observer
) -> tuple[Variant, ...]:
    """Return the algorithms but the rules of engines that divide ops by limits on memory, where there are none.

    Where nothing else is left all stay: the first run says what is missing.
    """
    from mtpp.api.inputs.model import Model

    limits: set[int | None] = set()
    for one in models:
        machine, device = (one.machine, one.system) if isinstance(one, Model) else (reading.placed, reading.device)
        limits |= {kind.memory_bytes for kind in ([device] if machine is None else machine.classes)}
    without = {name for name, lacks in ((MEMORY, None in limits), (FILL, limits == {None})) if lacks}
    left = tuple(variant for variant in variants if variant.entry.name not in without)
    out = [variant.name for variant in variants if variant.entry.name in without]
    if not left or not out:
        return variants
    some = "none has" if limits == {None} else "some have none"
    observer.warn(f"{', '.join(out)}: left out: devices need limits on their memory, and {some}")
    return left


def _system_of(models: Sequence[str | Model], reading: Reading) -> Device:
    """Return the machine of all models; raise InputError if there are several."""
    from mtpp.api.inputs.model import Model

    first, *others = (one.system if isinstance(one, Model) else _device_of(one, reading) for one in models)
    if any(system != first for system in others):
        raise InputError("are not all for one system", parameter="models", remedy="compare on one at a time")
    return first


def _device_of(path: str, reading: Reading) -> Device:
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.api.inputs.serving import in_order

    return in_order(reading.device, reading.peak) if names_language_model(path) else reading.device


class _Runs(Session["RunCell", "Run"]):
    """Hands out the runs of a comparison, and tells an observer of each."""

    def __init__(
        self, stage_counts: Sequence[int], variants: Sequence[Variant], asked: Comparing, observer: Observer
    ) -> None:
        from mtpp.solvers.certify.comparison import RunLimits

        super().__init__(stage_counts, observer)
        self.variants = variants
        self.goals = asked
        self.limits = RunLimits(asked.time_limit_s, asked.work_limit, **asked.limits())
        self.done: list[Run] = []

    def accept(self, model: Model) -> None:
        """Refuse goals that are none for a model."""
        if self.goals.goal_option:
            self.goals.goal(self.goals.applied(model.instance(1)))

    def begin(self, models: Sequence[ModelFile]) -> Sequence[ModelFile]:
        """Leave out models whose simple bound is 0, which have no ratios."""
        working = [model for model in models if model.work]
        if not working:
            raise InputError("no op takes time, so there is nothing to compare", source=models[0].path)
        for model in models:
            if not model.work:
                self.observer.warn(f"{model.path}: left out: no op takes time, so its simple bound is 0")
        return working

    def cells(self) -> Iterator[RunCell]:
        """Give the runs on one model after the other; each model is let go at its end."""
        for number in range(len(self.models)):
            yield from self._runs_on(number)

    def _runs_on(self, number: int) -> Iterator[RunCell]:
        from mtpp.solvers.certify.comparison import RunCell

        file = self.models[number]
        model = None if self.interrupted else self.files.read_again(file, self.observer.warn)
        if model is None:
            return
        runs = len(self.models) * len(self.stage_counts) * len(self.variants)
        for k in self.stage_counts:
            instance = self.goals.applied(model.instance(k))
            goal = self.goals.goal(instance)
            for variant in self.variants:
                if self.interrupted:
                    return
                label = f"{file.name} · k = {k} · {variant.name}"
                self.progress.show(label, len(self.done), runs)
                yield RunCell(number, label, instance, file.path, variant, self.limits, goal)

    def ended(self, outcome: Outcome[Run]) -> None:
        """Keep a run."""
        run, file = outcome.state, self.models[outcome.cell.number]
        assert run is not None
        if run.problem is not None or run.reached is None:
            said = run.problem
        else:
            tried = "1 evaluation" if run.evaluations == 1 else f"{run.evaluations:,} evaluations"
            took = format_picoseconds(run.seconds * PICOSECONDS["s"])
            cost = outcome.cell.instance.describe(run.reached)
            ratio = "none" if run.ratio is None else f"{run.ratio:.4f}"
            said = f"{cost}, ratio {ratio}, {tried} in {took}, {run.stopped}"
        self.done.append(run)
        self.observer.note(f"{file.name}, k = {run.k}, {run.algorithm}: {said}")


def warn_of_gaps(comparison: ComparedRuns, observer: Observer) -> None:
    """Warn of the runs that the means leave out, and why, and of partitions that do not keep to a limit."""
    from mtpp.solvers.memory_growth import with_hint

    groups: dict[tuple[str, str, bool], tuple[dict[int, None], dict[str, None]]] = {}
    for cell in comparison.cells:
        if cell.breaks_limit:
            observer.warn(f"{cell.source}: k = {cell.k}: {cell.algorithm}: {cell.problem}")
        elif cell.problem is not None:
            counts, algorithms = groups.setdefault((cell.source, cell.problem, cell.unfit), ({}, {}))
            counts[cell.k] = algorithms[cell.algorithm] = None
    for (source, problem, unfit), (counts, algorithms) in groups.items():
        listed, named = ", ".join(map(str, counts)), ", ".join(algorithms)
        out = (
            f"left out of the mean of {named} for k = {listed}"
            if unfit
            else f"left out of the means for k = {listed}: {named}"
        )
        observer.warn(f"{source}: {out}: {with_hint(problem)}")
    if comparison.interrupted:
        observer.warn_interrupted(f"after {len(comparison.cells)} of {comparison.runs} runs")


@dataclass(frozen=True, repr=False)
class Comparison(SavedResult):
    """Algorithms measured against each other: iterates over its runs.

    A run has the attributes source, k, algorithm, bottleneck and simple_bound (in ticks), ratio, evaluations, seconds,
    stopped and more.

    Attributes
    ----------
    compared
        All runs, and what was asked for.
    elapsed_s
        Seconds from the call to the end of the last run.
    """

    compared: ComparedRuns
    elapsed_s: float

    def __len__(self) -> int:
        return len(self.compared.cells)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.compared.cells)

    def __getitem__(self, place: int) -> Run:
        return self.compared.cells[place]

    @property
    def stopped(self) -> StopReason:
        """Why it ended: ``finished`` or ``interrupted``."""
        return StopReason.INTERRUPTED if self.compared.interrupted else StopReason.FINISHED

    def means(self) -> list[Mean]:
        """Return the geometric mean of objective / simple bound over the models, by algorithm and k."""
        return self.compared.means()

    def _said(self) -> dict[str, Any]:
        from mtpp.formats.results.comparison import comparison_document

        return comparison_document(self.compared, self.elapsed_s)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the runs as in the JSON document."""
        from mtpp.formats.results.comparison import run_rows

        return run_rows(self.compared)

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.comparison import comparison_text

        return comparison_text(self.compared, medium)


def compare(
    models: Any,
    k: int | Iterable[int] | None = None,
    *,
    algorithms: str | Iterable[str] | None = None,
    objective: str = "bottleneck",
    max_latency: str | float | Fraction | None = None,
    max_bottleneck: str | float | Fraction | None = None,
    replicas: bool = False,
    time_limit_s: float | None = None,
    work_limit: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    memory_limit: int | str | None = None,
    reading: Reading | None = None,
    observer: Observer | None = None,
) -> Comparison:
    """Measure algorithms against each other on models, as Table 2 of Archer et al. (2024) does.

    Keywords that are not listed are fields of :class:`mtpp.api.options.search.Comparing`.

    Parameters
    ----------
    models
        One, or a list: models of :func:`mtpp.read` or anything that it reads, and folders of models.
    memory_limit
        What an exhaustive search may keep, in bytes or as ``"4GiB"``; half of what is free by default.
    reading
        How files are read: machine, dimensions and so on; by default for the reference system.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    All runs and their means. A ratio is objective / simple lower bound, so 1 is optimal and lower is better; the means
    of one k rest on the models that all algorithms finished, those of a rule of engines on those of them that it fits.
    Algorithms that know nothing of the goal look for small
    bottlenecks, and have no mean where one of their partitions breaks its limit. After Ctrl-C it holds the runs there
    are.

    Raises
    ------
    InputError
        If a model cannot be read, no op of any of them takes time, or a parameter is wrong.
    Interrupted
        If Ctrl-C came before the first run.

    Examples
    --------
    >>> from mtpp.datasets import sample_path
    >>> comparison = compare(sample_path("resnet50"), [2, 4], algorithms=["slice", "random-10"])
    >>> [(run.k, run.algorithm, round(run.ratio, 3)) for run in comparison]
    [(2, 'slice', 1.095), (2, 'random-10', 1.095), (4, 'slice', 1.312), (4, 'random-10', 1.312)]
    """
    from mtpp.api.inputs.reading import models_of, reading_of

    begin = time.monotonic()
    asked = Comparing.among(locals())
    given, read = models_of(models, observer), reading_of(reading)
    heard = listener(observer)
    compared = compare_algorithms(given, asked, read, heard, Overheads())
    if compared.interrupted and not compared.cells:
        raise Interrupted("interrupted before the first run")
    warn_of_gaps(compared, heard)
    return Comparison(compared, time.monotonic() - begin)
