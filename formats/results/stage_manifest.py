"""The manifest of a folder of stages, ``mtpp-stages`` version 1: which tensors go from which stage to which.

``manifest.json`` lies in a folder beside one ONNX model, or one exported PyTorch program, per stage that runs an op::

    {"format": "mtpp-stages", "version": 1,
     "model": {"name": …, "sha256": …, "ops": n},
     "k": 8, "time_unit": "ps", "ticks_per_unit": 1, "bottleneck": ticks, "work": ticks,
     "inputs": [{"name", "dtype", "shape", "limits", "value"}, …],                      (of the whole model)
     "outputs": [{"name", "dtype", "shape", "value"}, …],
     "stages": [{"index", "file", "ops", "cost", "work",
                 "inputs": [{"name", "dtype", "shape", "from"}, …],
                 "outputs": [{"name", "dtype", "shape", "to", "result"}, …]}, …],
     "direct": [{"output", "input"}, …]}

A stage's file is a plain name inside the folder. ``from`` is −1 for an input of the whole model, else the index of the
stage that makes the tensor; ``to`` lists the stages that read it, and ``result`` says that the whole model returns it.
``limits``, the least and the largest number that make sense, is there for inputs of whole numbers of which something is
known, and ``value`` for a number that decided sizes of the stages: they are for this one alone. ``outputs`` are the
model's results, as many and in order: a tensor that is returned twice stands twice, and a result that is no tensor, as
programs of PyTorch have them, has its ``value``. ``direct`` lists outputs of the whole model that are inputs of it.
Times are predictions, in ticks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import (
    SIZE_LIMIT,
    attributed,
    check_header,
    check_keys,
    kind_of,
    require_list,
    require_object,
    require_text,
    require_whole,
    shown,
)
from mtpp.formats.io.json_text import dump_lines, parse_json
from mtpp.formats.results.stage_records import (
    MODEL_INPUT,
    TEXT,
    Constant,
    ConstantResult,
    Described,
    Stage,
    StageInput,
    StageOutput,
    tensors_of,
)
from mtpp.formats.results.stage_wiring import check_wiring

__all__ = [
    "FILE_NAME",
    "MODEL_INPUT",
    "OURS",
    "TEXT",
    "Described",
    "Stage",
    "StageInput",
    "StageManifest",
    "StageOutput",
    "manifest_of",
    "manifest_text",
    "read_manifest",
]

FORMAT = "mtpp-stages"
VERSION = 1
FILE_NAME = "manifest.json"
MOST_BYTES = 1 << 30
OURS = re.compile(rf"{re.escape(FILE_NAME)}|stage-\d+\.(onnx|pt2)|weights-\d+\.bin")
"""Names of the files of a folder of stages."""

_CONSTANTS: dict[str, tuple[type, ...]] = {
    "none": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float, Fraction, str),
    "str": (str,),
}
"""Types of a result that is no tensor, as JSON has them."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.(onnx|pt2)")


@dataclass(frozen=True)
class StageManifest:
    """A folder of stages.

    Attributes
    ----------
    name, sha256, ops
        Of the model that was split.
    k
        Number of stages of the plan, empty ones included.
    time_unit, ticks_per_unit
        Of the times in the file.
    bottleneck, work
        Predicted cost of the slowest stage, and the sum of all work, in ticks.
    inputs, outputs
        Of the whole model; outputs are all its results, in order.
    stages
        Those that run an op, in the order of the pipeline.
    direct
        (output, input) of the whole model that are one tensor.
    """

    name: str
    sha256: str
    ops: int
    k: int
    time_unit: str
    ticks_per_unit: int
    bottleneck: int
    work: int
    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]
    stages: tuple[Stage, ...]
    direct: tuple[tuple[str, str], ...]

    @property
    def tensors_out(self) -> tuple[Described, ...]:
        """Tensors that the whole model returns, each once."""
        return tensors_of(self.outputs)

    @property
    def inputs_read(self) -> frozenset[str]:
        """Inputs of the whole model that a stage reads or that are its results."""
        read = {tensor.name for stage in self.stages for tensor in stage.inputs if tensor.source == MODEL_INPUT}
        return frozenset(read.union(input_ for _, input_ in self.direct))

    def to_document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": {"name": self.name, "sha256": self.sha256, "ops": self.ops},
            "k": self.k,
            "time_unit": self.time_unit,
            "ticks_per_unit": self.ticks_per_unit,
            "bottleneck": self.bottleneck,
            "work": self.work,
            "inputs": [_input_row(tensor) for tensor in self.inputs],
            "outputs": [_result_row(result) for result in self.outputs],
            "stages": [
                {
                    "index": stage.index,
                    "file": stage.file,
                    "ops": stage.ops,
                    "cost": stage.cost,
                    "work": stage.work,
                    "inputs": [{**_row(tensor), "from": tensor.source} for tensor in stage.inputs],
                    "outputs": [
                        {**_row(tensor), "to": list(tensor.readers), "result": tensor.result}
                        for tensor in stage.outputs
                    ],
                }
                for stage in self.stages
            ],
            "direct": [{"output": output, "input": input_} for output, input_ in self.direct],
        }


