"""Several models: found in folders, checked before anything long begins, and read one at a time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mtpp.api.cells.overheads import Overheads
from mtpp.api.inputs.model import Model, read_model
from mtpp.api.inputs.python_models import TORCH, source_at
from mtpp.api.inputs.reading_in_time import reading, refuse_too_late
from mtpp.api.inputs.serving import is_load, refuse_both_phases, refuse_serving
from mtpp.api.options.reading import ModelReading, Reading
from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.io.source import Source
from mtpp.formats.modelled.size_terms import named_sizes
from mtpp.host.deadline import Deadline
from mtpp.inference.model_file import ModelFile
from mtpp.names import FROM_TRANSFORMERS

STDIN = "-"
_LISTED = 8


@dataclass(frozen=True)
class ReadingLimits:
    """Limits on reading one of several models.

    Attributes
    ----------
    time_limit_s
        Seconds that reading a model may take, None: any number.
    deadline
        By when all has to be read.
    start_s
        Seconds from a large model at hand to the start of the first search on it.
    overheads
        Seconds of the limit that are gone before, and that a first result takes.
    """

    time_limit_s: float | None = None
    deadline: Deadline = field(default_factory=Deadline)
    start_s: float = 0
    overheads: Overheads = field(default_factory=Overheads)


class ModelFiles:
    """The models that a use case was given: files, folders of files, and models at hand.

    Parameters
    ----------
    how
        How files are read; each model takes the sizes of dimensions that it has.
    warn
        Is told what was left out.
    tell
        Is told what is being read, before.
    accept
        Is given every model once, to refuse it.
    """

    def __init__(
        self,
        how: Reading,
        warn: Callable[[str], None],
        tell: Callable[[str], None],
        limits: ReadingLimits | None = None,
        accept: Callable[[Model], None] = lambda model: None,
    ) -> None:
        self._how = how
        self._warn = warn
        self._tell = tell
        self._accept = accept
        self._limits = limits or ReadingLimits()
        self._since: float | None = None
        self._kept: tuple[str, Model] | None = None
        self._most_stages: int | None = None
        self._at_hand: dict[str, Model] = {}
        self._named: set[str] = set()
        self._sources: dict[str, Source] = {}

    def check(self, sources: Sequence[str | Model], most_stages: int) -> list[ModelFile]:
        """Read every model once and forget it, so that what is wrong with one is said before a long run.

        Parameters
        ----------
        sources
            Files, ``-``, folders, whose graphs are taken by name, and models; what is given twice is read once.
        most_stages
            The largest k that will be asked for.

        Raises
        ------
        InputError
            If a file is no graph or broken, if its costs are too large for that many stages, if a folder holds no
            graph, or if no model has one of the dimensions.
        LimitReached
            If the time is up before all are read.
        """
        self._most_stages = most_stages
        self._named = {_place(source) for source in sources if not isinstance(source, Model)}
        found: dict[str, ModelFile] = {}
        for source in sources:
            for file in self._checked(source, most_stages, found):
                found[_place(file.path)] = file
        for name in named_sizes(self._how.values()["dims"] or {}):
            if not any(name in file.dims for file in found.values()):
                raise InputError(
                    f"no model has a dimension {name!r}", parameter="dims", remedy="`mtpp inspect` lists them"
                )
        if not any(is_load(file.dims) for file in found.values()):
            refuse_serving(self._how)
        for name in self._how.values()["keep_state"] or {}:
            if not any(name in file.keep_state for file in found.values()):
                raise InputError(f"no model has an input {name!r}", parameter="keep_state")
        if len(found) > 1:
            self._kept = None  # one is kept at most
        return list(found.values())

    def read(self, path: str) -> Model:
        """Read one of the models, anew."""
        if path in self._at_hand:
            return self._at_hand[path]
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == path:
            return kept[1]
        return self._read(path, lambda text: None)

    def read_again(self, file: ModelFile, warn: Callable[[str], None]) -> Model | None:
        """Return a model checked before, or None with a warning: a file that vanished costs no long run its results."""
        try:
            model = self.read(file.path)
        except InputError as error:
            warn(f"left out: {error.told('‹{}›'.format)}")
            return None
        if (model.source.sha256, model.costs_sha256) != (file.sha256, file.costs_sha256):
            warn(f"{file.path}: left out: the file was changed since the run began")
            return None
        return model

    def _checked(self, source: str | Model, most_stages: int, found: dict[str, ModelFile]) -> Iterator[ModelFile]:
        """Give the models of one source that were not found before."""
        if isinstance(source, Model):
            if not any(source is model for model in self._at_hand.values()):
                yield self._check_model(source, most_stages, found)
        elif self._how.from_format != TORCH and source != STDIN and _is_folder_of_models(source):
            yield from self._check_folder(Path(source), most_stages, found)
        elif _place(source) not in found:
            yield self._check_file(source, most_stages)

    def _check_model(self, model: Model, most_stages: int, found: dict[str, ModelFile]) -> ModelFile:
        """Check a model at hand, under a path that no other one has."""
        path, number = model.source.display, 1
        while _place(path) in found or _place(path) in self._named:
            number += 1
            path = f"{model.source.display} ({number})"
        self._at_hand[path] = model
        file = _file_of(model, path, most_stages)
        self._accept(model)
        return file

    def _check_file(self, path: str, most_stages: int) -> ModelFile:
        self._tell(f"reading {path}")
        limits = self._limits
        began = time.monotonic() - limits.overheads.spent_s() if self._since is None else self._since
        with reading(path, *self._reading_ends(began)):
            model = self._read(path, self._warn)
            file = _file_of(model, path, most_stages)
            self._accept(model)
        self._since = time.monotonic()
        self._kept = path, model
        read_s = self._since - began
        refuse_too_late(path, limits.time_limit_s, read_s, model.graph, limits.overheads, start_s=limits.start_s)
        return replace(file, read_s=read_s)

    def _reading_ends(self, began: float) -> tuple[Deadline, float | None]:
        """Return when a model has to be read whose reading began then, and the limit that says so."""
        limit_s, deadline = self._limits.time_limit_s, self._limits.deadline
        left = math.inf if limit_s is None else limit_s - (time.monotonic() - began)
        if left >= deadline.remaining_s():
            return deadline, deadline.limit_s
        return Deadline(left), limit_s

    def _check_folder(self, folder: Path, most_stages: int, found: dict[str, ModelFile]) -> Iterator[ModelFile]:
        """Give the models of a folder that were not found before."""
        from mtpp.formats.io.folder import files_of, has_graph_suffix, may_be_graph

        from_format = self._how.from_format
        graphs, others = 0, []
        for path in files_of(folder):
            if _place(path) in found:
                if found[_place(path)].path in self._at_hand:
                    raise InputError("is given as a model too", source=str(path), remedy="leave one of them out")
                graphs += 1
                continue
            if not may_be_graph(path, from_format):
                others.append(path.name)
                continue
            try:
                file = self._check_file(str(path), most_stages)
            except InputError as error:
                if has_graph_suffix(path, from_format) and not isinstance(error, UnrecognisedInput):
                    raise
                others.append(path.name)
                continue
            graphs += 1
            yield file
        listed = ", ".join(others[:_LISTED]) + (f", … {len(others) - _LISTED} more" if len(others) > _LISTED else "")
        if not graphs:
            problem = f"no graph in this folder, only {listed}" if others else "no file in this folder"
            raise InputError(problem, source=str(folder), remedy="give a folder of ONNX models or graphs with costs")
        if others:
            self._warn(f"{folder}: not graphs, left out: {listed}")

    def _read(self, path: str, warn: Callable[[str], None]) -> Model:
        once = path == STDIN or self._how.from_format in (
            TORCH,
            FROM_TRANSFORMERS,
        )  # cannot be read, or is not built, a second time
        if once and path not in self._sources:
            self._sources[path] = source_at(path, self._how.from_format, int(self._how.max_input_size), self._how)
        source, stages = self._sources.get(path), self._most_stages
        return read_model(path, self._how, warn, source=source, spare_dims=True, stages=stages)


def counts_of(asked: tuple[int, ...] | None, models: Sequence[str | Model], reading: ModelReading) -> tuple[int, ...]:
    """Return the numbers of stages that are asked for; all devices of the machine where there is one and none is said.

    Raises
    ------
    InputError
        If there is neither, or a model is read for both phases.
    """
    for one in models:
        refuse_both_phases(one.how if isinstance(one, Model) else reading)
    if asked is not None:
        return asked
    machines = [one.machine if isinstance(one, Model) else reading.placed for one in models]
    counts = {None if machine is None else machine.count for machine in machines}
    if len(counts) != 1 or None in counts:
        raise InputError("give a number of stages, or one ‹machine› for all models", parameter="k")
    return tuple(count for count in counts if count is not None)


def _file_of(model: Model, path: str, most_stages: int) -> ModelFile:
    """Return what is kept of a model; raise InputError if its costs are too large for so many stages."""
    work = int(model.instance(1).work.sum())
    if most_stages > 1:
        model.instance(most_stages)
    graph = model.graph
    return ModelFile(
        path,
        graph.name,
        model.source.sha256,
        graph.op_count,
        graph.tensor_count,
        model.dims,
        work,
        model.costs_sha256,
        proposed_dims=model.proposed_dims,
        keep_state=model.keep_state,
        assumptions=tuple(map(str, graph.metadata.get("assumptions", ()))),
        machine=None if model.machine is None else model.machine_document(),
        own_costs=model.own_costs,
    )


def _is_folder_of_models(path: str) -> bool:
    """Tell whether a path is a folder, and not that of one language model."""
    from mtpp.api.inputs.language_models import names_language_model

    return Path(path).is_dir() and not names_language_model(path)


def _place(path: str | Path) -> str:
    """Return the same text for every way to write a path."""
    return STDIN if path == STDIN else os.path.realpath(path)
