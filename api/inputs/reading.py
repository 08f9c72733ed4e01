"""Models from files, bytes and objects of other libraries, in any format that is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.model import Model, read_model
from mtpp.api.inputs.python_models import TORCH, ExportTerms, exported_source, is_of, is_torch_model, source_at
from mtpp.api.options.reading import Reading
from mtpp.api.parameters import path_text, shortened
from mtpp.errors import InputError
from mtpp.names import FROM_TRANSFORMERS, LANGUAGE_MODEL

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine


def read(
    source: Any,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    dims: SizeTerms | str | None = None,
    keep_state: Mapping[str, str] | Iterable[str] | None = None,
    system: str | os.PathLike[str] | Device | None = None,
    bandwidth: int | str | None = None,
    fast_memory: int | str | None = None,
    activation_reserve: int | str | None = None,
    peak: str | None = None,
    stage_memory: int | str | None = None,
    sequences: int | None = None,
    kv_dtype: str | None = None,
    context: int | str | None = None,
    phase: str | None = None,
    batch: int | None = None,
    mtp: int | None = None,
    adapters: Iterable[str | os.PathLike[str]] = (),
    costs: str | os.PathLike[str] | None = None,
    machine: str | os.PathLike[str] | Machine | None = None,
    from_format: str | None = None,
    time_unit: str | None = None,
    backward: bool = False,
    loading_time: bool = False,
    max_input_size: int | str = "2GiB",
    observer: Observer | None = None,
) -> Model:
    """Read a model, and say what it runs on. Keywords that are not listed are fields of :class:`mtpp.Reading`.

    Parameters
    ----------
    source
        Path of a file (``"-"`` is standard input), of a folder with one model in it, or of a language model (its
        folder, ``config.json``, a ``.gguf``, a ``.safetensors`` or an index of such); its bytes, a cost graph, an
        ``onnx.ModelProto``, a ``torch.nn.Module`` with *args*, a ``torch.export.ExportedProgram``, a
        ``networkx.DiGraph`` with the attributes of a node-link graph, or a parsed JSON document of a graph; with
        *from_format* ``"torch"``, ``"package.module:function"``, which is imported and called, and returns a module
        with its args (and kwargs), or an exported program.
    args, kwargs, dynamic_shapes
        Of a module: inputs to export it with, by position and by name, and sizes that may change, as
        ``torch.export.export`` takes them. Module and inputs may be on ``torch.device("meta")``.
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
    from mtpp.api.observer import listener

    how = Reading.among(locals(), from_format=_implied_format(source) if from_format is None else from_format)
    terms, limit = ExportTerms(args, kwargs, dynamic_shapes), int(how.max_input_size)
    if is_torch_model(source):
        found = exported_source(source, terms, "source", limit)
    else:
        terms.refuse("what is no module of PyTorch")
        built = from_format == TORCH and isinstance(source, str)
        if built:
            found = source_at(source, TORCH, limit)
        elif from_format in (LANGUAGE_MODEL, FROM_TRANSFORMERS):
            found = source_at(path_text(source, "source"), from_format, limit, how)
        else:
            found = source_of(source, limit, "source", folders=True, adapters=how.adapters)
    return read_model(found.display, how, listener(observer).warn, source=found)


def as_model(
    model: Any, observer: Observer | None = None, parameter: str = "model", *, assignment: Any = None
) -> Model:
    """Return a model as it is, or what :func:`read` makes of anything else.

    Parameters
    ----------
    assignment
        A plan for it, whose sizes it takes where it leaves some open.
    """
    if isinstance(model, Model):
        return model
    from mtpp.api.inputs.model import planned_sizes
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
    adapters: Sequence[str] = (),
) -> Source:
    """Return the bytes of a path, of bytes, or of an object that stands for a model.

    Parameters
    ----------
    folders
        Whether a path may be that of a folder with one model in it, or of a language model.
    adapters
        Of a language model.
    """
    from mtpp.api.inputs.model_source import model_source
    from mtpp.formats.io.source import DEFAULT_MAX_BYTES, read_source, source_of_bytes

    limit = DEFAULT_MAX_BYTES if max_bytes is None else max_bytes
    if isinstance(source, str | os.PathLike):
        path = path_text(source, parameter)
        if folders:
            return model_source(path, limit, adapters=adapters, expected=expected)
        return read_source(path, max_bytes=limit, expected=expected)
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


def models_of(models: Any, observer: Observer | None = None) -> tuple[str | Model, ...]:
    """Return models at hand and the paths of others: of one, or of several in a list."""
    listed = isinstance(models, list | tuple | set | Iterator)
    found = tuple(_model_of(one, observer) for one in (models if listed else [models]))
    if not found:
        raise InputError("there is none", parameter="models", remedy="give a file, a folder or a model")
    return found


def _model_of(one: Any, observer: Observer | None) -> str | Model:
    """Return a path, or the model that :func:`mtpp.read` makes of something in memory."""
    if isinstance(one, str | os.PathLike):
        return path_text(one, "models")
    return as_model(one, observer, "models")


def reading_of(value: Any) -> Reading:
    """Return how files are read, by default for the reference system."""
    if value is None:
        return Reading()
    if not isinstance(value, Reading):
        raise InputError(f"{shortened(value)} is no Reading", parameter="reading")
    return value