def _row(tensor: Described) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)}


def _input_row(tensor: Described) -> dict[str, Any]:
    if tensor.fixed is not None:
        return {**_row(tensor), "value": tensor.fixed}
    return _row(tensor) | ({} if tensor.limits is None else {"limits": list(tensor.limits)})


def _result_row(result: Described) -> dict[str, Any]:
    return _row(result) | ({"value": _written(result.value)} if isinstance(result, ConstantResult) else {})


def _written(value: Constant) -> Constant:
    """Return a value as JSON has it: numbers that are not finite, and zero below zero, become texts."""
    plain = not isinstance(value, float) or (math.isfinite(value) and (value or math.copysign(1, value) > 0))
    return value if plain else repr(value)


def manifest_text(manifest: StageManifest) -> str:
    """Return the text of ``manifest.json``: one line per key and stage."""
    return dump_lines(manifest.to_document(), ("inputs", "outputs", "stages", "direct")) + "\n"


def read_manifest(folder: str | Path) -> StageManifest:
    """Read and check the manifest of a folder of stages; the models themselves are not looked at.

    Raises
    ------
    InputError
        If there is no such folder or no manifest in it, the document is malformed, a file's name is no plain one, a
        file is missing, or the tensors that stages read are not those that the others hand on.
    """
    from mtpp.formats.io.source import read_source

    path = Path(folder) / FILE_NAME
    if not path.is_file():
        trains = path.with_name("schedule.csv").is_file()
        raise InputError(
            f"no {FILE_NAME} in it" if Path(folder).is_dir() else "no such folder",
            source=str(folder),
            remedy="train this plan with ‹engine› torch" if trains else "give a folder that `mtpp split` wrote",
        )
    source = read_source(str(path), max_bytes=MOST_BYTES)
    manifest = manifest_of(parse_json(source.data, source.display), source.display)
    for i, stage in enumerate(manifest.stages):
        file = path.with_name(stage.file)
        if file.is_symlink() or not file.is_file():
            raise InputError(
                f"there is no file {stage.file!r} beside it",
                source=source.display,
                where=f"/stages/{i}/file",
                remedy="split the model again",
            )
    return manifest


def manifest_of(document: Any, source: str) -> StageManifest:
    """Return a parsed document as a manifest, checked as :func:`read_manifest` says, the files aside."""
    with attributed(source):
        header = check_header(document, FORMAT, VERSION)
        keys = ("model", "k", "time_unit", "ticks_per_unit", "bottleneck", "work", "inputs", "outputs", "stages")
        check_keys(header, "", ("format", "version", *keys, "direct"))
        model = require_object(header["model"], "/model")
        check_keys(model, "/model", ("name", "sha256", "ops"))
        k = _count(header, "k", "", least=1)
        manifest = StageManifest(
            name=require_text(model["name"], "/model/name"),
            sha256=require_text(model["sha256"], "/model/sha256"),
            ops=_count(model, "ops", "/model", least=1),
            k=k,
            time_unit=require_text(header["time_unit"], "/time_unit"),
            ticks_per_unit=_count(header, "ticks_per_unit", "", least=1),
            bottleneck=_count(header, "bottleneck", ""),
            work=_count(header, "work", ""),
            inputs=tuple(_model_input(row, f"/inputs/{i}") for i, row in _rows(header, "inputs", "")),
            outputs=tuple(_result(row, f"/outputs/{i}") for i, row in _rows(header, "outputs", "")),
            stages=tuple(_stage(row, f"/stages/{i}", k) for i, row in _rows(header, "stages", "")),
            direct=tuple(_direct(row, f"/direct/{i}") for i, row in _rows(header, "direct", "")),
        )
        check_wiring(manifest.inputs, manifest.outputs, manifest.stages, manifest.direct)
        return manifest


def _rows(row: Mapping[str, Any], key: str, where: str) -> list[tuple[int, Any]]:
    return list(enumerate(require_list(row[key], f"{where}/{key}")))


