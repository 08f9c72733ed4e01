"""Language models as graphs of their layers: sizes are those of the load that they serve."""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.language_models.description import described
from mtpp.formats.modelled.kept_together import kept_together
from mtpp.formats.modelled.size_terms import SizeTerms, named_sizes
from mtpp.inference.graph import CostGraph
from mtpp.language_models.layer_graph import layer_graph
from mtpp.language_models.serving_load import SIZES, ServingLoad
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
    load = ServingLoad.of_sizes({name: size for name, size in given.items() if name in SIZES})
    model = described(content.document, content.source.display)
    layers = layer_graph(model, load)
    sizes = load.sizes()
    metadata: dict[str, Any] = {
        "dims": sizes,
        "proposed_dims": [name for name in sizes if name not in given],
        "serving": {"model_type": model.model_type, "phase": load.phase, "tokens": load.tokens},
        **kept_together(layers.groups),
    }
    return layers.cost_graph(load_device() if system is None else system, **metadata)
