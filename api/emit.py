"""Plans in the forms that other programs take: PyTorch, vLLM, Megatron-LM, Coral's Edge TPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, listener
from mtpp.api.options.splitting import Planned
from mtpp.api.parameters import names
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.stage_plan import PlanFiles, PlannedModel
    from mtpp.formats.exporters.request import Request
    from mtpp.formats.modelled.size_terms import SizeTerms


def emit(
    model: str | os.PathLike[str] | Model,
    plan: Any,
    form: str | Sequence[str],
    *,
    dims: SizeTerms | str | None = None,
    max_input_size: int | str = "2GiB",
    observer: Observer | None = None,
) -> str:
    """Return a plan in the form that another program takes.

    Keywords that are not listed are fields of :class:`mtpp.api.options.splitting.Planned`.

    Parameters
    ----------
    model
        Path of the model that the plan is about, in any format, or a model as read.
    plan
        A plan: a path, bytes, a parsed document, an object that has one, or the stages of ops by name.
    form
        ``"cut-names"``, ``"torch"``, ``"vllm"``, ``"megatron"`` or ``"tflite-segments"``; several give one text.
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
    from mtpp.api.inputs.stage_plan import plan_files
    from mtpp.api.inputs.user_assignment import brought_along

    forms, asked = names(form, "form"), Planned.of(dims=dims, max_input_size=max_input_size)
    with brought_along(plan, "plan"):
        return emit_files(plan_files(model, plan, asked), forms, listener(observer))


def emit_files(files: PlanFiles, forms: Sequence[str], observer: Observer) -> str:
    """Return a plan in each of the forms asked for, one after the other; the model may be a graph in any format."""
    check_forms(forms)
    return forms_text(_read_request(files, observer), forms)


def check_forms(forms: Sequence[str]) -> None:
    """Check that every form asked for exists, before the work.

    Raises
    ------
    InputError
        If one does not.
    """
    from mtpp.names import EXPORTERS

    for name in forms:
        if name not in EXPORTERS:
            raise InputError(f"unknown form {name!r}", parameter="form", remedy=f"use one of {', '.join(EXPORTERS)}")


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
    graph, modules = found or (read_graph(source, dims=dict(files.dims), warn=observer.warn), {})
    plan = files.read(files.plan)
    labels = labels_of_assignment(graph, plan.display, plan)
    given = scored(Model(source, graph, load_device(), {}), labels, None, observer)
    devices = [name for name, _ in devices_of_plan(assignment_document(plan)) or ()]
    return Request(graph, given.partition.assignment, given.partition.k, modules, devices)
