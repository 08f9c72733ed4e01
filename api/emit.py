"""Plans in the forms that other programs take: engines of language models, PyTorch, Coral's Edge TPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.options.emitting import Emitting
from mtpp.api.options.splitting import Planned
from mtpp.api.parameters import names
from mtpp.errors import InputError
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.stage_plan import PlanFiles, PlannedModel
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.formats.exporters.request import Request
    from mtpp.formats.modelled.size_terms import SizeTerms


def emit(
    model: Any,
    plan: Any,
    form: str | Sequence[str],
    *,
    virtual_stages: int = 1,
    from_format: str | None = None,
    dims: SizeTerms | str | None = None,
    max_input_size: int | str = "2GiB",
    observer: Observer | None = None,
) -> str:
    """Return a plan in the form that another program takes.

    Keywords that are not listed are fields of :class:`mtpp.api.options.splitting.Planned`.

    Parameters
    ----------
    model
        Path of the model that the plan is about, in any format, or a model as read: the folder, configuration or
        checkpoint of a language model, too. None: the one that the plan records.
    plan
        A plan: a path, bytes, a parsed document, an object that has one, or the stages of ops by name.
    form
        ``"cut-names"``, ``"torch"``, ``"vllm"``, ``"megatron"`` or ``"tflite-segments"``; several give one text. Of a
        language model an engine: ``"vllm"``, ``"sglang"``, ``"tensorrt-llm"``, ``"megatron"``, ``"torchtitan"``,
        ``"deepspeed"``, ``"accelerate"``, ``"llama.cpp"`` or ``"exo"``.
    virtual_stages
        Stages of each rank of a pipeline of Megatron or torchtitan.
    observer
        Listener to warnings.

    Raises
    ------
    InputError
        If a parameter is of the wrong type, an input is broken, the two do not belong together, or the stages cannot be
        said in that form.
    InvalidPartition
        If an op has no stage, or needs what a later stage makes.

    Examples
    --------
    >>> import mtpp
    >>> from mtpp.api.emit import emit
    >>> model = mtpp.datasets.sample_path("resnet50")
    >>> emit(model, mtpp.partition(model, 2), "cut-names").splitlines()[1]
    ' "format": "mtpp-cuts",'
    """
    from mtpp.api.inputs.python_models import runnable_model
    from mtpp.api.inputs.stage_plan import plan_files
    from mtpp.api.inputs.user_assignment import brought_along

    asked = Emitting.of(form=names(form, "form"), virtual_stages=virtual_stages)
    planned = Planned.of(from_format=from_format, dims=dims, max_input_size=max_input_size)
    largest = int(planned.max_input_size)
    with runnable_model(model, planned.from_format, largest, weights=False) as found, brought_along(plan, "plan"):
        return emit_files(plan_files(found, plan, planned), asked, listener(observer))


def emit_files(files: PlanFiles, asked: Emitting, observer: Observer, adapters: Sequence[str] = ()) -> str:
    """Return a plan in each of the forms asked for, one after the other; the model may be a graph in any format."""
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.api.language_models.emission import emit_language_model

    check_forms(asked.form)
    path = files.model if isinstance(files.model, str) else files.model.path
    if names_language_model(path):
        return emit_language_model(str(path), files.read(files.plan), asked, observer, adapters or files.adapters)
    check_form_of_graphs(asked)
    return forms_text(_read_request(files, observer), asked.form)


def emit_plan(plan: PartitionPlan, model: Model, asked: Emitting, observer: Observer) -> str:
    """Return a plan as it was found, in each of the forms asked for."""
    from mtpp.api.inputs.stage_plan import plan_files

    return emit_files(plan_files(model, plan, Planned()), asked, observer, model.adapters)


def check_forms(forms: Sequence[str]) -> None:
    """Check that every form asked for exists, before the work.

    Raises
    ------
    InputError
        If one does not.
    """
    from mtpp.names import FORMS_EMITTED

    for name in forms:
        if name not in FORMS_EMITTED:
            remedy = did_you_mean(name, FORMS_EMITTED, f"use one of {', '.join(FORMS_EMITTED)}")
            raise InputError(f"unknown form {name!r}", parameter="form", remedy=remedy)


def check_form_of_graphs(asked: Emitting) -> None:
    """Check that every form asked for is one of plans of graphs.

    Raises
    ------
    InputError
        If one is of language models alone.
    """
    from mtpp.names import EXPORTERS

    if asked.virtual_stages > 1:
        raise InputError("are of language models", parameter="virtual_stages", remedy="leave them out")
    for name in asked.form:
        if name not in EXPORTERS:
            remedy = f"give its folder or config.json, or use one of {', '.join(EXPORTERS)}"
            raise InputError(f"{name!r} is a form of plans of language models", parameter="form", remedy=remedy)


def request_of(model: PlannedModel) -> Request:
    """Return what a hand-over is made of, the modules that ops came from included."""
    import numpy as np

    from mtpp.formats.exporters.request import Request
    from mtpp.formats.onnx.module_names import module_names
    from mtpp.formats.torch_export import ProgramReading

    reading = model.reading
    return Request(
        graph=model.reading.graph,
        assignment=np.array(model.plan.labels, dtype=np.int32),
        k=model.plan.k,
        modules=reading.modules if isinstance(reading, ProgramReading) else module_names(reading),
        devices=[name for name, _ in model.plan.devices or ()],
    )


def forms_text(request: Request, forms: Sequence[str]) -> str:
    """Return the plan in each of the forms asked for, one after the other."""
    from mtpp.formats.exporters.registry import emit

    return "".join(emit(name, request) for name in dict.fromkeys(forms))


def _read_request(files: PlanFiles, observer: Observer) -> Request:
    """Read a model or graph in any format, and the stages of its ops."""
    from mtpp.api.evaluate import scored
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.module_paths import graph_with_modules
    from mtpp.api.inputs.stage_plan import devices_of_plan, read_planned_model
    from mtpp.api.inputs.user_assignment import assignment_document, labels_of_assignment
    from mtpp.formats.exporters.request import Request
    from mtpp.formats.graphs.recognise import read_graph
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.onnx import looks_like_onnx
    from mtpp.machine.presets import load_device

    source = files.read(model_at(files.model) if isinstance(files.model, str) else files.model)
    if looks_like_onnx(source.data):
        return request_of(read_planned_model(files, observer, source))
    found = graph_with_modules(source, dict(files.dims), load_device())
    graph = read_graph(source, dims=dict(files.dims), warn=observer.warn) if found is None else found.graph
    plan = files.read(files.plan)
    labels = labels_of_assignment(graph, plan.display, plan)
    given = scored(Model(source, graph, load_device(), {}), labels, None, observer)
    devices = [name for name, _ in devices_of_plan(assignment_document(plan)) or ()]
    return Request(graph, given.partition.assignment, given.partition.k, {} if found is None else found.paths, devices)
