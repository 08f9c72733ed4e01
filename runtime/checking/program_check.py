"""Comparison of a split PyTorch program with the whole one: both are run on the same inputs, several sets of them.

Ops run with the same kernels on tensors with the same layout in memory, so results are expected to be equal bit for
bit. Sets follow each other: what a run leaves behind in buffers shows in the next one, and is compared at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.errors import InputError
from mtpp.formats.io.large_file import LargeFile, Stored
from mtpp.formats.results.stage_manifest import MODEL_INPUT, Described, StageManifest
from mtpp.formats.results.stage_records import ConstantResult
from mtpp.runtime.checking.draws import draw_count, explored_limits, fitting, leaning_of, spare_numbers
from mtpp.runtime.checking.output_check import OutputCheck, SplitCheck, compared_output, worst_of
from mtpp.runtime.checking.tolerances import types_between
from mtpp.runtime.pipeline.program_file import OpenedProgram, opened
from mtpp.runtime.pytorch.flat_program import flat_program
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.loading import load_program
from mtpp.runtime.pytorch.node_kinds import is_mutable
from mtpp.runtime.pytorch.randomness import random_steps
from mtpp.runtime.pytorch.tensors import as_array, drawn_tensor
from mtpp.runtime.random_values import Array

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

_FEWEST = 2
"""Sets for a program that writes buffers: what the first one leaves has to show."""


def check_split_program(
    stored: Stored,
    manifest: StageManifest,
    stages: Path,
    *,
    display: str,
    seed: int = 0,
    inputs: Mapping[str, Array] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> SplitCheck:
    """Run a program whole and split on the same inputs and compare the outputs, and the buffers at the end.

    Parameters
    ----------
    stored
        The whole program, as saved.
    stages
        The folder of the stages.
    display
        What messages call the program.
    inputs
        Contents of inputs by name; others are random.
    tell
        Is told what is being run.

    Raises
    ------
    InputError
        If PyTorch is not installed, or cannot load or run one of the programs.

    Notes
    -----
    One program is in memory at a time, whole or stage, and of the tensors between stages those that are still read.
    """
    tell("loading the whole program")
    loaded = load_program(stored, display, seed)
    flat = flat_program(loaded.exported, {})
    random = tuple(random_steps(flat))[:1]
    keeps = any(is_mutable(step.node) for step in flat.steps)
    del flat
    given = inputs or {}
    count = max(draw_count(manifest, given), _FEWEST if keeps else 1)
    whole = opened(loaded.exported, display, [output.name for output in manifest.outputs])
    tell("running the whole program")
    expected: list[Tensors] = []
    ran: list[Tensors] = []
    notes: list[str] = []
    first: InputError | None = None
    tried = 0
    for number in (*range(count), *spare_numbers(manifest, given, range(count))):
        if len(ran) == count:
            break
        tried += 1
        values = _drawn(manifest, given, number, seed)
        try:
            expected.append(whole.run(_copies(values)))
        except InputError as error:
            first = first or error
            if keeps:  # what it has written by then, nobody knows: begin anew
                loaded = load_program(stored, display, seed)
                whole = opened(loaded.exported, display, [output.name for output in manifest.outputs])
                expected = [whole.run(_copies(values)) for values in ran]
            continue
        ran.append(values)
    if first is not None and not ran:
        raise first
    if first is not None:
        notes.append(f"the whole program cannot be run on {tried - len(ran)} of {tried} sets of inputs")
    made_up, kept = len(loaded.made_up), _buffers(whole)
    del loaded, whole
    try:
        found = _run_stages(manifest, stages, ran, seed, tell)
    except InputError as error:
        failure = f"{error.source or 'a stage'}: {error.problem}"
        return SplitCheck((), random, made_up, seed, len(ran), tuple(notes), failure)
    between = types_between(manifest)
    checks = []
    for output in manifest.outputs:
        pairs = [
            (values[output.name], output.value if isinstance(output, ConstantResult) else own[output.name])
            for values, own in zip(expected, found.results, strict=True)
        ]
        checks.append(
            worst_of(
                [
                    compared_output(output, [as_array(one)], [as_array(other)], between, random=bool(random))
                    for one, other in pairs
                ]
            )
        )
    if not random:
        checks += _wrong_buffers(kept, found.buffers, between)
    return SplitCheck(tuple(checks), random, made_up, seed, len(ran), tuple(notes))


def _drawn(manifest: StageManifest, given: Mapping[str, Array], number: int, seed: int) -> Tensors:
    """Return a set of inputs: those that are given, and random ones."""
    found: Tensors = {}
    for one in manifest.inputs:
        if one.name in given:
            found[one.name] = pytorch().from_numpy(fitting(one, given[one.name]).copy())
        else:
            limits = explored_limits(one, number)
            shape, leaning = _sizes(one.shape), leaning_of(number)
            found[one.name] = drawn_tensor(one.name, one.dtype, shape, seed + number, limits, leaning)
    return found


def _buffers(program: OpenedProgram) -> dict[str, Array]:
    return {name: as_array(value).copy() for name, value in program.module.named_buffers(remove_duplicate=False)}


def _wrong_buffers(
    whole: Mapping[str, Array], stages: Mapping[str, Array], between: Collection[str]
) -> Iterator[OutputCheck]:
    """Yield buffers that the stages have left otherwise than the whole program."""
    for name in whole.keys() & stages.keys():
        buffer = Described(f"buffer {name}", whole[name].dtype.name, whole[name].shape)
        check = compared_output(buffer, [whole[name]], [stages[name]], between, random=False)
        if not check.passed:
            yield check


def _sizes(shape: tuple[int | None, ...]) -> list[int]:
    return [1 if size is None else size for size in shape]


def _copies(tensors: Mapping[str, Any]) -> Tensors:
    """Return copies: a program may write its inputs."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


class _Found(NamedTuple):
    """Results of the whole for each set of inputs, and the buffers at the end."""

    results: list[Tensors]
    buffers: dict[str, Array]


def _run_stages(
    manifest: StageManifest, folder: Path, given: list[Tensors], seed: int, tell: Callable[[str], None]
) -> _Found:
    """Run the stages one after the other, each once for each set of inputs."""
    live = [_copies(inputs) for inputs in given]
    results = [{output: inputs[input_] for output, input_ in manifest.direct} for inputs in given]
    buffers: dict[str, Array] = {}
    last_reader = {tensor.name: stage.index for stage in manifest.stages for tensor in stage.inputs}
    for stage in manifest.stages:
        tell(f"running {stage.file}")
        one = _open(folder / stage.file, stage, seed)
        for values, kept in zip(live, results, strict=True):
            made = one.run(_copies({tensor.name: values[tensor.name] for tensor in stage.inputs}))
            kept.update((tensor.name, made[tensor.name]) for tensor in stage.outputs if tensor.result)
            values.update(made)
            for name in [name for name in values if last_reader.get(name, MODEL_INPUT) <= stage.index]:
                del values[name]
        buffers |= _buffers(one)
        del one
    return _Found(results, buffers)


def _open(path: Path, stage: Any, seed: int) -> OpenedProgram:
    loaded = load_program(LargeFile.at(path), path.name, seed)
    return opened(loaded.exported, path.name, [tensor.name for tensor in stage.outputs])
