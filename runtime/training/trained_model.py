"""A program to be trained, and its stages: loaded in every process of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.formats.io.source import read_source
from mtpp.formats.modelled.node_names import named_as
from mtpp.formats.torch_export import ProgramReading, read_with_modules
from mtpp.machine.presets import load_device
from mtpp.runtime.pytorch.flat_program import FlatProgram, flat_program
from mtpp.runtime.pytorch.importing import import_registering
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.loading import load_program
from mtpp.runtime.pytorch.stage_modules import SplitProgram, split_program
from mtpp.runtime.pytorch.tensors import drawn_tensor

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from mtpp.formats.results.stage_records import Described
    from mtpp.inference.graph import CostGraph


@dataclass(frozen=True)
class TrainedModel:
    """A program file, and the ops of each stage.

    Attributes
    ----------
    dims
        Sizes that it is read with.
    max_bytes
        Of the largest file that is read.
    stages
        Names of the ops of each stage.
    sha256
        Of the file, which processes read one after the other.
    seed
        Of weights without values, and of inputs.
    imports
        Python modules to be imported first.
    recorded
        Those that the plan names, which are not imported.
    """

    path: Path
    sha256: str
    max_bytes: int
    dims: Mapping[str, int]
    stages: Sequence[Sequence[str]]
    seed: int
    imports: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()

    def load(self) -> Loaded:
        """Return it in memory; raise InputError if the file has changed, or its ops are not those of the stages."""
        display = str(self.path)
        source = read_source(display, max_bytes=self.max_bytes)
        if source.sha256 != self.sha256:
            raise InputError("has changed since the run began", source=display, remedy="run again")
        reading = read_with_modules(
            source.stored, source=display, dims=dict(self.dims), system=load_device(), name=source.stem
        )
        labels = self._labels(reading)
        import_registering(self.imports)
        loaded = load_program(source.stored, display, self.seed, recorded=self.recorded)
        return Loaded(loaded.exported, flat_program(loaded.exported, reading.symbols), reading, labels, display)

    def _labels(self, reading: ProgramReading) -> list[int]:
        stage_of = {name: s for s, names in enumerate(self.stages) for name in names}
        names = named_as(reading.graph, stage_of).op_names
        unknown = next((name for name in stage_of if name not in set(names)), None)
        missing = next((name for name in names if name not in stage_of), None)
        if unknown is not None or missing is not None:
            problem = f"has no op {unknown!r}" if unknown is not None else f"op {missing!r} has no stage"
            raise InputError(problem, source=str(self.path), remedy="give the model that was planned for")
        labels = [stage_of[name] for name in names]
        wrong = _disorder(reading.graph, labels, self.stages)
        if wrong is not None:
            raise InputError(
                f"cannot be trained in these stages: {wrong}", source=str(self.path), remedy="plan it again"
            )
        return labels


def _disorder(graph: CostGraph, labels: Sequence[int], stages: Sequence[Sequence[str]]) -> str | None:
    """Return why ops cannot be in these stages, None where they can."""
    names, empty = graph.op_names, next((s for s, ops in enumerate(stages) if not ops), None)
    if empty is not None:
        return f"stage {empty} has no op"
    if sum(map(len, stages)) != len(names):
        twice = next(name for name, count in Counter(chain.from_iterable(stages)).items() if count > 1)
        return f"op {twice!r} is named twice"
    makers, readers = graph.edges
    for maker, reader in zip(makers.tolist(), readers.tolist(), strict=True):
        if labels[reader] < labels[maker]:
            return f"op {names[reader]!r} in stage {labels[reader]} reads from {names[maker]!r} in {labels[maker]}"
    return None


@dataclass
class Loaded:
    """A program in memory."""

    exported: ExportedProgram
    flat: FlatProgram
    reading: ProgramReading
    labels: Sequence[int]
    display: str

    def op_of(self, node: str) -> str:
        """Return the name of the op that a node belongs to."""
        ops = zip(self.reading.graph.op_names, self.reading.nodes, strict=True)
        return next((name for name, nodes in ops if node in nodes), node)

    def split(self) -> SplitProgram:
        """Return its stages, which share its parameters."""
        results = list(self.exported.graph_signature.user_outputs)
        return split_program(self.flat, results, self.reading.nodes, self.labels, self.display)


def micro_batches(inputs: Sequence[Described], count: int, seed: int) -> list[tuple[torch.Tensor, ...]]:
    """Return random inputs for each micro-batch, the same in every process."""
    pytorch()
    return [
        tuple(
            drawn_tensor(one.name, one.dtype, [1 if size is None else size for size in one.shape], seed + m)
            for one in inputs
        )
        for m in range(count)
    ]
