"""Language models as graphs of their layers: sizes are those of the load that they serve."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.io.source import Source
from mtpp.formats.language_models.description import model_in
from mtpp.formats.modelled.kept_together import kept_together
from mtpp.formats.modelled.size_terms import SizeTerms, named_sizes
from mtpp.inference.graph import CostGraph
from mtpp.language_models.layer_graph import LayerGraph, layer_graph
from mtpp.language_models.serving_load import SIZES, ServingLoad
from mtpp.language_models.tensor_degrees import Undividable
from mtpp.machine.device import Device
from mtpp.machine.presets import load_device


def read_language_model_graph(
    content: Content, *, dims: SizeTerms, system: Device | None, spare_dims: bool
) -> CostGraph:
    """Return the layers of a described model as a graph.

    Parameters
    ----------
    dims
        Sizes of :mod:`mtpp.language_models.serving_load` by name; others are taken as usual, and said.
    spare_dims
        Whether *dims* may name other sizes.

    Raises
    ------
    InputError
        If a size is unknown or impossible.
    """
    given = named_sizes(dims)
    for name in given:
        if name not in SIZES and not spare_dims:
            remedy = f"a language model has {', '.join(SIZES)}"
            raise InputError(f"the model has no size {name!r}", parameter="dims", remedy=remedy)
    layers = layer_graph(model_in(content.source), _load(given))
    return graph_of(layers, load_device() if system is None else system, given)


def shares(source: Source, sizes: Mapping[str, int], degrees: Iterable[int]) -> dict[int, LayerGraph | Undividable]:
    """Return the layers of a described model for each number of GPUs that may share a stage.

    Parameters
    ----------
    sizes
        Of the load.

    Returns
    -------
    The reason in place of layers where engines do not divide the model so.
    """
    model, load = model_in(source), _load(sizes)
    found: dict[int, LayerGraph | Undividable] = {}
    for degree in degrees:
        try:
            found[degree] = layer_graph(model, replace(load, degree=degree))
        except Undividable as error:
            found[degree] = error
    return found


def layers_of(source: Source, sizes: Mapping[str, int]) -> LayerGraph:
    """Return the layers of a described model for a load."""
    return layer_graph(model_in(source), _load(sizes))


def graph_of(layers: LayerGraph, device: Device, given: Collection[str]) -> CostGraph:
    """Return layers as a graph with times on a device; sizes that are not *given* are said to be proposed."""
    load, sizes = layers.load, layers.load.sizes()
    metadata: dict[str, Any] = {
        "dims": sizes,
        "proposed_dims": [name for name in sizes if name not in given],
        "serving": {
            "model_type": layers.model.model_type,
            "phase": load.phase,
            "context": load.context,
            "batch": load.batch,
            "kv_dtype": load.kv_dtype,
            "tokens": load.tokens,
        },
        **kept_together(layers.groups),
    }
    return layers.cost_graph(device, **metadata)


def _load(sizes: Mapping[str, int]) -> ServingLoad:
    return ServingLoad.of_sizes({name: size for name, size in sizes.items() if name in SIZES})
