"""Comparison of a split PyTorch program with the whole one: both are run on the same inputs, several sets of them.

Ops run with the same kernels on tensors with the same layout in memory, so results are expected to be equal bit for
bit. Sets follow each other: what a run leaves behind in buffers shows in the next one, and is compared at the end.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.io.large_file import LargeFile, Stored
from mtpp.formats.results.split import OutputCheck, SplitCheck
from mtpp.formats.results.stage_manifest import MODEL_INPUT, Described, StageManifest
from mtpp.formats.results.stage_records import ConstantResult
from mtpp.runtime.checking.agreement import compared_output, types_between, worst_of
from mtpp.runtime.checking.draws import draw_count, explored_limits, fitting, leaning_of, spare_numbers
from mtpp.runtime.pipeline.program_file import OpenedProgram, opened
from mtpp.runtime.pytorch.flat_program import flat_program, random_steps
from mtpp.runtime.pytorch.loading import load_program
from mtpp.runtime.pytorch.tensors import as_array, as_tensor, drawn_tensor

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

    Terms are those of :func:`mtpp.runtime.checking.split_check.check_split`; *stored* is the whole program, as saved.

    Notes
    -----
    One program is in memory at a time, whole or stage, and of the tensors between stages those that are still read.
    """
    names = [output.name for output in manifest.outputs]
    whole = _Whole(stored, display, seed, names, tell)
    random = whole.random
    given = inputs or {}
    count = draw_count(manifest, given)
    expected: list[Tensors] = []
    ran: list[Tensors] = []
    notes: list[str] = []
    first: InputError | None = None
    tried = 0
    tell("running the whole program")
    numbers = range(max(count, _FEWEST))
    for number in (*numbers, *spare_numbers(manifest, given, numbers)):
        if len(ran) >= count and (len(ran) >= _FEWEST or not whole.changed()):
            break
        tried += 1
        values = _drawn(manifest, given, number, seed)
        try:
            expected.append(whole.run(values))
        except InputError as error:
            first = first or error
            if whole.changed():  # what it has written by then, nobody knows: begin anew
                whole = _Whole(stored, display, seed, names, tell)
                expected = [whole.run(one) for one in ran]
            continue
        ran.append(values)
    if first is not None and not ran:
        raise first
    if first is not None:
        notes.append(f"the whole program cannot be run on {tried - len(ran)} of {tried} sets of inputs")
    made_up, kept = whole.made_up, copies(whole.module, whole.changed())
    del whole

    def checks_of(results: list[Tensors], held: Mapping[str, Array]) -> tuple[OutputCheck, ...]:
        checks = _output_checks(manifest, expected, results, random=bool(random))
        return checks if random else (*checks, *_wrong_state(kept, held, types_between(manifest)))

    try:
        found = _run_stages(manifest, stages, ran, list(kept), seed, tell)
    except InputError as error:
        failure = f"{error.source or 'a stage'}: {error.problem}"
        return SplitCheck((), random, made_up, seed, len(ran), tuple(notes), failure)
    checks = checks_of(*found)
    if not random and not all(check.passed for check in checks):
        tell("running the whole program again")
        whole = _Whole(stored, display, seed, names, tell)
        again = [whole.run(values) for values in ran]
        if not all(check.passed for check in checks_of(again, copies(whole.module, list(kept)))):
            random = ("the program",)  # an operator that does not say that it draws
            checks = checks_of(*found)
    return SplitCheck(checks, random, made_up, seed, len(ran), tuple(notes))


class _Whole:
    """The whole program in memory.

    Attributes
    ----------
    random
        The first of its steps that draws random numbers, if any.
    made_up
        Names of weights that the file has no values of.
    """

    def __init__(self, stored: Stored, display: str, seed: int, names: list[str], tell: Callable[[str], None]) -> None:
        tell("loading the whole program")
        loaded = load_program(stored, display, seed)
        self.random = tuple(random_steps(flat_program(loaded.exported, {})))[:1]
        self.made_up = len(loaded.made_up)
        self._opened = opened(loaded.exported, display, names)
        self._state = ProgramState(self._opened.module)

    @property
    def module(self) -> Any:
        """The program as a module."""
        return self._opened.module

    def run(self, values: Tensors) -> Tensors:
        """Return the results for a set of inputs."""
        return self._opened.run(_copies(values))

    def changed(self) -> list[str]:
        """Return the names of parameters and buffers that runs have changed."""
        return self._state.changed()


