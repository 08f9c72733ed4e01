"""Plans brought together with the models that they are about: ONNX models and exported PyTorch programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.model import MAX_INPUT_BYTES, Model
from mtpp.errors import InputError
from mtpp.formats.modelled.size_terms import SizeTerms, named_sizes

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.options.splitting import Planned
    from mtpp.formats.io.source import Source
    from mtpp.formats.onnx.reader import Reading
    from mtpp.formats.torch_export import ProgramReading
    from mtpp.inference.partition import Partition
    from mtpp.machine.device import Device

_HIGHEST_BANDWIDTH = 10**18


@dataclass(frozen=True)
class StagePlan:
    """A partition of a model and what it is predicted to cost, in ticks.

    Attributes
    ----------
    labels
        Stage of each op, 0 … k − 1.
    costs, works, param_bytes
        Of each stage; work is cost without transfers.
    devices
        Name and place of each stage's device; None where the plan is not for a machine.
    one_device
        Name and place of the fastest device that holds the whole model, and the ticks that it takes; None where there
        is none, or the plan does not say.
    """

    labels: list[int]
    k: int
    time_unit: str
    ticks_per_unit: int
    bottleneck: int
    costs: list[int]
    works: list[int]
    param_bytes: list[int]
    devices: list[tuple[str, str]] | None = None
    one_device: tuple[str, str, int] | None = None


@dataclass(frozen=True)
class PlannedModel:
    """A model, the bytes of its file included, and a plan for it."""

    source: Source
    reading: Reading | ProgramReading
    plan: StagePlan

    @property
    def folder(self) -> Path | None:
        """Where the model's external data lies; None for a model from standard input."""
        return None if self.source.path is None else self.source.path.parent


@dataclass(frozen=True)
class PlanFiles:
    """A model and a plan for it, each the path of a file, ``-`` for standard input, or its content.

    Attributes
    ----------
    plan
        A plan, or what ``evaluate --assignment`` takes: that is scored on the reference system.
    dims
        Sizes of symbolic dimensions that the plan has not.
    max_input_bytes
        Larger files are refused.
    adapters
        Paths of adapters of a language model that the plan records.
    """

    model: str | Source
    plan: str | Source
    dims: SizeTerms = field(default_factory=dict)
    max_input_bytes: int = MAX_INPUT_BYTES
    adapters: tuple[str, ...] = ()

    def read(self, file: str | Source) -> Source:
        """Return the content of one of them."""
        from mtpp.formats.io.source import read_source

        return read_source(file, max_bytes=self.max_input_bytes) if isinstance(file, str) else file


def plan_files(model: Any, plan: Any, asked: Planned) -> PlanFiles:
    """Return a model and a plan as callers give them; without a model that of the plan."""
    from mtpp.api.inputs.document_source import document_source
    from mtpp.api.inputs.model_path import model_file

    stages, _ = document_source(plan, "plan")
    if model is None:
        return files_of_plan(stages, asked.dims or {}, asked.max_input_size)
    file, read_for = model_file(model)
    return PlanFiles(file, stages, {**read_for, **(asked.dims or {})}, asked.max_input_size)


def files_of_plan(plan: str | Source, dims: SizeTerms, max_input_bytes: int) -> PlanFiles:
    """Return a plan with the model that it records, found by SHA-256.

    Raises
    ------
    InputError
        If the plan records none, or no file with its SHA-256 is where it says.
    """
    from mtpp.api.inputs.recorded_model import NamedFiles, recorded_model
    from mtpp.api.inputs.user_assignment import assignment_document
    from mtpp.formats.io.source import read_source

    source = read_source(plan, max_bytes=max_input_bytes) if isinstance(plan, str) else plan
    remedy = "give the model before the plan"
    if source.data.lstrip()[:1] != b"{":
        raise InputError("is no plan", source=source.display, remedy=remedy)
    document = assignment_document(source)
    stated = document.get("model") if isinstance(document, dict) and "format" in document else None
    if not isinstance(stated, dict) or "path" not in stated:
        raise InputError("names no model", source=source.display, where="/model", remedy=remedy)
    found = recorded_model(stated, source.path, NamedFiles(max_input_bytes))
    if found.path is None:
        raise InputError(found.why, source=source.display, where="/model/path", remedy=remedy)
    return PlanFiles(found.path, source, dims, max_input_bytes, found.adapters)


