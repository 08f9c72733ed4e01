"""Models that a caller of a verification has at hand, in place of their files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.formats.measured.measured_costs import MeasuredCosts
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device
    from mtpp.training.model import TrainingModel

_MODELLED_ON = ("peak_flops_per_s", "memory_bandwidth_bytes_per_s")
"""Quantities of a system that the work of ONNX ops is modelled on."""


@dataclass(frozen=True, eq=False)
class SuppliedModel:
    """A model at hand, either for inference or to be trained.

    Attributes
    ----------
    sha256
        Of its file, in hexadecimal; None for a model that is in none.
    again
        Path of its file, or its content, from which it is read for other sizes and another system; None if it cannot.
    system, dims
        What it was read for; None for a graph that brings its costs.
    costs
        The measured costs that it has, if any.
    own_costs
        Whether its file brings the costs of its ops; None where that is not known.
    keep_state
        Inputs that were named as its states, with the results that they come out as.
    """

    graph: CostGraph | None = None
    training: TrainingModel | None = None
    sha256: str | None = None
    again: str | Source | None = None
    system: Device | None = None
    dims: Mapping[str, int] | None = None
    keep_state: Mapping[str, str] = field(default_factory=dict)
    costs: MeasuredCosts | None = None
    own_costs: bool | None = None

    def read_for(self, dims: Mapping[str, int], system: Mapping[str, Any], keep_state: Mapping[str, str]) -> bool:
        """Tell whether the graph has the costs that these sizes and this system give it, and these states."""
        if self.system is None:
            return True
        own = self.system.to_document()
        if dict(self.keep_state) != dict(keep_state):
            return False
        return dict(self.dims or {}) == dict(dims) and all(own[key] == system[key] for key in _MODELLED_ON)


def supplied_models(models: object) -> tuple[str | SuppliedModel, ...]:
    """Return one model or a sequence of them as a verification takes them."""
    if models is None:
        return ()
    if isinstance(models, Sequence) and not isinstance(models, str | bytes | bytearray):
        return tuple(map(_supplied_model, models))
    return (_supplied_model(models),)


def _supplied_model(model: object) -> str | SuppliedModel:
    from mtpp.api.inputs.model import Model
    from mtpp.api.inputs.reading import source_of
    from mtpp.inference.graph import CostGraph
    from mtpp.training.model import TrainingModel

    if isinstance(model, str):
        return model
    if isinstance(model, os.PathLike) and isinstance(path := os.fspath(model), str):
        return path
    if isinstance(model, SuppliedModel):
        return model
    if isinstance(model, Model):
        source = model.source
        again = source if source.path is None else str(source.path)
        return SuppliedModel(
            graph=model.graph,
            sha256=source.sha256,
            again=None if model.read_as_told else again,
            system=model.system,
            dims=model.dims,
            keep_state=model.keep_state,
            costs=model.costs,
            own_costs=model.own_costs or None,
        )
    if isinstance(model, CostGraph):
        return SuppliedModel(graph=model)
    if isinstance(model, TrainingModel):
        return SuppliedModel(training=model)
    graph, training = getattr(model, "graph", None), getattr(model, "model", None)
    if isinstance(graph, CostGraph):
        return SuppliedModel(graph=graph)
    if isinstance(training, TrainingModel):
        return SuppliedModel(training=training, sha256=getattr(model, "sha256", None))
    source = source_of(model, None, "model")
    return SuppliedModel(sha256=source.sha256, again=source)
