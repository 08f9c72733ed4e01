"""The wiring of stages: each tensor is made before it is read, by the stage that the manifest names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import shown
from mtpp.formats.results.stage_records import (
    MODEL_INPUT,
    ConstantResult,
    Described,
    Stage,
    StageInput,
    StageOutput,
)


def check_wiring(
    inputs: tuple[Described, ...],
    outputs: tuple[Described, ...],
    stages: Sequence[Stage],
    direct: Sequence[tuple[str, str]],
) -> None:
    """Check that everything read is made before, by whom it says, and that every result is made once.

    Parameters
    ----------
    inputs, outputs, direct
        Those of the whole model, as in a :class:`~mtpp.formats.results.stage_manifest.StageManifest`.
    """
    given = _by_name(inputs, "/inputs")
    results = _results(outputs)
    made: dict[tuple[int, str], tuple[StageOutput, str]] = {}
    returned: dict[str, str] = {}
    files: set[str] = set()
    last = -1
    for i, stage in enumerate(stages):
        where = f"/stages/{i}"
        if stage.index <= last:
            raise InputError("the stages must stand in the order of their indices", where=f"{where}/index")
        if stage.file.lower() in files:
            raise InputError(f"two stages are in {stage.file!r}", where=f"{where}/file")
        last = stage.index
        files.add(stage.file.lower())
        _by_name(stage.inputs, f"{where}/inputs")
        _by_name(stage.outputs, f"{where}/outputs")
        for j, tensor in enumerate(stage.inputs):
            _check_input(tensor, stage.index, given, made, f"{where}/inputs/{j}")
        for j, output in enumerate(stage.outputs):
            made[stage.index, output.name] = output, f"{where}/outputs/{j}"
            if output.result:
                _check_result(output, results, returned, f"{where}/outputs/{j}/result")
    read = {(tensor.source, tensor.name, stage.index) for stage in stages for tensor in stage.inputs}
    for (index, name), (output, where) in made.items():
        for j, reader in enumerate(output.readers):
            if (index, name, reader) not in read:
                raise InputError(f"stage {reader} does not read {shown(name)}", where=f"{where}/to/{j}")
    for i, (output_name, input_name) in enumerate(direct):
        if input_name not in given:
            raise InputError(f"the model has no input {shown(input_name)}", where=f"/direct/{i}/input")
        if output_name in returned or output_name not in results:
            raise InputError(f"{shown(output_name)} is no output left to make", where=f"/direct/{i}/output")
        returned[output_name] = ""
    for i, result in enumerate(outputs):
        if result.name not in returned and not isinstance(result, ConstantResult):
            raise InputError(f"no stage makes {shown(result.name)}", where=f"/outputs/{i}")


def _results(outputs: tuple[Described, ...]) -> dict[str, Described]:
    """Return the tensors that the model returns by name; one may stand several times, a constant's name not."""
    found: dict[str, Described] = {}
    for i, result in enumerate(outputs):
        if result != found.setdefault(result.name, result):
            raise InputError(f"{shown(result.name)} is two different results", where=f"/outputs/{i}/name")
    return {name: result for name, result in found.items() if not isinstance(result, ConstantResult)}


def _by_name(tensors: tuple[Described, ...], where: str) -> dict[str, Described]:
    found: dict[str, Described] = {}
    for i, tensor in enumerate(tensors):
        if tensor.name in found:
            raise InputError(f"tensor {shown(tensor.name)} is listed twice", where=f"{where}/{i}/name")
        found[tensor.name] = tensor
    return found


def _check_input(
    tensor: StageInput,
    reader: int,
    inputs: Mapping[str, Described],
    made: Mapping[tuple[int, str], tuple[StageOutput, str]],
    where: str,
) -> None:
    maker: Described | None = None
    if tensor.source == MODEL_INPUT:
        maker = inputs.get(tensor.name)
    elif (tensor.source, tensor.name) in made:
        output, _ = made[tensor.source, tensor.name]
        maker = output if reader in output.readers else None
    if maker is None:
        origin = "the model has no such input" if tensor.source == MODEL_INPUT else "that stage does not hand it on"
        raise InputError(f"{shown(tensor.name)}: {origin}", where=f"{where}/from")
    if (maker.dtype, maker.shape) != (tensor.dtype, tensor.shape):
        raise InputError(f"{shown(tensor.name)} has another type where it comes from", where=where)


def _check_result(output: StageOutput, results: Mapping[str, Described], returned: dict[str, str], where: str) -> None:
    if output.name not in results:
        raise InputError(f"the model has no output {shown(output.name)}", where=where)
    if output.name in returned:
        raise InputError(f"{shown(output.name)} is made twice", where=where, remedy=f"see {returned[output.name]}")
    result = results[output.name]
    if (result.dtype, result.shape) != (output.dtype, output.shape):
        raise InputError(f"{shown(output.name)} has another type among the model's outputs", where=where)
    returned[output.name] = where
