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
    from mtpp.inference.graph import CostGraph
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
    from mtpp.formats.language_models.description import model_in

    if any("devices" in row for row in document["stages"]):
        return "stages stand on several devices"
    if any("costs_sha256" in device for device in document.get("machine", {}).get("devices", ())):
        return "times of layers were measured, at this context alone"
    if "costs_sha256" in document["model"]:
        return "times of layers were measured, at this context alone"
    try:
        staged = _StagedModel.of(model_in(source), document)
        costs = staged.at(staged.load.context)
    except MtppError as error:
        return str(error)
    stated = [(row["cost"], row["param_bytes"], row["peak_bytes"]) for row in document["stages"]]
    if stated != list(zip(costs.cost.tolist(), costs.param_bytes.tolist(), costs.peak_bytes.tolist(), strict=True)):
        return "the costs that the plan states are not those of its assignment"
    return staged.curve()


def graphs_of_degrees(document: Mapping[str, Any], source: Source) -> dict[int, CostGraph]:
    """Return the layers as one of so many GPUs that share a stage of a plan has them, for each such number above 1."""
    from mtpp.formats.language_models.graph import graph_of, shares
    from mtpp.machine.machine import Machine

    used = {row.get("tensor_parallel", 1) for row in document["stages"]} - {1}
    if not used:
        return {}
    classes = Machine.from_document(document["machine"]).classes
    found = {}
    for degree, layers in shares(source, document["model"]["dims"], sorted(used)).items():
        device = next((one for one in classes if degree in one.tensor.degrees), None)
        if device is not None and not isinstance(layers, MtppError):
            found[degree] = graph_of(layers, device, ())
    return found


