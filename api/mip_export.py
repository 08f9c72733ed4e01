"""The MIP behind a lower bound, written for another solver."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.options.cells import Bounding
from mtpp.api.parameters import path_text, text, whole
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.reading import Reading
    from mtpp.inference.instance import Instance

_ENDINGS = (".mps", ".lp")
_WITH_POSITIONS = "bottleneck-guess"


@dataclass(frozen=True)
class ExportedMip:
    """A MIP as text, and its size.

    Attributes
    ----------
    data
        Of the file, before it is packed.
    bound
        Name of the bound.
    columns, rows
        Of the model.
    ticks_per_objective
        Ticks in a unit of the objective, which is the bottleneck.
    cutoff
        Partitions of so many ticks and more are left out; if the model is infeasible, that is a lower bound.
    """

    data: bytes
    bound: str
    columns: int
    rows: int
    ticks_per_objective: float
    cutoff: int

    def describe(self) -> str:
        """Return its size and the meaning of its objective, in one line."""
        return (
            f"{self.bound}: {self.columns:,} columns, {self.rows:,} rows; the objective is the bottleneck in units of "
            f"{self.ticks_per_objective:.12g} ticks; partitions of {self.cutoff:,} ticks and more are left out"
        )

    def save(self, path: str | Path) -> None:
        """Write it to a file, whole or not at all; packed if the name ends in ``.gz``."""
        from mtpp.formats.io.sink import write_text_atomically

        write_text_atomically(path, self.data)


def check_export(path: str) -> None:
    """Check that a MIP can be written to *path*, before the work.

    Raises
    ------
    InputError
        If the name does not say in which format, or there is no place for the file.
    """
    from mtpp.formats.io.sink import check_output

    if path != "-":
        _ending(path)
        check_output(path)


def export_mip(given: Sequence[str | Model], asked: Bounding, reading: Reading, observer: Observer) -> ExportedMip:
    """Make the MIP of a bound, in the format that the name of the file to export to says; MPS for ``-``.

    It is that of the reduced graph, with everything fixed that no partition as good as the best one found can have, or
    none up to the cutoff. The best one stays in, so the least value of the model is proven for all partitions.
    """
    from mtpp.api.cells.limits import bound_names
    from mtpp.api.inputs.model_files import ModelFiles, counts_of
    from mtpp.host.interrupts import unwinding

    assert asked.export is not None
    bounds = () if asked.bounds is None else bound_names(asked.bounds)
    if len(bounds) != 1:
        raise InputError("needs one bound", parameter="export", remedy="name it: ‹bounds› exact-mip")
    counts = counts_of(asked.k, given, reading)
    if len(counts) != 1:
        raise InputError("needs one number of stages", parameter="export", remedy="give one with ‹k›")
    (bound,), (k,) = bounds, counts
    if asked.position is not None and bound != _WITH_POSITIONS:
        raise InputError(f"{bound} is one MIP", parameter="position", remedy="leave it out")
    files = ModelFiles(reading, observer.warn, lambda text: None)
    models = files.check(given, k)
    if len(models) != 1:
        raise InputError(f"needs one model, not {len(models)}", parameter="export", remedy="name one file")
    from mtpp.solvers.bounds.mip.exported_model import export_mps
    from mtpp.solvers.reduction.reduction import reduce_instance

    instance = files.read(models[0].path).instance(k).envelope
    cutoff = _bottleneck(instance, asked) + 1 if asked.cutoff is None else asked.cutoff
    reduced = reduce_instance(instance).instance
    with unwinding(), tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / f"model{_ending(asked.export)}"
        written = export_mps(reduced, bound, draft, cutoff=cutoff, position=asked.position)
        data = draft.read_bytes()
    return ExportedMip(data, bound, written.columns, written.rows, written.ticks_per_objective, written.cutoff)


def export(
    model: Any,
    k: int,
    path: str | Path,
    bound: str = "exact-mip",
    *,
    position: int | None = None,
    cutoff: int | None = None,
    seed: int = 0,
    reading: Reading | None = None,
    observer: Observer | None = None,
) -> ExportedMip:
    """Write the MIP of a lower bound to a file, for another solver.

    Keywords that are not listed are fields of :class:`mtpp.api.options.cells.Bounding`.

    Parameters
    ----------
    model
        A model of :func:`mtpp.read`, or anything that it reads.
    path
        Of the file, whose name ends in ``.mps`` or ``.lp``, or in one of them and ``.gz``.
    bound
        Name of a bound that is a MIP.
    cutoff
        Ticks: partitions of so many and more are left out; by default those worse than the best one found.
    reading
        How a file is read; by default for the reference system.
    observer
        Is told of progress and warned, see :class:`mtpp.Observer`.

    Returns
    -------
    The MIP and its size. The least value of its objective, times ``ticks_per_objective``, is a lower bound on the
    bottleneck of every partition of the model into *k* stages.

    Examples
    --------
    >>> import tempfile
    >>> from mtpp.datasets import sample_path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mip = export(sample_path("resnet50"), 2, f"{folder}/resnet50.mps")
    >>> mip.bound, mip.data[:4]
    ('exact-mip', b'NAME')
    """
    from mtpp.api.inputs.reading import models_of, reading_of
    from mtpp.api.observer import listener

    target = path_text(path, "path")
    check_export(target)
    asked = Bounding.among(locals(), k=whole(k, "k"), bounds=[text(bound, "bound")], export=target)
    found = export_mip(models_of(model, observer), asked, reading_of(reading), listener(observer))
    found.save(target)
    return found


def _bottleneck(instance: Instance, asked: Bounding) -> int:
    """Return the bottleneck of a good partition, found within a budget that depends on the graph alone."""
    from mtpp.api.options.search import search_memory
    from mtpp.solvers.feasibility import refuse_infeasible
    from mtpp.solvers.limits import SearchLimits
    from mtpp.solvers.registry import DEFAULT, partitioner

    refuse_infeasible(instance)
    entry = partitioner(DEFAULT)
    memory_bytes = search_memory(asked.memory_limit)
    limits = SearchLimits(entry.budget(instance), seed=asked.seed, memory_bytes=memory_bytes)
    return entry.load()(instance, limits).bottleneck


def _ending(path: str) -> str:
    """Return the ending that names the format; one of ``.gz`` after it says that the file is to be packed."""
    if path == "-":
        return _ENDINGS[0]
    ending = Path(path.lower().removesuffix(".gz")).suffix
    if ending not in _ENDINGS:
        raise InputError(
            f"{path!r} does not say in which format",
            parameter="export",
            remedy=f"let the name end in {' or '.join(_ENDINGS)}, and .gz to have it packed",
        )
    return ending
