"""Models from files, bytes and objects of other libraries, in any format that is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.model import Model, Reading, read_model
from mtpp.api.inputs.python_models import TORCH, ExportTerms, exported_source, is_of, is_torch_model, source_at
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.system import System


def read(
    source: Any,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    dims: SizeTerms | str | None = None,
    system: str | os.PathLike[str] | System | None = "reference",
    bandwidth: int | str | None = None,
    fast_memory: int | str | None = None,
    activation_reserve: int | str | None = None,
    peak: str | None = None,
    stage_memory: int | str | None = None,
    costs: str | os.PathLike[str] | None = None,
    from_format: str | None = None,
    time_unit: str | None = None,
    backward: bool = False,
    loading_time: bool = False,
    max_input_size: int | str = "2GiB",
    observer: Observer | None = None,
) -> Model:
    """Read a model, and say what it runs on.

    Parameters
    ----------
    source
        Path of a file (``"-"`` is standard input) or of a folder with one model in it, its bytes, a cost graph, an
        ``onnx.ModelProto``, a ``torch.nn.Module`` with *args*, a ``torch.export.ExportedProgram``, a
        ``networkx.DiGraph`` with the attributes of a node-link graph, or a parsed JSON document of a graph; with
        *from_format* ``"torch"``, ``"package.module:function"``.
    args, kwargs, dynamic_shapes
        Of a module: inputs to export it with, by position and by name, and sizes that may change, as
        ``torch.export.export`` takes them. Module and inputs may be on ``torch.device("meta")``.
    dims
        Sizes of symbolic dimensions of an ONNX model or of an exported program by name; ``"*"`` stands for all others.
        ``"auto"`` (or ``{"*": "auto"}``) takes sizes that are proposed: see :attr:`Model.proposed_dims`.
    system
        The machine: a preset's name, the path of a TOML file, or a :class:`mtpp.inference.system.System`.
    bandwidth
        Of the link between stages, in bytes per second or as ``"25GB/s"``.
    fast_memory, activation_reserve, stage_memory
        Of one stage, in bytes or as ``"24MiB"``: what exceeds the fast memory is streamed, what exceeds the stage
        memory is ruled out.
    peak
        Activations of a stage: "reserve", or "order" for what its ops need as they run in the file's order.
    costs
        File of measured times of the ops.
    from_format
        Name of the format; by default the content decides. ``"torch"``: *source* names a function, which is imported
        and called, and returns a module with its args (and kwargs), or an exported program.
    time_unit, backward, loading_time
        Unit of time in a file that names none; whether the backward pass and the loading of data count.
    max_input_size
        Larger inputs are refused; bytes, or ``"2GiB"``.
    observer
        Is warned of what was assumed, see :class:`mtpp.Observer`.

    Returns
    -------
    A model that never changes: changing what it was made from afterwards has no effect on it.

    Raises
    ------
    InputError
        If it is no graph, broken or too large, or a parameter is wrong or has no effect.

    Examples
    --------
    >>> import mtpp
    >>> model = mtpp.read(mtpp.datasets.sample_path("resnet50"), bandwidth="10GB/s")
    >>> model.graph.op_count
    122
    >>> graph = {"format": "mtpp-graph", "version": 1, "name": "pair", "time_unit": "ms",
    ...          "ops": [{"name": "a", "work": 1}, {"name": "b", "work": 2.5}],
    ...          "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 1000}]}
    >>> mtpp.read(graph).graph.op_names
    ('a', 'b')
    """
    from mtpp.api import parameters
    from mtpp.api.inputs.model_terms import given_size, sizes
    from mtpp.api.observer import listener

    limit = given_size(max_input_size)
    chosen = parameters.text_or_none(from_format, "from_format")
    terms = ExportTerms(args, kwargs, dynamic_shapes)
    how = Reading(
        system_from(
            system,
            bandwidth=bandwidth,
            fast_memory=fast_memory,
            activation_reserve=activation_reserve,
            peak=peak,
            stage_memory=stage_memory,
        ),
        sizes(dims),
        costs=None if costs is None else parameters.path_text(costs, "costs"),
        from_format=chosen or _implied_format(source),
        time_unit=parameters.text_or_none(time_unit, "time_unit"),
        backward=parameters.flag(backward, "backward"),
        loading_time=parameters.flag(loading_time, "loading_time"),
        max_input_bytes=limit,
        bandwidth_given=bandwidth is not None,
    )
    if is_torch_model(source):
        found = exported_source(source, terms, "source", limit)
    else:
        terms.refuse("what is no module of PyTorch")
        built = chosen == TORCH and isinstance(source, str)
        found = source_at(source, TORCH, limit) if built else source_of(source, limit, "source", folders=True)
    return read_model(found.display, how, listener(observer).warn, source=found)


def as_model(
    model: Any, observer: Observer | None = None, parameter: str = "model", *, assignment: Any = None
) -> Model:
    """Return a model as it is, or what :func:`read` makes of anything else.

    Parameters
    ----------
    assignment
        A plan for it, whose sizes it takes where it leaves some open.

    Raises
    ------
    InputError
        As :func:`read`, of *parameter* where that speaks of its own.
    """
    if isinstance(model, Model):
        return model
    from mtpp.api.inputs.planned_sizes import planned_sizes
    from mtpp.formats.modelled.open_sizes import OpenSizes

    try:
        return read(model, observer=observer)
    except OpenSizes:
        planned = planned_sizes(assignment)
        if not planned:
            raise
        return read(model, dims=planned, observer=observer)
    except InputError as error:
        if error.parameter != "source":
            raise
        raise InputError(error.problem, parameter=parameter, where=error.where, remedy=error.remedy) from None


def system_from(
    system: str | os.PathLike[str] | System | None = None,
    *,
    bandwidth: int | str | None = None,
    fast_memory: int | str | None = None,
    activation_reserve: int | str | None = None,
    peak: str | None = None,
    stage_memory: int | str | None = None,
) -> System:
    """Return a system, by default the preset ``reference``, with what is given in place of its own.

    Parameters
    ----------
    system, bandwidth, fast_memory, activation_reserve, peak, stage_memory
        See :func:`read`.

    Raises
    ------
    InputError
        If one of them is no system or no quantity, or they do not go together.
    """
    from mtpp.api.parameters import path_text, quantity, text_or_none
    from mtpp.inference.system import DEFAULT_PRESET, PEAK_MODES, System, load_system, override
    from mtpp.units import parse_bandwidth, parse_bytes

    if isinstance(system, System):
        base = system
    else:
        name = DEFAULT_PRESET if system is None else system if isinstance(system, str) else path_text(system, "system")
        base = _told_of("system", load_system, name)
    if (mode := text_or_none(peak, "peak")) is not None and mode not in PEAK_MODES:
        raise InputError(f"unknown mode {mode!r}", parameter="peak", remedy=f"use one of {', '.join(PEAK_MODES)}")
    return override(
        base,
        bandwidth_bytes_per_s=quantity(bandwidth, "bandwidth", parse_bandwidth),
        fast_memory_bytes=quantity(fast_memory, "fast_memory", parse_bytes, least=0),
        activation_reserve_bytes=quantity(activation_reserve, "activation_reserve", parse_bytes, least=0),
        peak=mode,
        stage_memory_bytes=quantity(stage_memory, "stage_memory", parse_bytes, least=0),
    )


def _told_of(parameter: str, parse: Callable[[str], System], value: str) -> System:
    """Return what *parse* makes of a value; what is wrong with it is said of the parameter."""
    try:
        return parse(value)
    except InputError as error:
        place = ": ".join(part for part in (error.source, error.where) if part)
        raise InputError(error.problem, parameter=parameter, where=place or None, remedy=error.remedy) from None


def _implied_format(source: Any) -> str | None:
    """Return the format of an object that a library made, None where the content decides."""
    return "node-link" if is_of(source, "networkx", "Graph") else None


def source_of(
    source: Any,
    max_bytes: int | None,
    parameter: str,
    *,
    expected: str = "an ONNX model or a graph",
    folders: bool = False,
) -> Source:
    """Return the bytes of a path, of bytes, or of an object that stands for a model.

    Parameters
    ----------
    folders
        Whether a path may be that of a folder with one model in it.

    Raises
    ------
    InputError
        If it is none of these, cannot be read, or is larger than *max_bytes*.
    """
    from mtpp.api.parameters import path_text, shortened
    from mtpp.formats.io.folder import model_at
    from mtpp.formats.io.source import DEFAULT_MAX_BYTES, read_source, source_of_bytes

    limit = DEFAULT_MAX_BYTES if max_bytes is None else max_bytes
    if isinstance(source, str | os.PathLike):
        path = path_text(source, parameter)
        return read_source(model_at(path) if folders else path, max_bytes=limit, expected=expected)
    if isinstance(source, bytes | bytearray | memoryview):
        return source_of_bytes(bytes(source), "<bytes>", max_bytes=limit)
    if isinstance(source, Mapping):
        return source_of_bytes(_json_bytes(source, parameter), "<dict>", max_bytes=limit)
    if is_torch_model(source):
        return exported_source(source, ExportTerms(), parameter, limit)
    if is_of(source, "mtpp", "CostGraph"):
        return source_of_bytes(_cost_graph_bytes(source, parameter), f"<{source.name}>", max_bytes=limit)
    if is_of(source, "onnx", "ModelProto"):
        return source_of_bytes(_model_bytes(source, parameter), "<ModelProto>", max_bytes=limit)
    if is_of(source, "networkx", "Graph"):
        return source_of_bytes(_graph_bytes(source, parameter), f"<{type(source).__name__}>", max_bytes=limit)
    raise InputError(
        f"{shortened(source)} is nothing that is read",
        parameter=parameter,
        remedy="give a path, bytes, a parsed document, a CostGraph, an onnx.ModelProto, a networkx.DiGraph or a"
        " torch.export.ExportedProgram",
    )


def _cost_graph_bytes(graph: CostGraph, parameter: str) -> bytes:
    """Return a graph in the native format: what is read is a copy, whatever becomes of the original."""
    from mtpp.formats.graphs.native import write_native

    try:
        return write_native(graph).encode()
    except InputError as error:
        raise InputError(error.problem, parameter=parameter, where=error.where, remedy=error.remedy) from None


def _model_bytes(model: Any, parameter: str) -> bytes:
    try:
        data: bytes = model.SerializeToString()
    except Exception as error:  # protobuf raises classes of its own
        raise InputError(
            f"the model cannot be serialised: {error}", parameter=parameter, remedy="save it, and give the path"
        ) from None
    return data


def _graph_bytes(graph: Any, parameter: str) -> bytes:
    """Return a graph of networkx as a node-link document."""
    if not graph.is_directed() or graph.is_multigraph():
        raise InputError(
            f"a {type(graph).__name__} is not a DiGraph", parameter=parameter, remedy="give a networkx.DiGraph"
        )
    document = {
        "directed": True,
        "multigraph": False,
        "graph": dict(graph.graph),
        "nodes": [{**data, "id": node} for node, data in graph.nodes(data=True)],
        "edges": [{**data, "source": tail, "target": head} for tail, head, data in graph.edges(data=True)],
    }
    return _json_bytes(document, parameter)


def _json_bytes(document: Mapping[Any, Any], parameter: str) -> bytes:
    from mtpp.formats.io.json_text import dump_json

    try:
        return dump_json(_plain(document)).encode()
    except InputError as error:
        raise InputError(error.problem, parameter=parameter, where=error.where, remedy=error.remedy) from None
    except RecursionError:
        raise InputError("nested too deeply", parameter=parameter) from None


def _plain(value: Any) -> Any:
    """Return a value with numbers of NumPy made Python's and mappings made dictionaries, all the way down."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return value
