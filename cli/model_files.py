"""Several models: found in folders, checked before anything long begins, and read one at a time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.cli.options.limits import reading, refuse_too_late
from mtpp.errors import InputError, UnrecognisedInput
from mtpp.host.deadline import Deadline
from mtpp.host.process_age import process_age_s

if TYPE_CHECKING:
    from mtpp.api.model import Model
    from mtpp.formats.io.source import Source

STDIN = "-"
_LISTED = 8


@dataclass(frozen=True)
class ModelFile:
    """A model that was read and checked once, and what is kept of it.

    Attributes
    ----------
    path
        As given, or inside the folder given; ``-`` for standard input.
    name
        Of its graph.
    dims
        Sizes of ``--dim`` that it took.
    costs_sha256
        Of the file with measured costs, if one was given.
    work
        Σ work of its ops, in ticks for one stage.
    read_s
        Seconds that reading it took, those since process start for the first one.
    """

    path: str
    name: str
    sha256: str
    ops: int
    tensors: int
    dims: dict[str, int]
    work: int
    costs_sha256: str | None = None
    read_s: float = 0.0


class ModelFiles:
    """The models that a command was given.

    Parameters
    ----------
    options
        What :func:`mtpp.cli.options.shared.model_options` collected; each model takes the sizes of ``--dim`` that it
        has.
    warn
        Is told what was left out.
    tell
        Is told what is being read, before.
    time_limit_s
        Seconds that reading a model may take, None: any number.
    deadline
        By when all has to be read.
    start_s
        Seconds from a large model at hand to the start of the first search on it.
    """

    def __init__(
        self,
        options: dict[str, Any],
        warn: Callable[[str], None],
        tell: Callable[[str], None],
        time_limit_s: float | None = None,
        deadline: Deadline | None = None,
        start_s: float = 0,
    ) -> None:
        self._start_s = start_s
        self._time_limit_s = time_limit_s
        self._deadline = deadline or Deadline()
        self._since: float | None = None
        self._kept: tuple[str, Model] | None = None
        self._options = options
        self._warn = warn
        self._tell = tell
        self._stdin: Source | None = None

    def check(self, paths: Sequence[str], most_stages: int) -> list[ModelFile]:
        """Read every model once and forget it, so that what is wrong with one is said before a long run.

        Parameters
        ----------
        paths
            Files, ``-``, and folders, whose graphs are taken by name; what is given twice is read once.
        most_stages
            The largest k that will be asked for.

        Raises
        ------
        InputError
            If a file is no graph or broken, if its costs are too large for that many stages, if a folder holds no
            graph, or if no model has a dimension of ``--dim``.
        """
        from mtpp.cli.options.shared import parse_dims

        found: dict[str, ModelFile] = {}
        for path in paths:
            if path != STDIN and Path(path).is_dir():
                models = self._check_folder(Path(path), most_stages, found)
            else:
                models = iter([]) if _place(path) in found else iter([self._check_file(path, most_stages)])
            for model in models:
                found[_place(model.path)] = model
        for name in parse_dims(self._options["dims"]):
            if not any(name in model.dims for model in found.values()):
                raise InputError(
                    f"no model has a dimension {name!r}", source="--dim", remedy="`mtpp inspect` lists them"
                )
        if len(found) > 1:
            self._kept = None  # one is kept at most
        return list(found.values())

    def read(self, path: str) -> Model:
        """Read one of the models, anew."""
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == path:
            return kept[1]
        return self._read(path, lambda text: None)

    def read_again(self, file: ModelFile, warn: Callable[[str], None]) -> Model | None:
        """Return a model checked before, or None with a warning: a file that vanished costs no long run its results."""
        try:
            model = self.read(file.path)
        except InputError as error:
            warn(f"left out: {error}")
            return None
        if (model.source.sha256, model.costs_sha256) != (file.sha256, file.costs_sha256):
            warn(f"{file.path}: left out: the file was changed since the run began")
            return None
        return model

    def _check_file(self, path: str, most_stages: int) -> ModelFile:
        self._tell(f"reading {path}")
        began = time.monotonic() - process_age_s() if self._since is None else self._since
        with reading(path, *self._reading_ends(began)):
            model = self._read(path, self._warn)
            work = int(model.instance(1).work.sum())
            if most_stages > 1:
                model.instance(most_stages)  # raises if the costs are too large for so many
        self._since = time.monotonic()
        self._kept = path, model
        graph = model.graph
        refuse_too_late(path, self._time_limit_s, self._since - began, graph, start_s=self._start_s)
        return ModelFile(
            path,
            graph.name,
            model.source.sha256,
            graph.op_count,
            graph.tensor_count,
            model.dims,
            work,
            model.costs_sha256,
            self._since - began,
        )

    def _reading_ends(self, began: float) -> tuple[Deadline, float | None]:
        """Return when a model has to be read whose reading began then, and the limit that says so."""
        left = math.inf if self._time_limit_s is None else self._time_limit_s - (time.monotonic() - began)
        if left >= self._deadline.remaining_s():
            return self._deadline, self._deadline.limit_s
        return Deadline(left), self._time_limit_s

    def _check_folder(self, folder: Path, most_stages: int, found: dict[str, ModelFile]) -> Iterator[ModelFile]:
        """Give the models of a folder that were not found before."""
        from mtpp.formats.io.folder import files_of, has_graph_suffix, may_be_graph

        from_format = self._options["from_format"]
        graphs, others = 0, []
        for path in files_of(folder):
            if _place(path) in found:
                graphs += 1
                continue
            if not may_be_graph(path, from_format):
                others.append(path.name)
                continue
            try:
                model = self._check_file(str(path), most_stages)
            except InputError as error:
                if has_graph_suffix(path, from_format) and not isinstance(error, UnrecognisedInput):
                    raise
                others.append(path.name)
                continue
            graphs += 1
            yield model
        listed = ", ".join(others[:_LISTED]) + (f", … {len(others) - _LISTED} more" if len(others) > _LISTED else "")
        if not graphs:
            problem = f"no graph in this folder, only {listed}" if others else "no file in this folder"
            raise InputError(problem, source=str(folder), remedy="give a folder of ONNX models or graphs with costs")
        if others:
            self._warn(f"{folder}: not graphs, left out: {listed}")

    def _read(self, path: str, warn: Callable[[str], None]) -> Model:
        from mtpp.cli.options.shared import input_limit, read_model
        from mtpp.formats.io.source import read_source

        if path == STDIN and self._stdin is None:  # cannot be read a second time
            self._stdin = read_source(path, max_bytes=input_limit(self._options["max_input_size"]))
        return read_model(path, self._options, warn, source=self._stdin if path == STDIN else None, spare_dims=True)


def _place(path: str | Path) -> str:
    """Return the same text for every way to write a path."""
    return STDIN if path == STDIN else os.path.realpath(path)