def _output_checks(
    manifest: StageManifest, expected: list[Tensors], found: list[Tensors], *, random: bool
) -> tuple[OutputCheck, ...]:
    between = types_between(manifest)
    checks = []
    for output in manifest.outputs:
        pairs = [
            (values[output.name], output.value if isinstance(output, ConstantResult) else own[output.name])
            for values, own in zip(expected, found, strict=True)
        ]
        compared = [
            compared_output(output, [as_array(one)], [as_array(other)], between, random=random) for one, other in pairs
        ]
        checks.append(worst_of(compared))
    return tuple(checks)


def _drawn(manifest: StageManifest, given: Mapping[str, Array], number: int, seed: int) -> Tensors:
    """Return a set of inputs: those that are given, and random ones."""
    found: Tensors = {}
    for one in manifest.inputs:
        if one.name in given:
            found[one.name] = as_tensor(fitting(one, given[one.name]).copy())
        else:
            limits = explored_limits(one, number)
            shape, leaning = _sizes(one.shape), leaning_of(number)
            found[one.name] = drawn_tensor(one.name, one.dtype, shape, seed + number, limits, leaning)
    return found


def _wrong_state(
    whole: Mapping[str, Array], stages: Mapping[str, Array], between: Collection[str]
) -> Iterator[OutputCheck]:
    """Yield buffers and parameters that the stages have left otherwise than the whole program, or do not hold."""
    for name, array in whole.items():
        one = Described(f"buffer {name}", array.dtype.name, array.shape)
        found = [stages[name]] if name in stages else []
        check = compared_output(one, [array], found, between, random=False)
        if not check.passed:
            yield check


def _sizes(shape: tuple[int | None, ...]) -> list[int]:
    return [1 if size is None else size for size in shape]


def _copies(tensors: Mapping[str, Any]) -> Tensors:
    """Return copies: a program may write its inputs."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


class _Found(NamedTuple):
    """Results of the whole for each set of inputs, and contents of buffers at the end."""

    results: list[Tensors]
    state: dict[str, Array]


def _run_stages(
    manifest: StageManifest,
    folder: Path,
    given: list[Tensors],
    kept: list[str],
    seed: int,
    tell: Callable[[str], None],
) -> _Found:
    """Run the stages one after the other, each once for each set of inputs; *kept* are buffers to return."""
    live = [_copies(inputs) for inputs in given]
    results = [{output: inputs[input_] for output, input_ in manifest.direct} for inputs in given]
    state: dict[str, Array] = {}
    last_reader = {tensor.name: stage.index for stage in manifest.stages for tensor in stage.inputs}
    for stage in manifest.stages:
        tell(f"running {stage.file}")
        one = _open(folder / stage.file, stage, seed)
        for values, own in zip(live, results, strict=True):
            made = one.run(_copies({tensor.name: values[tensor.name] for tensor in stage.inputs}))
            own.update((tensor.name, made[tensor.name]) for tensor in stage.outputs if tensor.result)
            values.update(made)
            for name in [name for name in values if last_reader.get(name, MODEL_INPUT) <= stage.index]:
                del values[name]
        state |= copies(one.module, kept)
        del one
    return _Found(results, state)


def _open(path: Path, stage: Any, seed: int) -> OpenedProgram:
    loaded = load_program(LargeFile.at(path), path.name, seed)
    return opened(loaded.exported, path.name, [tensor.name for tensor in stage.outputs])


class ProgramState:
    """Contents of a module's parameters and buffers at one time.

    They are compared, since operators write some without saying so: a batch normalisation that trains, its statistics.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._before = dict(self._checksums())

    def changed(self) -> list[str]:
        """Return the names of tensors with other contents by now; O(bytes)."""
        return [name for name, found in self._checksums() if found != self._before[name]]

    def _checksums(self) -> Iterator[tuple[str, int]]:
        for name, tensor in _tensors(self._module):
            yield name, zlib.crc32(as_array(tensor.contiguous()).reshape(-1).view(np.uint8).data)


def copies(module: Any, names: list[str]) -> dict[str, Array]:
    """Return the contents of the tensors among *names* that a module holds."""
    held = dict(_tensors(module))
    return {name: as_array(held[name]).copy() for name in names if name in held}


def _tensors(module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield parameters and buffers, a shared one under each of its names."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)
