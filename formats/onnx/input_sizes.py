"""Sizes of the inputs of a model that is to be run: what is made on the way needs none."""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.formats.modelled.size_terms import SizeTerms, named_sizes, size_of_others
from mtpp.formats.onnx.dimensions import Dimensions
from mtpp.formats.onnx.open_model import OpenModel
from mtpp.formats.onnx.tensor_type import PartialType, partial_type
from mtpp.machine.presets import load_device


@dataclass(frozen=True)
class InputSizes:
    """Sizes by name, and the names of those that nobody gave."""

    sizes: dict[str, int]
    proposed: tuple[str, ...] = ()


def input_sizes(data: bytes, source: str, terms: SizeTerms) -> InputSizes:
    """Return the sizes that a model's inputs need, by name."""
    named = named_sizes(terms)
    whole = OpenModel.parsed(data, source)
    graph = whole.model.graph
    dimensions = Dimensions(graph, whole.parameters, named, source)
    needed: list[str] = []
    for value in graph.input:
        kind = partial_type(value.type)
        if value.name not in whole.parameters and isinstance(kind, PartialType):
            needed += dimensions.keys_of(value.name, dimensions.applied(value.name, kind))
    if not needed:
        return InputSizes(named)
    others = size_of_others(terms)
    if others is not None:
        return InputSizes({**named, **dict.fromkeys(needed, others)})
    found = whole.walked(terms, load_device())
    proposed = tuple(key for key in found.proposed if key in needed)
    return InputSizes({**named, **{key: found.dimensions.given[key] for key in proposed}}, proposed)
