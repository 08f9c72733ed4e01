"""Models to be trained, in any format that they are read in: recognised by content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs import native, piper
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.io.json_shape import shown
from mtpp.formats.io.source import DEFAULT_MAX_BYTES, Source, read_source
from mtpp.formats.results import partition_plan, stage_manifest, verifiable
from mtpp.formats.training import native as training_native
from mtpp.formats.training.stage_graph import FORMAT as STAGE_GRAPH
from mtpp.names import LANGUAGE_MODEL, PFEIFE
from mtpp.terminal_safe import shell_word
from mtpp.training.model import TIME_UNITS, TrainingModel
from mtpp.training.plan import FORMAT as TRAINING_PLAN

EXPECTED = f"layers with their configurations, as {training_native.FORMAT} or in Piper's JSON (see docs/formats.md)"
"""What a command that plans needs."""

_FORMATS = {
    partition_plan.FORMAT: "a plan for inference, not a model to be trained",
    TRAINING_PLAN: "a training plan, not the model it is for",
    verifiable.CERTIFICATES: "a table of certificates, not a model to be trained",
    stage_manifest.FORMAT: "a manifest of stages, not a model to be trained",
    STAGE_GRAPH: "stages with their times, which `mtpp simulate` runs, not a model to be trained",
}
"""What a document is whose ``format`` is this."""

_GRAPHS = {
    "onnx": "an ONNX model",
    "torch-export": "an exported program of PyTorch",
    "native": "a graph",
    "language-model": "a language model",
    "placement": "a workload of the placement planner",
    "node-link": "a node-link graph",
    "graphml": "a GraphML graph",
    "pipedream": "a profile of PipeDream",
    "tensorflow": "a cost graph of TensorFlow",
}
"""What a file is that :mod:`mtpp.formats.graphs.recognise` finds to be in one of these formats by its content."""


class TakenByPfeife(UnrecognisedInput):
    """A model or graph that has no configurations of layers, as all planners but pfeife need (exit code 2).

    Parameters
    ----------
    what
        Kind of the file, with an article.
    sized
        Whether it may leave sizes open.
    """

    def __init__(self, what: str, source: str, *, sized: bool = False) -> None:
        self._display, self._sized = source, sized
        super().__init__(f"{what}, which the planner {PFEIFE} takes", source=source, remedy=self._remedy("planner"))

    def told(self, name_of: Callable[[str], str]) -> str:
        """Return the line with what to write: a command, or a parameter of Python."""
        self.remedy = self._remedy(name_of("planner"))
        return super().told(name_of)

    def _remedy(self, flag: str) -> str:
        if not flag.startswith("-"):
            return f"write {flag}=mtpp.Pfeife(micro_batches=8)"
        file = "-" if self._display == "<stdin>" else shell_word(self._display)
        sizes = " --dims auto" if self._sized else ""
        return f"type `mtpp plan {file} {flag} {PFEIFE} --devices 4 --micro-batches 8{sizes}`"


def read_training_model(
    path_or_dash: str, time_unit: str | None = None, *, max_bytes: int = DEFAULT_MAX_BYTES
) -> tuple[TrainingModel, str]:
    """Read a model to be trained from a file, or from standard input for ``-``; gzip is recognised.

    Parameters
    ----------
    time_unit
        Unit of the times in a file that does not name it (Piper's), one of :data:`TIME_UNITS`.
    max_bytes
        Limit on the bytes in the file and on the bytes after decompression.

    Returns
    -------
    The model, and the SHA-256 of the file's bytes, in hexadecimal.

    Raises
    ------
    UnrecognisedInput
        If it is something else; the message says what.
    InputError
        If it cannot be read, if it is broken (*where* is a pointer into the file as it is), or if *time_unit* is
        missing, unknown or of no effect.
    """
    source = read_source(path_or_dash, max_bytes=max_bytes, expected=EXPECTED)
    return training_model_from_source(source, time_unit), source.sha256


def looks_like_training_model(content: Content) -> bool:
    """Tell whether a file says that it is a model to be trained, or is in Piper's JSON."""
    document = content.document if content.is_json else None
    if not isinstance(document, dict):
        return False
    return document.get("format") == training_native.FORMAT or ("format" not in document and _may_be_piper(document))


def training_model_from_source(source: Source, time_unit: str | None = None) -> TrainingModel:
    """Make a model of bytes that were read; as :func:`read_training_model`."""
    if time_unit is not None and time_unit not in TIME_UNITS:
        problem = f"unknown unit of time {time_unit!r}"
        raise InputError(problem, parameter="time_unit", remedy=f"use one of {', '.join(TIME_UNITS)}")
    content = Content(source)
    document = content.document if content.is_json else None
    if isinstance(document, dict):
        if document.get("format") == training_native.FORMAT:
            if time_unit is not None:
                problem = f"has no effect on {training_native.FORMAT}: {source.display}"
                raise InputError(problem, parameter="time_unit", remedy="leave it out; the file names its unit of time")
            return training_native.training_model_from_document(document, source.display)
        if "format" not in document and _may_be_piper(document):
            from mtpp.formats.training.piper import training_model_from_piper

            return training_model_from_piper(document, source.display, name=source.stem, time_unit=time_unit)
    raise _something_else(content, document)


def _may_be_piper(document: dict[str, Any]) -> bool:
    if piper.looks_like_piper(document):
        return True
    nodes = document.get("nodes")
    return isinstance(nodes, list) and any(isinstance(node, dict) and "TMPCs" in node for node in nodes)


def _something_else(content: Content, document: Any) -> UnrecognisedInput:
    source = content.source.display
    remedy = f"planning needs {EXPECTED}"
    if isinstance(document, dict) and document.get("format") not in (None, native.FORMAT):
        name = document["format"]
        known = _FORMATS.get(name) if isinstance(name, str) else None
        problem = known or f"unknown format {shown(name)}"
        return UnrecognisedInput(problem, source=source, where="/format", remedy=remedy)
    from mtpp.formats.graphs.recognise import recognise

    what = "not a model to be trained"
    try:
        form = recognise(content)
        found = _GRAPHS.get(form.name)
        if found and (form.name == "onnx" or form.recognises(content)):  # else only the file's suffix says something
            return TakenByPfeife(found, source, sized="dims" in form.takes and form.name != LANGUAGE_MODEL)
    except UnrecognisedInput as error:
        if not error.problem.startswith(("not a graph", "in no format")):
            what = error.problem
    return UnrecognisedInput(what, source=source, remedy=remedy)
