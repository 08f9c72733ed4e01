"""What ``mtpp compare`` does: every algorithm on every model for every k, one run after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.units import PICOSECONDS, format_picoseconds

if TYPE_CHECKING:
    from mtpp.api.observer import Steps
    from mtpp.cli.model_files import ModelFile, ModelFiles
    from mtpp.cli.terminal.console import Console
    from mtpp.inference.instance import Instance
    from mtpp.inference.system import System
    from mtpp.solvers.certify.comparison import Cell, CellLimits, Mean
    from mtpp.solvers.variants import Variant


@dataclass(frozen=True)
class ComparisonRequest:
    """What the user asks of ``mtpp compare``, besides the models; see its help."""

    stage_counts: tuple[int, ...]
    variants: tuple[Variant, ...]
    system: System
    time_limit_s: float | None
    work_limit: int | None
    seed: int
    jobs: int
    memory_bytes: int

    @classmethod
    def of(cls, options: dict[str, Any]) -> ComparisonRequest:
        """Read the command's options."""
        from mtpp.cli.options.limits import search_memory
        from mtpp.cli.options.shared import system_of
        from mtpp.cli.planning import available_cores
        from mtpp.solvers.variants import default_variants, parse_variants

        named = options["algorithms"]
        return cls(
            stage_counts=options["stage_counts"],
            variants=default_variants() if named is None else parse_variants(named),
            system=system_of(options),
            time_limit_s=options["time_limit"],
            work_limit=options["work_limit"],
            seed=options["seed"],
            jobs=options["jobs"] or available_cores(),
            memory_bytes=search_memory(options["memory_limit"]),
        )

    @property
    def runs(self) -> int:
        """Number of runs on each model."""
        return len(self.stage_counts) * len(self.variants)

    @property
    def algorithms(self) -> list[str]:
        """Names of the algorithms, in the order of the rows."""
        return [variant.name for variant in self.variants]


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes
    ----------
    models
        All that were to be compared on, whether their turn came or not.
    cells
        The runs that were begun, in order.
    interrupted
        Whether the user ended it before the last run.
    """

    request: ComparisonRequest
    models: Sequence[ModelFile]
    cells: Sequence[Cell]
    interrupted: bool

    @property
    def runs(self) -> int:
        """Number of runs that were asked for."""
        return len(self.models) * self.request.runs

    def means(self) -> list[Mean]:
        """Return the means of each algorithm for each k."""
        from mtpp.solvers.certify.comparison import means

        return means(self.cells, self.request.algorithms, self.request.stage_counts)


def compare(paths: Sequence[str], options: dict[str, Any], request: ComparisonRequest, console: Console) -> Comparison:
    """Check all models, then run the comparison; progress goes to standard error.

    Raises
    ------
    InputError
        If a model cannot be read, or no op of any of them takes time; before the first run.
    """
    from mtpp.cli.model_files import ModelFiles
    from mtpp.host.interruption import Interruption
    from mtpp.solvers.certify.comparison import CellLimits
    from mtpp.solvers.compiling import compiled, load_kernels, tiny_instances

    cells: list[Cell] = []
    with console.steps() as progress:
        files = ModelFiles(options, console.warn, progress.show, request.time_limit_s)
        models = _worthwhile(files.check(paths, max(request.stage_counts)), console)
        names = [variant.entry.name for variant in request.variants]
        if not all(compiled(instance, names) for instance in tiny_instances(request.system)):
            console.say("compiling (once) …")
        load_kernels(names, request.system, max(model.ops for model in models))
        with Interruption() as interruption:
            limits = CellLimits(
                time_limit_s=request.time_limit_s,
                work_limit=request.work_limit,
                seed=request.seed,
                jobs=request.jobs,
                memory_bytes=request.memory_bytes,
                interrupted=lambda: interruption.requested,
            )
            watch = _Watch(console, progress, len(models) * request.runs)
            for model in models:
                _run_model(model, files, request, limits, cells, watch)
    return Comparison(request, models, cells, interrupted=interruption.requested)


def _worthwhile(models: Sequence[ModelFile], console: Console) -> list[ModelFile]:
    """Return the models whose simple bound is above 0; ratios to it say something only there."""
    working = [model for model in models if model.work]
    if not working:
        raise InputError("no op takes time, so there is nothing to compare", source=models[0].path)
    for model in models:
        if not model.work:
            console.warn(f"{model.path}: left out: no op takes time, so its simple bound is 0")
    return working


@dataclass(frozen=True)
class _Watch:
    """Says on standard error what is being run and what came out."""

    console: Console
    progress: Steps
    total: int

    def begins(self, model: ModelFile, k: int, algorithm: str, done: int) -> None:
        self.progress.show(f"{model.name} · k = {k} · {algorithm}", done, self.total)

    def ended(self, model: ModelFile, cell: Cell, instance: Instance) -> None:
        if cell.bottleneck is None:
            outcome = cell.problem
        else:
            tried = "1 evaluation" if cell.evaluations == 1 else f"{cell.evaluations:,} evaluations"
            took = format_picoseconds(cell.seconds * PICOSECONDS["s"])
            outcome = f"{instance.describe(cell.bottleneck)}, ratio {cell.ratio:.4f}, {tried} in {took}, {cell.stopped}"
        self.console.note(f"{model.name}, k = {cell.k}, {cell.algorithm}: {outcome}")


def _run_model(
    file: ModelFile,
    files: ModelFiles,
    request: ComparisonRequest,
    limits: CellLimits,
    cells: list[Cell],
    watch: _Watch,
) -> None:
    """Run every cell of one model, unless the user ends it; the model is let go at the end."""
    from mtpp.solvers.certify.comparison import run_cell

    if limits.interrupted():
        return
    model = files.read_again(file, watch.console.warn)
    if model is None:
        return
    for k in request.stage_counts:
        instance = model.instance(k)
        for variant in request.variants:
            if limits.interrupted():
                return
            watch.begins(file, k, variant.name, len(cells))
            cells.append(run_cell(instance, file.path, variant, limits))
            watch.ended(file, cells[-1], instance)


def warn_of_gaps(comparison: Comparison, console: Console) -> None:
    """Say which runs the means leave out, and why."""
    groups: dict[tuple[str, str], tuple[dict[int, None], dict[str, None]]] = {}
    for cell in comparison.cells:
        if cell.problem is not None:
            counts, algorithms = groups.setdefault((cell.source, cell.problem), ({}, {}))
            counts[cell.k] = algorithms[cell.algorithm] = None
    for (source, problem), (counts, algorithms) in groups.items():
        listed = ", ".join(map(str, counts))
        console.warn(f"{source}: left out of the means for k = {listed}: {', '.join(algorithms)}: {problem}")
    if comparison.interrupted:
        console.warn_interrupted(f"after {len(comparison.cells)} of {comparison.runs} runs")
