"""Comparison of a split PyTorch program with the whole one: both are run on the same random inputs.

Ops run with the same kernels on tensors with the same layout in memory, so results are expected to be equal bit for
bit. A program that writes buffers is run twice, so that what the first run leaves behind shows in the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.formats.io.large_file import LargeFile, Stored
from mtpp.formats.results.stage_manifest import MODEL_INPUT, StageManifest
from mtpp.formats.results.stage_records import ConstantResult
from mtpp.runtime.checking.output_check import SplitCheck, compared_output
from mtpp.runtime.checking.tolerances import types_between
from mtpp.runtime.pipeline.program_file import OpenedProgram, opened
from mtpp.runtime.pytorch.flat_program import flat_program
from mtpp.runtime.pytorch.loading import load_program
from mtpp.runtime.pytorch.randomness import random_steps
from mtpp.runtime.pytorch.stage_modules import is_mutable
from mtpp.runtime.pytorch.tensors import as_array, drawn_tensor

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]


def check_split_program(
    stored: Stored,
    manifest: StageManifest,
    stages: Path,
    *,
    display: str,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> SplitCheck:
    """Run a program whole and split on random inputs and compare the outputs.

    Parameters
    ----------
    stored
        The whole program, as saved.
    stages
        The folder of the stages.
    display
        What messages call the program.
    tell
        Is told what is being run.

    Raises
    ------
    InputError
        If PyTorch is not installed, cannot load or run one of the programs, or the program draws random numbers.

    Notes
    -----
    One program is in memory at a time, whole or stage, and of the tensors between stages those that are still read.
    """
    tell("loading the whole program")
    loaded = load_program(stored, display, seed)
    flat = flat_program(loaded.exported, {})
    random = next(random_steps(flat), None)
    if random is not None:
        raise InputError(
            f"it draws random numbers, in {random!r} first: whole and split cannot be compared",
            source=display,
            remedy="export it in eval mode: module.eval()",
        )
    rounds = 2 if any(is_mutable(step.node) for step in flat.steps) else 1
    del flat
    given = [
        {
            one.name: drawn_tensor(one.name, one.dtype, _sizes(one.shape), seed + i, one.limits)
            for one in manifest.inputs
        }
        for i in range(rounds)
    ]
    whole = opened(loaded.exported, display, [output.name for output in manifest.outputs])
    tell("running the whole program")
    expected = [whole.run(_copies(inputs)) for inputs in given]
    made_up = len(loaded.made_up)
    del loaded, whole
    found = _run_stages(manifest, stages, given, seed, tell)
    between = types_between(manifest)
    checks = []
    for output in manifest.outputs:
        whole_values = [as_array(values[output.name]) for values in expected]
        if isinstance(output, ConstantResult):
            own = [as_array(output.value)] * rounds
        else:
            own = [as_array(values[output.name]) for values in found]
        checks.append(compared_output(output, whole_values, own, between, random=False))
    return SplitCheck(tuple(checks), (), made_up, seed)


def _sizes(shape: tuple[int | None, ...]) -> list[int]:
    return [1 if size is None else size for size in shape]


def _copies(tensors: Mapping[str, Any]) -> Tensors:
    """Return copies: a program may write its inputs."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _run_stages(
    manifest: StageManifest, folder: Path, given: list[Tensors], seed: int, tell: Callable[[str], None]
) -> list[Tensors]:
    """Run the stages one after the other, each once for each set of inputs; return the results of the whole."""
    live = [_copies(inputs) for inputs in given]
    results = [{output: inputs[input_] for output, input_ in manifest.direct} for inputs in given]
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
        del one
    return results


def _open(path: Path, stage: Any, seed: int) -> OpenedProgram:
    loaded = load_program(LargeFile.at(path), path.name, seed)
    return opened(loaded.exported, path.name, [tensor.name for tensor in stage.outputs])