def read_planned_model(files: PlanFiles, observer: Observer, source: Source | None = None) -> PlannedModel:
    """Read a model and a plan, and see that they belong together.

    Parameters
    ----------
    source
        The model's bytes, where they have been read.

    Raises
    ------
    InputError
        If one is broken, the model is neither an ONNX model nor an exported PyTorch program, or the plan is about
        another one.
    InvalidPartition
        If an op has no stage, or needs what a later stage makes.
    """
    from mtpp.api.inputs.model_path import read_runnable
    from mtpp.api.inputs.user_assignment import assignment_document
    from mtpp.machine.presets import load_device

    plan_source = files.read(files.plan)
    document = assignment_document(plan_source)
    given = dict(files.dims)
    is_plan = isinstance(document, dict) and "format" in document
    planned = _planned_dims(document, plan_source.display, given) if is_plan else {}
    source = read_runnable(source or files.model, files.max_input_bytes, "give the model that the plan is about")
    system = load_device()
    spare = not named_sizes(given).keys() - planned.keys() and is_plan
    reading = _read_ops(source, {**planned, **given}, system, spare_dims=spare)
    read = Model(source, reading.graph, system, dict(reading.graph.metadata.get("dims", {})))
    if is_plan:
        stages = _stages_of_plan(document, plan_source, read, {**planned, **named_sizes(given)}, observer)
    else:
        stages = _stages_of_assignment(read, plan_source, observer)
    return PlannedModel(source, reading, stages)


def _read_ops(source: Source, dims: SizeTerms, system: Device, *, spare_dims: bool) -> Reading | ProgramReading:
    """Read a model, and keep which of its nodes each op of the graph is."""
    from mtpp.formats.onnx.reader import read_with_nodes
    from mtpp.formats.torch_export import looks_like_archive, read_with_modules

    if looks_like_archive(source.data):
        return read_with_modules(
            source.stored, source=source.display, dims=dims, system=system, name=source.stem, spare_dims=spare_dims
        )
    return read_with_nodes(
        source.path,
        source.data,
        source=source.display,
        dims=dims,
        system=system,
        name=source.stem,
        spare_dims=spare_dims,
    )


def _planned_dims(document: Any, display: str, given: SizeTerms) -> dict[str, int]:
    """Return the sizes that a plan was made for; others must not be asked for."""
    from mtpp.document_shape import anything
    from mtpp.formats.io.json_shape import attributed, pointer, shaped, whole_number
    from mtpp.formats.results.partition_plan import as_plan

    as_plan(document, display)
    with attributed(display):
        model = shaped(anything, document.get("model"), "model")
        dims = shaped(anything, model.get("dims", {}), "model", "dims")
        for name, size in dims.items():
            if shaped(whole_number, size, "model", "dims", name) < 1:
                raise InputError(f"{size} is no size", where=pointer("model", "dims", name))
            if given.get(name, size) != size:
                raise InputError(
                    f"the plan was made for {name} = {size}", parameter="dims", remedy="leave it out, or plan anew"
                )
    return dict(dims)


