"""Kinds of files among the inputs of a command: models, their weights, and results; none is written over."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from mtpp.errors import InputError

_RESULT = re.compile(
    rb'\s*\{\s*"format"\s*:\s*"mtpp-'
    rb'(plan|plan-range|certificates|overlapping-bound|comparison|stage-comparison|training-plan|training-stages|training-sweep|simulation|run|split|inspection|verification|verifications)"'
)
"""The beginning of what a command wrote as its result: no model, though it may lie among models."""

_PLAN_RANGE = re.compile(rb'\s*\{\s*"format"\s*:\s*"mtpp-plan-range"')
_GRAPH = re.compile(rb'\s*\{\s*"format"\s*:\s*"mtpp-graph"')

_HEAD_BYTES = 4096


def holds_weights(target: str, model: str) -> bool:
    """Return whether an existing file holds weights of a model; its name is looked for before that is parsed."""
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.formats.onnx.external_data import external_files, mentions

    if not os.path.isfile(target):
        return False
    if names_language_model(model):
        return _belongs_to(target, model)
    if not os.path.isfile(model):
        return False
    linked = os.stat(target).st_nlink > 1
    if not mentions(model, b"location" if linked else os.fsencode(os.path.basename(os.path.realpath(target)))):
        return False
    return any(file.exists() and os.path.samefile(target, file) for file in external_files(model))


def _belongs_to(target: str, model: str) -> bool:
    """Return whether a file is a checkpoint or the configuration in the folder of a language model."""
    from mtpp.formats.checkpoints.folder import is_checkpoint
    from mtpp.formats.language_models.reader import CONFIGURATION

    folder = model if os.path.isdir(model) else os.path.dirname(model) or "."
    file = Path(os.path.realpath(target))
    return os.path.samefile(file.parent, folder) and (is_checkpoint(file) or file.name == CONFIGURATION)


def may_be_model(path: str) -> bool:
    """Return whether a command that reads a folder of models reads this file of it."""
    from mtpp.formats.checkpoints.folder import is_checkpoint
    from mtpp.formats.graphs.registry import FORMATS
    from mtpp.formats.io.folder import may_be_graph
    from mtpp.names import FORMATS_READ

    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    told = any(suffix in one.shared_suffixes for one in FORMATS if one.name in FORMATS_READ)
    return told or is_checkpoint(Path(path)) or may_be_graph(Path(path))


def is_result(path: str) -> bool:
    """Return whether a file begins like a result of a command, which is no input of a folder."""
    from mtpp.formats.io.source import read_head

    try:
        return _RESULT.match(read_head(path, _HEAD_BYTES)) is not None
    except InputError:
        return False


def is_plan_range(path: str) -> bool:
    """Return whether a file begins like plans for several numbers of stages."""
    from mtpp.formats.io.source import read_head

    try:
        return _PLAN_RANGE.match(read_head(path, _HEAD_BYTES)) is not None
    except InputError:
        return False


def is_graph(path: str) -> bool:
    """Return whether a file begins like a graph with costs in the native format."""
    from mtpp.formats.io.source import read_head

    try:
        return _GRAPH.match(read_head(path, _HEAD_BYTES)) is not None
    except InputError:
        return False


def refuse_inputs(target: str, inputs: Mapping[str, Path | None]) -> None:
    """Raise InputError if *target* is one of some files, by whatever name; *inputs* says what each is."""
    for noun, path in inputs.items():
        if path is None:
            continue
        try:
            same = os.path.samefile(target, path)
        except (OSError, ValueError):
            same = os.path.realpath(target) == os.path.realpath(path)
        if same and (path.is_file() or not path.exists()):
            raise InputError(f"{target} is {noun} too", parameter="path", remedy="name another file")
