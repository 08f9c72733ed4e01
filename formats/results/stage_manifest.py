"""The manifest of a folder of stages, ``mtpp-stages`` version 1: which tensors go from which stage to which.

``manifest.json`` lies in a folder beside one ONNX model, or one exported PyTorch program, per stage that runs an op::

    {"format": "mtpp-stages", "version": 1,
     "model": {"name": …, "sha256": …, "path": …, "ops": n},
     "k": 8, "time_unit": "ps", "ticks_per_unit": 1, "bottleneck": ticks, "work": ticks,
     "inputs": [{"name", "dtype", "shape", "limits", "value"}, …],                      (of the whole model)
     "outputs": [{"name", "dtype", "shape", "value"}, …],
     "stages": [{"index", "file", "ops", "cost", "work", "device", "place",
                 "inputs": [{"name", "dtype", "shape", "from"}, …],
                 "outputs": [{"name", "dtype", "shape", "to", "result"}, …]}, …],
     "direct": [{"output", "input"}, …]}

A stage's file is a plain name inside the folder. ``from`` is −1 for an input of the whole model, else the index of the
stage that makes the tensor; ``to`` lists the stages that read it, and ``result`` says that the whole model returns it.
``limits``, the least and the largest number that make sense, is there for inputs of whole numbers of which something is
known, and ``value`` for a number that decided sizes of the stages: they are for this one alone. ``outputs`` are the
model's results, as many and in order: a tensor that is returned twice stands twice, and a result that is no tensor, as
programs of PyTorch have them, has its ``value``. ``direct`` lists outputs of the whole model that are inputs of it.
Times are predictions, in ticks. ``device`` and ``place`` are there where the plan is for a machine: the device of each
stage by name, and where it runs. So is ``"one_device": {"device", "place", "cost"}``: the fastest device that holds the
whole model, null if none does. ``"imports": [name, …]`` is there where Python modules were imported that register
operators of a program; readers import none unless they are asked to.
"""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from mtpp.document_shape import Path, Rule, array, flag, nullable, record, refuse, text, whatever
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import SIZE_LIMIT, attributed, headed, module_names, shaped, shown, whole_number
from mtpp.formats.io.json_text import dump_lines, parse_json
from mtpp.formats.io.recorded_paths import located, relocated
from mtpp.formats.results.stage_records import (
    CPU,
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
    "WholeModel",
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

_PLACE = re.compile("cpu|cuda:(0|[1-9][0-9]{0,3})")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.(onnx|pt2)")


def _count(least: int = 0) -> Rule:
    def check(value: Any, path: Path) -> None:
        whole_number(value, path)
        if value < least:
            refuse(f"must be at least {least}, not {value}", path)
        if value >= SIZE_LIMIT:
            refuse("must stay below 2^62", path)

    return check


def _axis(value: Any, path: Path) -> None:
    whole_number(value, path)
    if value < 0:
        refuse(f"{value} is no size", path)


def _name(value: Any, path: Path) -> None:
    text(value, path)
    if not value:
        refuse("a tensor without a name", path)


def _file(value: Any, path: Path) -> None:
    text(value, path)
    if not _PLAIN_NAME.fullmatch(value) or ".." in value:
        problem = f"{shown(value)} is no plain name of an ONNX model or PyTorch program"
        refuse(problem, path, "split the model again")


def _place(value: Any, path: Path) -> None:
    text(value, path)
    if not _PLACE.fullmatch(value):
        refuse(f"{shown(value)} is no place", path, 'use "cpu" or "cuda:0"')


def _ascending(value: Any, path: Path) -> None:
    array(whole_number)(value, path)
    if sorted(set(value)) != value:
        refuse("must list each stage once, in order", path)


_TENSOR: dict[str, Rule] = {"name": _name, "dtype": text, "shape": array(nullable(_axis))}
_INPUT = record(_TENSOR, {"limits": whatever, "value": whole_number})
_RESULT = record(_TENSOR, {"value": whatever})


def _model_input(value: Any, path: Path) -> None:
    _INPUT(value, path)
    if "value" in value:
        if value["shape"] or not -SIZE_LIMIT < value["value"] < SIZE_LIMIT:
            refuse("must be a number without axes, below 2^62", (*path, "value"))
    elif "limits" in value:
        limits, place = value["limits"], (*path, "limits")
        array(whole_number)(limits, place)
        if len(limits) != 2 or not -SIZE_LIMIT < limits[0] <= limits[1] < SIZE_LIMIT:
            refuse("must be the least and the largest number", place)


def _result(value: Any, path: Path) -> None:
    _RESULT(value, path)
    if "value" in value:
        try:
            _constant(value["dtype"], value["value"])
        except ValueError:
            refuse(f"{shown(value['value'])} is no {value['dtype']}", (*path, "value"))
        if value["shape"]:
            refuse("a value has no axes", (*path, "shape"))


def _constant(dtype: str, value: Any) -> Constant:
    """Return a value as Python has it; raise ValueError if it is of another type."""
    read: Any = _CONSTANTS.get(dtype, ())
    if not isinstance(value, read) or (isinstance(value, bool) and dtype != "bool"):
        raise ValueError
    return float(value) if dtype == "float" else value


_STAGE = record(
    {
        "index": _count(),
        "file": _file,
        "ops": _count(1),
        "cost": _count(),
        "work": _count(),
        "inputs": array(record({**_TENSOR, "from": _count(MODEL_INPUT)})),
        "outputs": array(record({**_TENSOR, "to": _ascending, "result": flag})),
    },
    {"device": text, "place": _place},
)
_MANIFEST = headed(
    FORMAT,
    VERSION,
    {
        "model": record({"name": text, "sha256": text, "ops": _count(1)}, {"path": text}),
        "k": _count(1),
        "time_unit": text,
        "ticks_per_unit": _count(1),
        "bottleneck": _count(),
        "work": _count(),
        "inputs": array(_model_input),
        "outputs": array(_result),
        "stages": array(_STAGE),
        "direct": array(record({"output": text, "input": text})),
    },
    {"imports": module_names, "one_device": nullable(record({"device": text, "place": _place, "cost": _count()}))},
)


class WholeModel(NamedTuple):
    """The whole model on one device, in ticks, with the name of the device and where it runs."""

    device: str
    place: str
    cost: int


@dataclass(frozen=True)
class StageManifest:
    """A folder of stages.

    Attributes
    ----------
    name, sha256, ops, path
        Of the model that was split; the path of its file is None where it has none.
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
    one_device
        The fastest device of a machine that holds the whole model; None if none does, or there is no machine.
    imports
        Python modules that register operators of the program.
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
    one_device: WholeModel | None = None
    path: str | None = None
    imports: tuple[str, ...] = ()

    @property
    def on_machine(self) -> bool:
        """Whether stages stand on devices that have names."""
        return any(stage.device for stage in self.stages)

    @property
    def whole_ticks(self) -> int | None:
        """Ticks of the whole model in one stage: on the fastest device that holds it, where there are several."""
        if not self.on_machine:
            return self.work
        return None if self.one_device is None else self.one_device.cost

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
            "model": {
                "name": self.name,
                "sha256": self.sha256,
                **({} if self.path is None else {"path": self.path}),
                "ops": self.ops,
            },
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
                    **({"device": stage.device, "place": stage.place} if stage.device else {}),
                    "inputs": [{**_row(tensor), "from": tensor.source} for tensor in stage.inputs],
                    "outputs": [
                        {**_row(tensor), "to": list(tensor.readers), "result": tensor.result}
                        for tensor in stage.outputs
                    ],
                }
                for stage in self.stages
            ],
            "direct": [{"output": output, "input": input_} for output, input_ in self.direct],
            **({"imports": list(self.imports)} if self.imports else {}),
            **({"one_device": self.one_device and self.one_device._asdict()} if self.on_machine else {}),
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


def manifest_text(manifest: StageManifest, folder: str | pathlib.Path | None = None) -> str:
    """Return the text of ``manifest.json``, one line per key and stage; the model's path is seen from its folder."""
    document = manifest.to_document()
    if folder is not None:
        document = relocated(document, pathlib.Path(folder) / FILE_NAME)
    return dump_lines(document, ("inputs", "outputs", "stages", "direct")) + "\n"


def read_manifest(folder: str | pathlib.Path) -> StageManifest:
    """Read and check the manifest of a folder of stages; the models themselves are not looked at.

    Raises
    ------
    InputError
        If there is no such folder or no manifest in it, the document is malformed, a file's name is no plain one, a
        file is missing, or the tensors that stages read are not those that the others hand on.
    """
    from mtpp.formats.io.source import read_source

    path = pathlib.Path(folder) / FILE_NAME
    if not path.is_file():
        trains = path.with_name("schedule.csv").is_file()
        raise InputError(
            f"no {FILE_NAME} in it" if pathlib.Path(folder).is_dir() else "no such folder",
            source=str(folder),
            remedy="train this plan with ‹engine› torch" if trains else "give a folder that `mtpp split` wrote",
        )
    source = read_source(str(path), max_bytes=MOST_BYTES)
    manifest = manifest_of(parse_json(source.data, source.display), source.display)
    manifest = replace(manifest, path=located({"model": {"path": manifest.path}}, path)["model"]["path"])
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
        shaped(_MANIFEST, document)
        for i, row in enumerate(document["stages"]):
            if row["index"] >= document["k"]:
                problem = f"stages are 0 … {document['k'] - 1}, not {row['index']}"
                raise InputError(problem, where=f"/stages/{i}/index")
        manifest = StageManifest(
            **document["model"],
            **{key: document[key] for key in ("k", "time_unit", "ticks_per_unit", "bottleneck", "work")},
            inputs=tuple(map(_input_of, document["inputs"])),
            outputs=tuple(map(_result_of, document["outputs"])),
            stages=tuple(map(_stage_of, document["stages"])),
            direct=tuple((row["output"], row["input"]) for row in document["direct"]),
            one_device=WholeModel(**document["one_device"]) if document.get("one_device") else None,
            imports=tuple(document.get("imports", ())),
        )
        check_wiring(manifest.inputs, manifest.outputs, manifest.stages, manifest.direct)
        return manifest


def _described(row: Mapping[str, Any]) -> tuple[str, str, tuple[int | None, ...]]:
    return row["name"], row["dtype"], tuple(row["shape"])


def _input_of(row: Mapping[str, Any]) -> Described:
    number = row.get("value")
    limits = row.get("limits") if number is None else (number, number)
    return Described(*_described(row), limits=None if limits is None else tuple(limits), fixed=number)


def _result_of(row: Mapping[str, Any]) -> Described:
    if "value" not in row:
        return Described(*_described(row))
    return ConstantResult.of(row["name"], _constant(row["dtype"], row["value"]))


def _stage_of(row: Mapping[str, Any]) -> Stage:
    return Stage(
        **{key: row[key] for key in ("index", "file", "ops", "cost", "work")},
        inputs=tuple(StageInput(*_described(one), one["from"]) for one in row["inputs"]),
        outputs=tuple(StageOutput(*_described(one), tuple(one["to"]), one["result"]) for one in row["outputs"]),
        device=row.get("device", ""),
        place=row.get("place", CPU),
    )
