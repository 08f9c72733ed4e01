"""Models written as graphs in another format, with the stages of a plan where they are given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mtpp.api.options.graphs import Converting
from mtpp.api.parameters import path_text
from mtpp.errors import InputError
from mtpp.names import MODEL_EXPLORER

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.formats.graphs.graph_format import GraphFormat


def writer_of(output: str, to_format: str | None, *, stages: bool, parameter: str = "plan") -> GraphFormat:
    """Return the format to write in.

    Parameters
    ----------
    output
        Path, whose suffix decides unless *to_format* does; JSON with stages is node data for Model Explorer.
    stages
        Whether stages are to be shown.
    parameter
        Name by which the caller knows them.
    """
    from mtpp.formats.graphs.recognise import writer_for
    from mtpp.formats.graphs.registry import FORMATS

    writer = writer_for(output, to_format)
    if stages and to_format is None and writer.name == "native" and PurePath(output.removesuffix(".gz")).suffix:
        writer = writer_for(output, MODEL_EXPLORER)
    if stages and writer.write_stages is None:
        others = " or ".join(candidate.name for candidate in FORMATS if candidate.write_stages)
        raise InputError(
            f"{writer.name} files have no place for stages",
            parameter=parameter,
            remedy=f"choose ‹to› {others}",
        )
    if not stages and writer.write is None:
        raise InputError(
            f"{writer.name} files list stages, and none were given",
            source=output,
            remedy=f"add ‹{parameter}› plan.json (`mtpp partition -o plan.json` makes one)",
        )
    return writer


def check_drawing(writer: GraphFormat) -> None:
    """Check that a format can show modules in place of ops.

    Raises
    ------
    InputError
        If it is not the one of drawings.
    """
    if writer.name != "dot":
        raise InputError(
            f"{writer.name} files hold ops, not modules", parameter="modules", remedy="choose ‹to› dot, or leave it out"
        )


def converted_text(
    model: Model,
    writer: GraphFormat,
    assignment: Any,
    observer: Observer,
    *,
    modules: int | None = None,
    parameter: str = "plan",
) -> str:
    """Return the text of the file.

    Parameters
    ----------
    assignment
        None, or what :func:`mtpp.api.inputs.user_assignment.stage_labels` takes.
    modules
        Depth of the modules that are drawn, see :func:`mtpp.api.inputs.module_paths.module_groups`; None: all ops are.
    parameter
        Name by which the caller knows the assignment.
    """
    from mtpp.api.inputs.serving import refuse_both_phases

    refuse_both_phases(model.how)
    plan = None
    if assignment is not None:
        from mtpp.api.evaluate import scored
        from mtpp.api.inputs.user_assignment import labels_of_document, read_assignment, stage_labels

        if isinstance(assignment, str | os.PathLike):
            document, name = read_assignment(path_text(assignment, parameter))
            labels = labels_of_document(model.graph, document, name)
        else:
            document, name = getattr(assignment, "document", lambda: assignment)(), f"‹{parameter}›"
            labels = stage_labels(model.graph, assignment, parameter)
        _warn_of_other_devices(document, name, model, observer)
        plan = scored(model, labels, None, observer)
    if modules is not None:
        from mtpp.api.inputs.module_paths import module_groups
        from mtpp.formats.graphs.dot import write_dot_module_stages, write_dot_modules

        groups = module_groups(model, modules)
        return write_dot_modules(model.graph, *groups) if plan is None else write_dot_module_stages(plan, *groups)
    if plan is None:
        assert writer.write is not None
        return writer.write(model.graph)
    if writer.name == MODEL_EXPLORER:
        from mtpp.formats.results.model_explorer import write_model_explorer

        return write_model_explorer(plan, *explorer_nodes(model))
    assert writer.write_stages is not None
    return writer.write_stages(plan)


def _warn_of_other_devices(document: Any, name: str, model: Model, observer: Observer) -> None:
    """Warn where a plan was made for a machine, or for a system of other rates than the model was read for."""
    from mtpp.machine.device import Device

    if not isinstance(document, Mapping) or document.get("format") != "mtpp-plan" or "system" not in document:
        return
    if "machine" in document:
        planned = f"machine {document['machine']['name']}".rstrip()
    else:
        system = Device.from_document(document["system"])
        if (system.rates, system.link) == (model.system.rates, model.system.link):
            return
        planned = f"system {system.name}"
    observer.warn(f"{name}: was planned for {planned}; costs written here are of system {model.system.name}")


def convert(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    to: str | None = None,
    plan: Any = None,
    modules: int | None = None,
    observer: Observer | None = None,
) -> str:
    """Write a model as a graph with costs.

    Keywords that are not listed are fields of :class:`mtpp.api.options.graphs.Converting`.

    Parameters
    ----------
    model
        A model of :func:`mtpp.read`, or anything that it reads. The work of ONNX ops, as modelled on its system,
        becomes part of the graph.
    path
        File to write, whole or not at all; a name that ends in ``.gz`` is compressed. None: none is written.
    plan
        Stages to show: a plan, or anything that :func:`mtpp.evaluate` takes as an assignment.
    observer
        Is warned where stages are numbered anew, see :class:`mtpp.Observer`.

    Returns
    -------
    The text of the file.

    Raises
    ------
    InputError
        If the model or the stages cannot be read, there is no such format, it has no place for stages or needs them, it
        cannot show modules or none are known, or the file cannot be written or is the model's own.
    InvalidPartition
        If the stages are no partition of the model.

    Examples
    --------
    >>> import mtpp
    >>> graph = {"format": "mtpp-graph", "version": 1, "name": "pair", "time_unit": "ms",
    ...          "ops": [{"name": "a", "work": 1}, {"name": "b", "work": 2.5}],
    ...          "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 0.5}]}
    >>> mtpp.convert(graph, to="csv", plan={"a": 0, "b": 1}).splitlines()[0]
    'stage,op,kind,work_ms,param_bytes,output_bytes,sent_bytes'
    """
    from mtpp.api.inputs.model import refuse_own_file
    from mtpp.api.inputs.reading import as_model
    from mtpp.api.inputs.user_assignment import brought_along
    from mtpp.api.observer import listener
    from mtpp.api.output import check_output, write_text_atomically

    target = None if path is None else path_text(path, "path")
    asked = Converting(to=to, modules=modules)
    writer = writer_of(target or "", asked.to, stages=plan is not None)
    if asked.modules is not None:
        check_drawing(writer)
    if target is not None:
        check_output(target)
    read = as_model(model, observer, assignment=plan)
    if target is not None:
        refuse_own_file(target, read)
    with brought_along(plan, "plan"):
        content = converted_text(read, writer, plan, listener(observer), modules=asked.modules)
    if target is not None:
        write_text_atomically(target, content)
    return content


def explorer_nodes(model: Model) -> tuple[str, Mapping[str, str]]:
    """Return the id of a model's graph and of the node of each of its ops, by the op's name."""
    from mtpp.formats.modelled.node_names import node_names
    from mtpp.formats.onnx import looks_like_onnx, read_with_nodes
    from mtpp.formats.onnx.loading import parse_model
    from mtpp.formats.results.model_explorer import PROGRAM_GRAPH, onnx_nodes
    from mtpp.formats.torch_export import looks_like_archive

    source = model.source_with_data()
    if looks_like_onnx(source.data):
        reading = read_with_nodes(
            source.path, source.data, source=source.display, dims=model.dims, system=model.system, name=source.stem
        )
        functions = parse_model(source.data, source.display).functions
        return onnx_nodes(reading, inlined=bool(functions))
    if looks_like_archive(source.data):
        return PROGRAM_GRAPH, dict(zip(model.graph.op_names, node_names(model.graph), strict=True))
    raise InputError(
        f"{source.display} is no ONNX model and no exported program: Model Explorer does not open it",
        parameter="to",
        remedy="give the model, with its measured costs as ‹costs›, or choose node-link, graphml, dot or csv",
    )
