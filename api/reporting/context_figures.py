"""Stages of a plan of a language model at other contexts: tokens per second, memory, and sequences that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from typing import TYPE_CHECKING, Any

from mtpp.errors import MtppError
from mtpp.language_models.serving_load import ServingLoad

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.inference.instance import Instance
    from mtpp.inference.objective import StageCosts
    from mtpp.language_models.language_model import LanguageModel
    from mtpp.language_models.layer_graph import LayerGraph
    from mtpp.machine.machine import Machine
    from mtpp.views.report.context_section import ContextCurve, ContextPoint

_FIRST, _LAST = 10, 20
"""Powers of two of the contexts that are looked at, unless the plan is for less."""

_USUAL_LAST = 17
"""The last one where nothing says how long contexts may be."""

_LONGEST = 2**24
"""Contexts beyond it are not looked at."""

_PICOSECONDS = 10**12

_MOST_SEARCHED = 200
"""Layers of a model whose best plans are searched for, at most: all of them take a second or two."""

_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "context_length")


def context_figures(document: Mapping[str, Any], source: Source) -> ContextCurve | str:
    """Return the figures of a plan's stages at other contexts, or why there are none.

    Parameters
    ----------
    document
        Of a plan whose assignment is a partition of the model.
    source
        Description of the language model.
    """
    from mtpp.formats.io.json_text import parse_json
    from mtpp.formats.language_models.description import described

    if any("devices" in row for row in document["stages"]):
        return "stages stand on several devices"
    if any("costs_sha256" in device for device in document.get("machine", {}).get("devices", ())):
        return "times of layers were measured, at this context alone"
    if "costs_sha256" in document["model"]:
        return "times of layers were measured, at this context alone"
    try:
        model = described(parse_json(source.data, source.display), source.display)
        staged = _StagedModel.of(model, document)
        costs = staged.at(staged.load.context)
    except MtppError as error:
        return str(error)
    stated = [(row["cost"], row["param_bytes"], row["peak_bytes"]) for row in document["stages"]]
    if stated != list(zip(costs.cost.tolist(), costs.param_bytes.tolist(), costs.peak_bytes.tolist(), strict=True)):
        return "the costs that the plan states are not those of its assignment"
    return staged.curve()


@dataclass(frozen=True)
class _StagedModel:
    """A language model whose layers have stages.

    Attributes
    ----------
    stage_of
        Stage of each op by its name.
    machine, devices
        Devices in the order of the file, and the number of that of each stage.
    """

    model: LanguageModel
    load: ServingLoad
    stage_of: Mapping[str, int]
    machine: Machine
    devices: Sequence[int]
    together: Sequence[Sequence[str]]
    most_used: int

    @classmethod
    def of(cls, model: LanguageModel, document: Mapping[str, Any]) -> _StagedModel:
        from mtpp.machine.device import Device
        from mtpp.machine.machine import Machine

        stages = document["stages"]
        if "machine" in document:
            machine = Machine.from_document(document["machine"])
            devices = [row["device"]["index"] if "device" in row else i for i, row in enumerate(stages)]
        else:
            machine = Machine.uniform(len(stages), Device.from_document(document["system"]))
            devices = list(range(len(stages)))
        load = ServingLoad.of_sizes(document["model"]["dims"])
        return cls(model, load, document["assignment"], machine, devices, document["together"], document["k"])

    @cached_property
    def sequences(self) -> int:
        """Sequences held."""
        return self.machine.classes[0].sequences

    @property
    def limits(self) -> list[int | None]:
        """Memory limit of each stage."""
        return [self.machine.devices[j].memory_bytes for j in self.devices]

    def at(self, context: int) -> StageCosts:
        """Return costs and memory of the stages at a context."""
        return self._costs(self._instance(self._layers(context)))

    def _layers(self, context: int) -> LayerGraph:
        from mtpp.language_models.layer_graph import layer_graph

        return layer_graph(self.model, replace(self.load, context=context))

    def _instance(self, layers: LayerGraph) -> Instance:
        """Return the instance of layers on the devices in the order of the file."""
        from mtpp.inference.instance import Instance

        graphs = [layers.cost_graph(device) for device in self.machine.classes]
        return Instance.build(graphs[0], self.machine, [graph.work for graph in graphs])

    def _costs(self, instance: Instance) -> StageCosts:
        from mtpp.inference.objective import stage_costs
        from mtpp.inference.partition import Partition

        placed = instance.on(self.devices)
        return stage_costs(placed, Partition.from_stages(placed, [self.stage_of[name] for name in placed.op_names]))

    def fits(self, costs: StageCosts) -> bool:
        """Whether every stage keeps to its limit."""
        held = zip(costs.held_bytes.tolist(), self.limits, strict=True)
        return all(limit is None or size <= limit for size, limit in held)

    def curve(self) -> ContextCurve:
        """Return the figures at powers of two, at the planned context and at the largest one that fits."""
        from mtpp.language_models.capacity import largest
        from mtpp.views.report.context_section import ContextCurve

        most = largest(self._holds, _LONGEST)
        contexts = self._contexts(most)
        searched = len(self.stage_of) <= _MOST_SEARCHED and not self.machine.neighbours
        return ContextCurve(
            self.load.phase,
            self.load.context,
            self.sequences,
            self.load.batch,
            most,
            [self._point(context, searched=searched) for context in contexts],
            searched,
        )

    def _holds(self, context: int) -> bool:
        try:
            return self.fits(self.at(context))
        except MtppError:  # costs too large for ticks
            return False

    def _contexts(self, most: int | None) -> list[int]:
        """Return the contexts of the chart: powers of two up to where a model or its devices end, and two others."""
        longest = max((size for key in _POSITIONS if isinstance(size := self.model.sizes.get(key), int)), default=0)
        ends = [self.load.context, longest or 2**_USUAL_LAST, most or 0]
        last = min(max(ceil(log2(max(ends))), _FIRST + 1), max(_LAST, ceil(log2(self.load.context))))
        first = min(_FIRST, self.load.context.bit_length() - 1)
        marked = [self.load.context, *([most] if most and most <= 2**last else [])]
        return sorted({*(2**power for power in range(first, last + 1)), *marked})

    def _point(self, context: int, *, searched: bool) -> ContextPoint:
        from mtpp.views.report.context_section import ContextPoint

        layers = self._layers(context)
        instance = self._instance(layers)
        costs = self._costs(instance)
        held, limits, cost = costs.held_bytes.tolist(), self.limits, costs.cost.tolist()
        fullest = max(range(len(held)), key=lambda s: (held[s] / limits[s] if limits[s] else 0.0, held[s]))
        return ContextPoint(
            context,
            self._rate(context, max(cost)),
            cost.index(max(cost)),
            fullest,
            held[fullest],
            limits[fullest],
            self.fits(costs),
            self._most_sequences(costs),
            self._best_rate(layers, instance) if searched else None,
        )

    def _rate(self, context: int, ticks: int) -> float:
        """Return tokens per second: of a step at decode one for each sequence, at prefill those of the prompts."""
        tokens = replace(self.load, context=context).tokens
        return tokens * _PICOSECONDS / ticks if ticks else 0.0

    def _most_sequences(self, costs: StageCosts) -> int | None:
        rows = zip(costs.state_bytes.tolist(), costs.held_bytes.tolist(), self.limits, strict=True)
        found = []
        for states, held, limit in rows:
            if limit is not None and states:
                found.append(max(0, limit - held + states) // (states // self.sequences))
            elif limit is not None and held > limit:
                found.append(0)
        return min(found, default=None)

    def _best_rate(self, layers: LayerGraph, instance: Instance) -> float | None:
        """Return tokens per second of the fastest plan at a context; None where nothing fits."""
        from mtpp.solvers.layer_chains.devices import ChainDevices
        from mtpp.solvers.layer_chains.search import fastest_plan
        from mtpp.solvers.layer_chains.tables import Alternative, ChainTables, Choice

        groups = [*self.together, *(group for some in layers.groups.values() for group in some)]
        choices = [Choice(Alternative(c), instance) for c in range(len(self.machine.classes))]
        tables = ChainTables.of(choices, groups)
        devices = ChainDevices.of(self.machine.class_of, free=self.machine.free, most_used=self.most_used)
        found = fastest_plan(tables, devices)
        return None if found is None else self._rate(layers.load.context, found.bottleneck)


def is_served(document: Mapping[str, Any], source: Source | None) -> bool:
    """Whether a plan is of a language model, whose description is at hand."""
    from mtpp.api.inputs.serving import is_load
    from mtpp.formats.graphs.language_model import looks_like_description

    return source is not None and is_load(document["model"]["dims"]) and looks_like_description(source.data)
