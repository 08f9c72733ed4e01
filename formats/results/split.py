"""Stages that a model was split into, ``mtpp-split`` version 1: their manifest, sizes of files, and a check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.formats.results.stage_manifest import Described, StageManifest

FORMAT = "mtpp-split"
VERSION = 1


@dataclass(frozen=True)
class OutputCheck:
    """One output of the model, whole against split.

    Attributes
    ----------
    identical
        Whether it is the same bit for bit.
    passed
        Whether it is the same within its tolerance.
    largest_difference
        Absolute; infinite where only one of both is finite, or the shapes differ.
    relative_difference
        The same over the largest absolute value of the output.
    finite
        Whether it has a finite value at all: what has none says nothing.
    empty
        Whether it has no elements.
    """

    name: str
    dtype: str
    identical: bool
    passed: bool
    largest_difference: float
    relative_difference: float
    finite: bool
    empty: bool = False


@dataclass(frozen=True)
class SplitCheck:
    """What a check found.

    Attributes
    ----------
    random
        What draws random numbers, nodes or else the model as a whole: then only types and shapes are compared.
    absent
        Number of weights whose data is absent; they were made up.
    inputs
        Number of sets of inputs that were compared.
    notes
        For people: what the comparison does not say.
    failure
        How a stage fails where the whole model runs; None if all run. Outputs are then not compared.
    """

    outputs: tuple[OutputCheck, ...]
    random: tuple[str, ...]
    absent: int
    seed: int
    inputs: int = 1
    notes: tuple[str, ...] = ()
    failure: str | None = None

    @property
    def passed(self) -> bool:
        """True if all stages run, and all outputs are the same within their tolerances."""
        return self.failure is None and all(output.passed for output in self.outputs)


@dataclass(frozen=True)
class WrittenStages:
    """Stages that were made of a model.

    Attributes
    ----------
    folder
        That they are in; None if they were written only to be checked.
    param_bytes
        Of each stage of the plan, empty ones included.
    file_bytes
        Size of each stage's file.
    shared_bytes
        Size of each file of weights that the stages share, by name; None where it is absent beside the model as well.
    calls_kept, calls_inlined
        Calls of local functions that are still calls, and those that were replaced by their bodies.
    check
        None if none was asked for.
    """

    folder: str | None
    manifest: StageManifest
    param_bytes: Sequence[int]
    file_bytes: Sequence[int]
    shared_bytes: Mapping[str, int | None]
    calls_kept: int
    calls_inlined: int
    check: SplitCheck | None


def stage_rows(result: WrittenStages) -> list[dict[str, Any]]:
    """Return what JSON and CSV say of stages."""
    return [
        {
            "index": stage.index,
            "file": stage.file,
            "ops": stage.ops,
            "file_bytes": size,
            "param_bytes": result.param_bytes[stage.index],
            "inputs": len(stage.inputs),
            "input_bytes": known_bytes(stage.inputs),
            "outputs": len(stage.outputs),
            "output_bytes": known_bytes(stage.outputs),
            "work": stage.work,
            "cost": stage.cost,
        }
        for stage, size in zip(result.manifest.stages, result.file_bytes, strict=True)
    ]


def known_bytes(tensors: Sequence[Described]) -> int:
    """Return the bytes of tensors whose sizes are known."""
    return sum(tensor.bytes or 0 for tensor in tensors)


def split_document(result: WrittenStages) -> dict[str, Any]:
    """Return the JSON object of a result."""
    manifest = result.manifest
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": manifest.name, "sha256": manifest.sha256, "ops": manifest.ops},
        "folder": result.folder,
        "k": manifest.k,
        "time_unit": manifest.time_unit,
        "ticks_per_unit": manifest.ticks_per_unit,
        "bottleneck": manifest.bottleneck,
        "stages": stage_rows(result),
        "shared_files": result.shared_bytes,
        "calls_kept": result.calls_kept,
        "calls_inlined": result.calls_inlined,
    }
    if result.check is not None:
        check = result.check
        document["check"] = {
            "passed": check.passed,
            "seed": check.seed,
            "inputs": check.inputs,
            "notes": list(check.notes),
            **({} if check.failure is None else {"failure": check.failure}),
            "random_nodes": list(check.random),
            "random_weights": check.absent,
            "outputs": [_check_row(output) for output in check.outputs],
        }
    return document


def _check_row(output: OutputCheck) -> dict[str, Any]:
    def finite(value: float) -> float | None:
        return value if value < float("inf") else None

    return {
        "name": output.name,
        "dtype": output.dtype,
        "passed": output.passed,
        "identical": output.identical,
        "largest_difference": finite(output.largest_difference),
        "relative_difference": finite(output.relative_difference),
    }
