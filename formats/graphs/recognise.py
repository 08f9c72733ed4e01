"""Recognition of a file's format, by its content, then by its suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs import native, placement_split
from mtpp.formats.graphs.graph_format import Content, GraphFormat, ReadOptions
from mtpp.formats.graphs.language_model import looks_like_description
from mtpp.formats.graphs.registry import FORMATS
from mtpp.formats.io.json_shape import shown
from mtpp.formats.io.source import Source
from mtpp.formats.measured.onnxruntime_profile import looks_like_trace
from mtpp.formats.modelled.size_terms import SizeTerms
from mtpp.formats.results import partition_plan
from mtpp.formats.training import native as training_native
from mtpp.inference.graph import CostGraph
from mtpp.machine.device import Device
from mtpp.names import FORMATS_READ, FORMATS_WRITTEN, GRAPHPIPE, LINE_PLANNERS
from mtpp.training.plan import FORMAT as TRAINING_PLAN
from mtpp.wording import did_you_mean, one_of


def read_graph(
    source: Source,
    *,
    from_format: str | None = None,
    dims: SizeTerms | None = None,
    system: Device | None = None,
    spare_dims: bool = False,
    time_unit: str | None = None,
    backward: bool = False,
    loading_time: bool = False,
    warn: Callable[[str], None] = lambda text: None,
) -> CostGraph:
    """Read a graph in any format.

    Parameters
    ----------
    from_format
        One of :data:`FORMATS_READ`; by default the content decides, then the suffix.
    dims
        Values of symbolic dimensions of ONNX models and PyTorch programs; see :mod:`mtpp.formats.modelled.size_terms`.
    system
        Models the work of ops that bring none (ONNX only); by default the preset ``reference``.
    spare_dims
        Whether this is one of several models: what the options say of files of other kinds does no harm.
    time_unit, backward, loading_time
        See :class:`ReadOptions`.
    warn
        Is told what the reader assumed, where the file leaves something open.

    Raises
    ------
    UnrecognisedInput
        If the content is in no known format.
    InputError
        If it is broken, or an option would have no effect.
    """
    content = Content(source)
    options = ReadOptions(dims or {}, system, spare_dims, time_unit, backward, loading_time)
    options.check()
    chosen = _by_name(from_format, "‹from_format›", FORMATS_READ) if from_format else recognise(content)
    if not spare_dims:
        _check_effect(chosen, options, source)
    assert chosen.read is not None  # recognise and _by_name see to it
    graph = chosen.read(content, **{name: getattr(options, name) for name in chosen.takes})
    if chosen.assumes:
        assumptions = graph.metadata["assumptions"]
        if assumptions:
            warn(f"{source.display}: {'; '.join(assumptions)}")
    return graph


_OPTIONS = {
    "dims": ("‹dims›", "only ONNX models and PyTorch programs have symbolic sizes"),
    "time_unit": ("‹time_unit›", "this format names its unit of time"),
    "backward": ("‹backward›", "this format does not tell the backward pass from the forward pass"),
    "loading_time": ("‹loading_time›", "this format has no nodes that load data"),
}


def _check_effect(chosen: GraphFormat, options: ReadOptions, source: Source) -> None:
    for key, (option, why) in _OPTIONS.items():
        if getattr(options, key) and key not in chosen.takes:
            problem = f"has no effect on a {chosen.name} graph: {source.display}"
            raise InputError(problem, source=option, remedy=f"leave it out; {why}")


def takes_sizes(source: Source) -> bool:
    """Say whether a file that was read has symbolic sizes of its own, as graphs made of it have not."""
    content = Content(source)
    if content.is_json and not looks_like_description(source.data):
        return False
    return any("dims" in candidate.takes and candidate.recognises(content) for candidate in FORMATS)


def recognise(content: Content) -> GraphFormat:
    """Return the format of some content.

    Raises
    ------
    UnrecognisedInput
        If it is in none of them; the message says what it is instead, where that is clear.
    InputError
        If it begins like JSON and is none.
    """
    source = content.source
    for candidate in FORMATS:
        if candidate.recognises(content):
            return _readable(candidate, source)
    if content.is_json:
        raise _unknown_json(content)
    for candidate in FORMATS:
        if source.suffix in candidate.suffixes:
            return _readable(candidate, source)
    raise UnrecognisedInput(
        "in no format of graphs", source=source.display, remedy=f"give a graph in one of: {', '.join(FORMATS_READ)}"
    )


def _readable(found: GraphFormat, source: Source) -> GraphFormat:
    if found.read is None:
        raise UnrecognisedInput(
            f"{found.name} files are written, not read",
            source=source.display,
            remedy=f"give the graph in one of: {', '.join(FORMATS_READ)}",
        )
    return found


_NODE_FORMATS = ("placement", "piper", "node-link")

_FOR_PLANNING = {
    training_native.FORMAT: (
        "a model to be trained, not a graph for inference",
        f"give it to `mtpp plan` with the planner {one_of((*LINE_PLANNERS, GRAPHPIPE))}",
    ),
    TRAINING_PLAN: ("a training plan, not a graph", "give it to `mtpp verify`"),
}


def _unknown_json(content: Content) -> UnrecognisedInput:
    source, document = content.source, content.document
    name = document.get("format") if isinstance(document, dict) else None
    if name == partition_plan.FORMAT:
        return UnrecognisedInput(
            "a plan, not a graph",
            source=source.display,
            where="/format",
            remedy="give the graph it was made from (mtpp verify reads plans)",
        )
    if isinstance(name, str) and name in _FOR_PLANNING:
        problem, remedy = _FOR_PLANNING[name]
        return UnrecognisedInput(problem, source=source.display, where="/format", remedy=remedy)
    if placement_split.looks_like_split(document):
        return UnrecognisedInput(
            "a split of a placement workload, not a graph",
            source=source.display,
            where="/fpgas",
            remedy="give it to `mtpp evaluate MODEL --assignment`",
        )
    if looks_like_trace(source.data):
        return UnrecognisedInput(
            "a profile of ONNX Runtime: it has times of ops, and does not say which needs which",
            source=source.display,
            remedy="give the model, and this with ‹costs›",
        )
    if name is not None:
        remedy = f'a graph has "format": "{native.FORMAT}"'
        return UnrecognisedInput(f"unknown format {shown(name)}", source=source.display, where="/format", remedy=remedy)
    return UnrecognisedInput(
        "not a graph: neither the key 'format' nor 'nodes' and 'edges'",
        source=source.display,
        where="/",
        remedy=f'give "format": "{native.FORMAT}", or nodes in one of: {", ".join(_NODE_FORMATS)}',
    )


def writer_for(path_or_dash: str, to_format: str | None = None) -> GraphFormat:
    """Return the format to write a graph in: the one named, else the suffix's; native without a suffix."""
    if to_format:
        return _by_name(to_format, "‹to›", FORMATS_WRITTEN)
    path = PurePath(path_or_dash)
    suffix = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    for candidate in FORMATS:
        if suffix in candidate.suffixes:
            if candidate.name not in FORMATS_WRITTEN:
                raise InputError(
                    f"{candidate.name} files can be read, not written",
                    source=path_or_dash,
                    remedy=f"choose ‹to› {' or '.join(FORMATS_WRITTEN)}",
                )
            return candidate
    if suffix:
        raise InputError(
            f"no format goes with the suffix {suffix!r}",
            source=path_or_dash,
            remedy=f"choose ‹to› {' or '.join(FORMATS_WRITTEN)}",
        )
    return FORMATS[0]


def _by_name(name: str, option: str, choices: tuple[str, ...]) -> GraphFormat:
    for candidate in FORMATS:
        if candidate.name == name and name in choices:
            return candidate
    remedy = did_you_mean(name, choices, f"use one of {', '.join(choices)}")
    raise InputError(f"unknown format {name!r}", source=option, remedy=remedy)