def _stages_of_plan(
    document: Any, source: Source, model: Model, planned: Mapping[str, int], observer: Observer
) -> StagePlan:
    from mtpp.api.inputs.user_assignment import labels_of_assignment
    from mtpp.document_shape import anything, array, text
    from mtpp.formats.io.json_shape import attributed, shaped, whole_number
    from mtpp.inference.partition import Partition
    from mtpp.ranges import MOST_STAGES

    with attributed(source.display):
        about = shaped(anything, document.get("model"), "model")
        same_file = about.get("sha256") == model.source.sha256
        if same_file:
            _check_same_model(about, model, planned)
        else:
            _check_same_ops(document, model)
        k = shaped(whole_number, document.get("k"), "k")
        if not 0 < k <= MOST_STAGES:
            raise InputError(f"{k} is no number of stages", where="/k")
        if "machine" in document:
            k = len(shaped(array(anything), document["machine"].get("devices"), "machine", "devices"))
        labels = labels_of_assignment(model.graph, source.display, source)
        instance = model.instance(k)
    partition = Partition.from_stages(instance, labels)
    with attributed(source.display):
        figures = _figures(document, labels, k)
        if not (same_file or _same_sizes(document, figures, model, partition)):
            observer.warn(
                f"{source.display}: the plan was made from another file than {model.source.display}, with the same ops "
                "but tensors or weights of other sizes: its times may be wrong"
            )
        bottleneck = shaped(whole_number, document.get("bottleneck"), "bottleneck")
        ticks_per_unit = shaped(whole_number, document.get("ticks_per_unit"), "ticks_per_unit")
        if bottleneck != max(figures["cost"]) or ticks_per_unit < 1:
            raise InputError("contradicts the stages", where="/bottleneck", remedy="mtpp verify says what is wrong")
        return StagePlan(
            labels=labels,
            k=k,
            time_unit=shaped(text, document.get("time_unit"), "time_unit"),
            ticks_per_unit=ticks_per_unit,
            bottleneck=bottleneck,
            costs=figures["cost"],
            works=figures["work"],
            param_bytes=figures["param_bytes"],
            devices=devices_of_plan(document),
            one_device=_one_device_of_plan(document, sum(figures["work"])),
        )


def _one_device_of_plan(document: Any, work: int) -> tuple[str, str, int] | None:
    """Return the device that a plan for a machine compares with; of equal ones the first with all work."""
    from mtpp.document_shape import anything
    from mtpp.formats.io.json_shape import shaped, whole_number
    from mtpp.machine.machine import Machine

    named = _named_devices(document)
    if not named:
        return None
    stated = document.get("one_device")
    if stated is None:
        plain = "one_device" not in document and len(Machine.from_document(document["machine"]).classes) == 1
        return (*named[0], work) if plain else None
    one = shaped(anything, stated, "one_device")
    index = shaped(whole_number, one.get("index"), "one_device", "index")
    cost = shaped(whole_number, one.get("cost"), "one_device", "cost")
    if not 0 <= index < len(named) or cost < 0:
        raise InputError("is no device with its ticks", where="/one_device", remedy="plan anew")
    return (*named[index], cost)


def _named_devices(document: Any) -> list[tuple[str, str]]:
    """Return name and place of each device of a plan's machine; none where it has no machine."""
    from mtpp.document_shape import anything, array, text
    from mtpp.formats.io.json_shape import shaped

    if not isinstance(document, dict) or "machine" not in document:
        return []
    devices = shaped(array(anything), document["machine"].get("devices"), "machine", "devices")
    named = []
    for i, device in enumerate(devices):
        place = shaped(text, device.get("place", "cpu"), "machine", "devices", i, "place")
        named.append((shaped(text, device.get("name"), "machine", "devices", i, "name"), place))
    return named


def devices_of_plan(document: Any) -> list[tuple[str, str]] | None:
    """Return name and place of the device of each stage of a plan for a machine; None of other plans."""
    from mtpp.document_shape import anything
    from mtpp.formats.io.json_shape import shaped, whole_number

    named = _named_devices(document)
    if not named:
        return None
    found = []
    for i, row in enumerate(document["stages"]):
        on = shaped(anything, row.get("device"), "stages", i, "device")
        index = shaped(whole_number, on.get("index"), "stages", i, "device", "index")
        if not 0 <= index < len(named):
            raise InputError(f"there is no device {index}", where=f"/stages/{i}/device/index", remedy="plan anew")
        found.append(named[index])
    return found