def _count(row: Mapping[str, Any], key: str, where: str, least: int = 0) -> int:
    value = require_whole(row[key], f"{where}/{key}")
    if value < least:
        raise InputError(f"must be at least {least}, not {value}", where=f"{where}/{key}")
    if value >= SIZE_LIMIT:
        raise InputError("must stay below 2^62", where=f"{where}/{key}")
    return value


def _model_input(row: Any, where: str) -> Described:
    tensor = _described(row, where, optional=("limits", "value"))
    if "value" in row:
        number = require_whole(row["value"], f"{where}/value")
        if tensor.shape or not -SIZE_LIMIT < number < SIZE_LIMIT:
            raise InputError("must be a number without axes, below 2^62", where=f"{where}/value")
        return replace(tensor, limits=(number, number), fixed=number)
    if "limits" not in row:
        return tensor
    limits = tuple(require_whole(one, f"{where}/limits/{i}") for i, one in _rows(row, "limits", where))
    if len(limits) != 2 or not -SIZE_LIMIT < limits[0] <= limits[1] < SIZE_LIMIT:
        raise InputError("must be the least and the largest number", where=f"{where}/limits")
    return replace(tensor, limits=limits)


def _result(row: Any, where: str) -> Described:
    result = _described(row, where, optional=("value",))
    if "value" not in row:
        return result
    try:
        value = _constant(result.dtype, row["value"])
    except ValueError:
        raise InputError(f"{shown(row['value'])} is no {result.dtype}", where=f"{where}/value") from None
    if result.shape:
        raise InputError("a value has no axes", where=f"{where}/shape")
    return ConstantResult.of(result.name, value)


def _constant(dtype: str, value: Any) -> Constant:
    """Return a value as Python has it; raise ValueError if it is of another type."""
    read: Any = _CONSTANTS.get(dtype, ())
    if not isinstance(value, read) or (isinstance(value, bool) and dtype != "bool"):
        raise ValueError
    return float(value) if dtype == "float" else value


def _described(row: Any, where: str, *more: str, optional: tuple[str, ...] = ()) -> Described:
    row = require_object(row, where)
    check_keys(row, where, ("name", "dtype", "shape", *more), optional)
    shape = []
    for axis, size in _rows(row, "shape", where):
        if size is not None and require_whole(size, f"{where}/shape/{axis}") < 0:
            raise InputError(f"{size} is no size", where=f"{where}/shape/{axis}")
        shape.append(size)
    name = require_text(row["name"], f"{where}/name")
    if not name:
        raise InputError("a tensor without a name", where=f"{where}/name")
    return Described(name, require_text(row["dtype"], f"{where}/dtype"), tuple(shape))


def _stage(row: Any, where: str, k: int) -> Stage:
    row = require_object(row, where)
    check_keys(row, where, ("index", "file", "ops", "cost", "work", "inputs", "outputs"))
    file = require_text(row["file"], f"{where}/file")
    if not _PLAIN_NAME.fullmatch(file) or ".." in file:
        raise InputError(
            f"{shown(file)} is no plain name of an ONNX model or PyTorch program",
            where=f"{where}/file",
            remedy="split the model again",
        )
    index = _count(row, "index", where)
    if index >= k:
        raise InputError(f"stages are 0 … {k - 1}, not {index}", where=f"{where}/index")
    return Stage(
        index=index,
        file=file,
        ops=_count(row, "ops", where, least=1),
        cost=_count(row, "cost", where),
        work=_count(row, "work", where),
        inputs=tuple(_input(tensor, f"{where}/inputs/{i}") for i, tensor in _rows(row, "inputs", where)),
        outputs=tuple(_output(tensor, f"{where}/outputs/{i}") for i, tensor in _rows(row, "outputs", where)),
    )


def _input(row: Any, where: str) -> StageInput:
    tensor = _described(row, where, "from")
    return StageInput(tensor.name, tensor.dtype, tensor.shape, _count(row, "from", where, least=MODEL_INPUT))


def _output(row: Any, where: str) -> StageOutput:
    tensor = _described(row, where, "to", "result")
    readers = [require_whole(index, f"{where}/to/{i}") for i, index in _rows(row, "to", where)]
    if sorted(set(readers)) != readers:
        raise InputError("must list each stage once, in order", where=f"{where}/to")
    if not isinstance(row["result"], bool):
        raise InputError(f"must be true or false, not {kind_of(row['result'])}", where=f"{where}/result")
    return StageOutput(tensor.name, tensor.dtype, tensor.shape, tuple(readers), row["result"])


def _direct(row: Any, where: str) -> tuple[str, str]:
    row = require_object(row, where)
    check_keys(row, where, ("output", "input"))
    return require_text(row["output"], f"{where}/output"), require_text(row["input"], f"{where}/input")