@dataclass(frozen=True)
class _StagedModel:
    """A language model whose layers have stages.

    Attributes
    ----------
    stage_of
        Stage of each op by its name.
    machine, devices
        Devices in the order of the file, and the number of that of each stage.
    degrees, considered
        GPUs that share each stage, and numbers of GPUs that could have shared one.
    together
        Groups of ops that had to share a stage.
    most_used, none_empty
        Devices that may be used at most, and whether so many have to be.
    prompts
        Prompts at a time, whose working memory has to fit as well; None for plans of one phase.
    """

    model: LanguageModel
    load: ServingLoad
    stage_of: Mapping[str, int]
    machine: Machine
    devices: Sequence[int]
    degrees: tuple[int, ...]
    considered: tuple[int, ...]
    together: Sequence[Sequence[str]]
    most_used: int
    none_empty: bool
    prompts: int | None

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
        return cls(
            model,
            load,
            document["assignment"],
            machine,
            devices,
            tuple(row.get("tensor_parallel", 1) for row in stages),
            tuple(document.get("degrees", (1,))),
            document["together"],
            document["k"],
            document.get("none_empty", False),
            document["first_token"]["dims"].get("batch", 1) if "first_token" in document else None,
        )

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
        return self._costs_of(replace(self.load, context=context))

    def _costs_of(self, load: ServingLoad) -> StageCosts:
        used = sorted(set(self.degrees))
        return self._costs({degree: self._instance(self._layers(load, degree)) for degree in used})

    def _held(self, context: int, costs: StageCosts) -> list[int]:
        """Return the bytes that each stage holds at most in any phase; *costs* are those of the planned one."""
        held: list[int] = costs.held_bytes.tolist()
        if self.prompts is None:
            return held
        prompt = ServingLoad("prefill", context, self.prompts, self.load.kv_dtype, self.load.mtp)
        return list(map(max, held, self._costs_of(prompt).held_bytes.tolist()))

    def _layers(self, load: ServingLoad, degree: int = 1) -> LayerGraph:
        from mtpp.language_models.layer_graph import layer_graph

        return layer_graph(self.model, replace(load, degree=degree))

    def _instance(self, layers: LayerGraph) -> Instance:
        """Return the instance of layers on the devices in the order of the file, at the degree of the layers."""
        from mtpp.inference.instance import Instance

        degree = layers.load.degree
        graphs = [
            layers.cost_graph(device) if degree == 1 or degree in device.tensor.degrees else None
            for device in self.machine.classes
        ]
        first = next(graph for graph in graphs if graph is not None)
        return Instance.build(first, self.machine, [None if graph is None else graph.work for graph in graphs])

    def _costs(self, instances: Mapping[int, Instance]) -> StageCosts:
        """Return costs and memory of the stages, each with the instance of its degree."""
        from mtpp.inference.degrees.stage_degrees import StageDegrees
        from mtpp.inference.partition import Partition

        placed = {degree: instances[degree].on(self.devices) for degree in set(self.degrees)}
        one = placed[self.degrees[0]]
        partition = Partition.from_stages(one, [self.stage_of[name] for name in one.op_names])
        return StageDegrees(self.degrees, placed, self.considered).costs(partition)

    def fits(self, held: Sequence[int]) -> bool:
        """Whether every stage keeps to its limit."""
        return all(limit is None or size <= limit for size, limit in zip(held, self.limits, strict=True))

    def curve(self) -> ContextCurve:
        """Return the figures at powers of two, at the planned context and at the largest one that fits."""
        from mtpp.language_models.capacity import largest
        from mtpp.views.report.context_section import ContextCurve

        most = largest(self._holds, _LONGEST)
        contexts = self._contexts(most)
        searched = len(self.stage_of) <= _MOST_SEARCHED and not self.machine.neighbours and self.prompts is None
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
            return self.fits(self._held(context, self.at(context)))
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

        degrees = self.considered if searched else sorted(set(self.degrees))
        layers = {degree: self._layers(replace(self.load, context=context), degree) for degree in degrees}
        instances = {degree: self._instance(own) for degree, own in layers.items()}
        costs = self._costs(instances)
        held, limits, cost = self._held(context, costs), self.limits, costs.cost.tolist()
        shares = [size / limit if limit else 0.0 for size, limit in zip(held, limits, strict=True)]
        fullest = max(range(len(held)), key=lambda s: (shares[s], held[s]))
        return ContextPoint(
            context,
            self._rate(context, max(cost)),
            cost.index(max(cost)),
            fullest,
            held[fullest],
            limits[fullest],
            self.fits(held),
            self._most_sequences(costs, held),
            self._best_rate(layers[degrees[0]], instances) if searched else None,
        )

    def _rate(self, context: int, ticks: int) -> float:
        """Return tokens per second: of a step at decode one for each sequence, at prefill those of the prompts."""
        tokens = replace(self.load, context=context).tokens
        return tokens * _PICOSECONDS / ticks if ticks else 0.0

    def _most_sequences(self, costs: StageCosts, each: Sequence[int]) -> int | None:
        rows = zip(costs.state_bytes.tolist(), each, self.limits, strict=True)
        found = []
        for states, held, limit in rows:
            if limit is not None and states:
                found.append(max(0, limit - held + states) // (states // self.sequences))
            elif limit is not None and held > limit:
                found.append(0)
        return min(found, default=None)

    def _best_rate(self, layers: LayerGraph, instances: Mapping[int, Instance]) -> float | None:
        """Return tokens per second of the fastest plan at a context; None where nothing fits.

        Parameters
        ----------
        layers
            At any degree, for the groups that a stage has to hold.
        """
        from mtpp.solvers.layer_chains.devices import ChainDevices
        from mtpp.solvers.layer_chains.search import fastest_plan
        from mtpp.solvers.layer_chains.tables import Alternative, ChainTables, Choice

        groups = [*self.together, *(group for some in layers.groups.values() for group in some)]
        choices = [
            Choice(Alternative(c, degree), instance)
            for c, device in enumerate(self.machine.classes)
            for degree, instance in instances.items()
            if degree in device.tensor.degrees
        ]
        tables = ChainTables.of(choices, groups)
        devices = ChainDevices.of(
            self.machine.class_of, free=self.machine.free, most_used=self.most_used, none_empty=self.none_empty
        )
        found = fastest_plan(tables, devices)
        return None if found is None else self._rate(layers.load.context, found.bottleneck)


def is_served(document: Mapping[str, Any], source: Source | None) -> bool:
    """Whether a plan is of a language model, whose description is at hand."""
    from mtpp.api.inputs.serving import is_load
    from mtpp.formats.graphs.language_model import looks_like_description

    return source is not None and is_load(document["model"]["dims"]) and looks_like_description(source.data)