def _figures(document: Mapping[str, Any], labels: list[int], k: int) -> dict[str, list[int]]:
    """Return what a plan says of its stages, key by key."""
    from mtpp.document_shape import anything, array
    from mtpp.formats.io.json_shape import shaped, whole_number

    rows = shaped(array(anything), document.get("stages"), "stages")
    if len(rows) != k:
        raise InputError(f"{len(rows)} stages, but k is {k}", where="/stages", remedy="plan anew")
    keys = ("index", "ops", "cost", "work", "input", "output", "param_bytes")
    figures: dict[str, list[int]] = {key: [] for key in keys}
    for i, row in enumerate(rows):
        for key, column in figures.items():
            column.append(shaped(whole_number, row.get(key), "stages", i, key))
            if column[-1] < 0:
                raise InputError(f"{column[-1]} is below zero", where=f"/stages/{i}/{key}")
    ops = Counter(labels)
    for i in range(k):
        if (figures["index"][i], figures["ops"][i]) != (i, ops[i]):
            raise InputError(
                "contradicts the assignment", where=f"/stages/{i}", remedy="mtpp verify says what is wrong"
            )
    return figures


def _check_same_model(about: Mapping[str, Any], model: Model, planned: Mapping[str, int]) -> None:
    graph = model.graph
    for key, count in (("ops", graph.op_count), ("tensors", graph.tensor_count)):
        if about.get(key) != count:
            raise InputError(
                f"the plan is about a graph with {about.get(key)} {key}, that of this model has {count}",
                where=f"/model/{key}",
                remedy="plan anew",
            )
    if planned.items() - model.dims.items():
        raise InputError("names dimensions that the model has not", where="/model/dims", remedy="plan anew")


def _check_same_ops(document: Any, model: Model) -> None:
    """Let a plan pass that was made from a graph of the same model, such as one with measured costs."""
    from mtpp.formats.modelled.node_names import named_as

    assignment = document.get("assignment")
    if not isinstance(assignment, dict) or assignment.keys() != set(named_as(model.graph, assignment).op_names):
        raise InputError(
            f"the plan belongs to another model than {model.source.display}",
            where="/model/sha256",
            remedy="give the model that it was made from, or plan anew",
        )


def _same_sizes(document: Any, figures: Mapping[str, list[int]], model: Model, partition: Partition) -> bool:
    """Say whether the stages of a plan hold and transfer what they do in this model."""
    from mtpp.inference.instance import Instance
    from mtpp.inference.objective import stage_costs
    from mtpp.machine.machine import Machine

    system = document.get("system")
    bandwidth = system.get("bandwidth_bytes_per_s") if isinstance(system, dict) else None
    if not isinstance(bandwidth, int) or not 0 < bandwidth < _HIGHEST_BANDWIDTH:
        return False
    planned = model.system.overriding(bandwidth_bytes_per_s=bandwidth)
    costs = stage_costs(Instance.build(model.graph, Machine.uniform(partition.k, planned)), partition)
    own = {"param_bytes": costs.param_bytes, "input": costs.input, "output": costs.output}
    return all(figures[key] == column.tolist() for key, column in own.items())


def _stages_of_assignment(model: Model, source: Source, observer: Observer) -> StagePlan:
    from mtpp.api.evaluate import scored
    from mtpp.api.inputs.user_assignment import labels_of_assignment

    labels = labels_of_assignment(model.graph, source.display, source)
    plan = scored(model, labels, None, observer)
    rows = plan.stage_rows()
    return StagePlan(
        labels=plan.partition.assignment.tolist(),
        k=plan.partition.k,
        time_unit=plan.instance.time_unit,
        ticks_per_unit=plan.instance.ticks_per_unit,
        bottleneck=plan.costs.bottleneck,
        costs=[row["cost"] for row in rows],
        works=[row["work"] for row in rows],
        param_bytes=[row["param_bytes"] for row in rows],
    )
