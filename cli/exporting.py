"""``mtpp bound --export``: the MIP behind a bound, for another solver."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.host.interrupts import unwinding

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console
    from mtpp.inference.instance import Instance

_ENDINGS = (".mps", ".lp")
_WITH_POSITIONS = "bottleneck-guess"


def check_export(path: str) -> None:
    """Check that a model can be written to *path*, before the work.

    Raises
    ------
    InputError
        If the name does not say in which format, or there is no place for the file.
    """
    from mtpp.formats.io.sink import check_output

    if path != "-":
        _ending(path)
        check_output(path)


def check_export_options(options: dict[str, Any], output: str | None) -> None:
    """Check that what goes with ``--export`` alone, or not with it, is not given otherwise.

    Raises
    ------
    InputError
        If an option would have no effect.
    """
    if options["export"] is None and options["position"] is not None:
        raise InputError("goes with --export alone", source="--position", remedy="leave it out")
    if options["export"] is not None and output is not None:
        raise InputError("there is no table with --export", source="--output", remedy="leave it out")


def export(paths: Sequence[str], options: dict[str, Any], bounds: Sequence[str], console: Console) -> None:
    """Write the MIP of a bound, whole or not at all, and say on standard error what it is about.

    It is that of the reduced graph, with everything fixed that no partition as good as the best one found can have, or
    none up to ``--cutoff``. The best one stays in, so the least value of the model is proven for all partitions.

    Raises
    ------
    InputError
        Unless there is one model, one k, and one bound that is a MIP.
    """
    from mtpp.cli.model_files import ModelFiles

    target = options["export"]
    if options["bounds"] is None or len(bounds) != 1:
        raise InputError("needs one bound", source="--export", remedy="name it: --bounds exact-mip")
    if len(options["stage_counts"]) != 1:
        raise InputError("needs one number of stages", source="--export", remedy="give one with -k")
    (k,) = options["stage_counts"]
    if options["position"] is not None and bounds[0] != _WITH_POSITIONS:
        raise InputError(f"{bounds[0]} is one MIP", source="--position", remedy="leave it out")
    files = ModelFiles(options, console.warn, lambda text: None)
    models = files.check(paths, k)
    if len(models) != 1:
        raise InputError(f"needs one model, not {len(models)}", source="--export", remedy="name one file")
    from mtpp.solvers.bounds.mip.exported_model import export_mps
    from mtpp.solvers.reduction.reduction import reduce_instance

    instance = files.read(models[0].path).instance(k)
    cutoff = _bottleneck(instance, options) + 1 if options["cutoff"] is None else options["cutoff"]
    rounds = reduce_instance(instance)
    reduced = rounds[-1].contraction.instance if rounds else instance
    with unwinding(), tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / f"model{_ending(target)}"
        written = export_mps(reduced, bounds[0], draft, cutoff=cutoff, position=options["position"])
        _deliver(draft, target)
    console.say(
        f"{bounds[0]}: {written.columns:,} columns, {written.rows:,} rows; the objective is the bottleneck in units of "
        f"{written.ticks_per_objective:.12g} ticks; partitions of {written.cutoff:,} ticks and more are left out"
    )


def _bottleneck(instance: Instance, options: dict[str, Any]) -> int:
    """Return the bottleneck of a good partition, found within a budget that depends on the graph alone."""
    from mtpp.cli.options.limits import search_memory
    from mtpp.solvers.feasibility import refuse_infeasible
    from mtpp.solvers.limits import SearchLimits
    from mtpp.solvers.registry import DEFAULT, partitioner

    refuse_infeasible(instance)
    entry = partitioner(DEFAULT)
    limits = SearchLimits(
        entry.budget(instance), seed=options["seed"], memory_bytes=search_memory(options["memory_limit"])
    )
    return entry.load()(instance, limits).bottleneck


def _deliver(draft: Path, target: str) -> None:
    from mtpp.cli.terminal.output import write_stdout
    from mtpp.formats.io.sink import write_text_atomically

    if target == "-":
        write_stdout(draft.read_text(encoding="utf-8"))
    else:
        write_text_atomically(target, draft.read_bytes())


def _ending(path: str) -> str:
    """Return the ending that names the format; one of ``.gz`` after it says that the file is to be packed."""
    if path == "-":
        return _ENDINGS[0]
    ending = Path(path.lower().removesuffix(".gz")).suffix
    if ending not in _ENDINGS:
        raise InputError(
            f"{path!r} does not say in which format",
            source="--export",
            remedy=f"let the name end in {' or '.join(_ENDINGS)}, and .gz to have it packed",
        )
    return ending
