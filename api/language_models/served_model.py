"""Language models as read, with their layers: layouts read and audited on the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.errors import InputError
from mtpp.language_models.layer_names import LayerNames
from mtpp.language_models.serving_load import DECODE, ServingLoad

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.language_models.given_layout import GivenLayout
    from mtpp.inference.instance import Instance
    from mtpp.language_models.audit_records import LayoutAudit
    from mtpp.language_models.language_model import LanguageModel

_CUDA = re.compile(r"cuda(?::([0-9]{1,6}))?", re.ASCII)

_ONE_GPU = ("accelerate", "transformers", "llama.cpp", "exo", "petals")
"""Engines that keep each layer on one GPU."""


class AuditOnMachine(NamedTuple):
    """An audit, the instance that it is of, and the GPUs that share each layer."""

    instance: Instance
    audit: LayoutAudit
    degree: int


@dataclass(frozen=True)
class ServedModel:
    """A language model as read, with its layers.

    Attributes
    ----------
    model
        Its graph and the machine.
    described
        Layers with caches and weights, those for further tokens as many as the load has.
    """

    model: Model
    described: LanguageModel

    @classmethod
    def of(cls, model: Model) -> ServedModel:
        """Look up the layers that a graph is made of.

        Raises
        ------
        InputError
            If the graph is of something else.
        """
        from mtpp.formats.graphs.language_model import looks_like_description
        from mtpp.formats.language_models.description import model_in
        from mtpp.language_models.layer_graph import layer_graph

        source = model.source_with_data()
        if not looks_like_description(source.data):
            problem = "is no language model, and layouts are of their layers"
            raise InputError(problem, source=source.display, remedy="give its folder or config.json")
        return cls(model, layer_graph(model_in(source), ServingLoad.of_sizes(model.dims)).model)

    @cached_property
    def names(self) -> LayerNames:
        """Ops of the layers."""
        return LayerNames.of(self.model.graph.op_names)

    @property
    def groups(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """Ops that one stage has to hold, by the reason."""
        from mtpp.formats.modelled.kept_together import groups_of

        return groups_of(self.model.graph.metadata)

    def for_stages(self, count: int) -> ServedModel:
        """Return the model for so many stages, which share the sequences where nobody says otherwise."""
        from mtpp.api.inputs.model import for_stages

        return ServedModel(for_stages(self.model, count), self.described)

    def layout(self, engine: str, layout: Any, k: int | None) -> GivenLayout:
        """Read a layout for the model on its machine.

        Raises
        ------
        InputError
            If the engine refuses it, or the number of stages is not known.
        """
        from mtpp.api.language_models.given_layout import pasted, read_given
        from mtpp.api.language_models.read_layout import facts_of_model
        from mtpp.formats.layouts.request import LayoutRequest

        found, machine, path = pasted(engine, layout), self.model.machine, self.model.source.path
        request = LayoutRequest(
            layers=len(self.names.decoder),
            stages=k,
            mtp=len(self.names.mtp),
            tied=self.described.tied,
            described=self.described,
            **({} if path is None else facts_of_model(path)),
        )
        devices = None
        if machine is not None:
            numbers = self.gpus
            seen = numbers.values() if found.devices is None else (numbers[n] for n in found.devices if n in numbers)
            devices = [machine.devices[number] for number in seen]
        return read_given(found, request, devices)

    def places(self, given: GivenLayout) -> list[int]:
        """Return the numbers of devices that a layout names."""
        from mtpp.language_models.placed_layout import placed_layout

        placed = placed_layout(given.layout, len(self.names.decoder), len(self.names.mtp))
        return [holder.place for holder in placed.holders if holder.place is not None]

    @cached_property
    def gpus(self) -> dict[int, int]:
        """Number of the device of each first GPU: by places such as ``cuda:1``, or else as the machine lists them."""
        machine = self.model.machine
        assert machine is not None
        matches = [_CUDA.fullmatch(place) for place in machine.places]
        numbers = [int(match[1] or 0) for match in matches if match is not None]
        if not numbers or len(set(numbers)) < len(numbers):
            return {first: i for i, first in enumerate(machine.first_gpus)}
        return {int(match[1] or 0): i for i, match in enumerate(matches) if match is not None}

    @property
    def cpu(self) -> int | None:
        """Number of the device that is the CPU beside GPUs; None where there is none."""
        machine = self.model.machine
        if machine is None or len(self.gpus) != machine.count - 1:
            return None
        return next(i for i in range(machine.count) if i not in self.gpus.values())

    def audit(
        self, given: GivenLayout, k: int | None, order: Sequence[int] | None = None, degree: int | None = None
    ) -> AuditOnMachine:
        """Audit a layout on the machine, or on as many equal devices as it has stages.

        Parameters
        ----------
        order
            Number of the device of each stage, where the text does not say it.
        degree
            GPUs of each stage; None: as the text says, or the fastest that all of its devices have.

        Raises
        ------
        InputError
            If it has more stages than there are devices.
        """
        from mtpp.formats.layouts.tensor_overrides import moved_bytes
        from mtpp.language_models.layout_audit import audited

        moved = moved_bytes(self.described, given.layout.overrides or ())
        if self.model.machine is None:
            own, firsts = given.pasted.tensor_parallel or 1, given.pasted.first_gpus
            self._check_degree(own)
            devices = None if firsts is None else {i: first // own for i, first in enumerate(firsts)}
            count = max([k or 1, *(place + 1 for place in [*self.places(given), *(devices or {}).values()])])
            instance = self.model.instance(count)
            audit = audited(instance, given.layout, devices=devices, moved=moved, groups=self.groups)
            return AuditOnMachine(instance, audit, 1)
        devices = self._devices(given, order)
        on: dict[str, Any] = {"devices": devices, "cpu": self.cpu, "moved": moved, "groups": self.groups}
        found = [
            AuditOnMachine(instance, audited(instance, given.layout, **on), own)
            for own, instance in self._instances(given, degree or given.pasted.tensor_parallel, devices).items()
        ]
        return min(found, key=lambda one: (not one.audit.fits, one.audit.bottleneck))

    def _instances(self, given: GivenLayout, degree: int | None, devices: Mapping[int, int]) -> dict[int, Instance]:
        """Return the instance of each degree of tensor parallelism that all stages may have.

        Raises
        ------
        InputError
            If a device does not have the degree asked for, or the engine keeps layers on one GPU.
        """
        from mtpp.api.inputs.degrees import degree_instances, degrees_of_classes

        engine = given.pasted.engine
        if self.model.degrees is None:
            self._check_degree(given.pasted.tensor_parallel)
            return {1: self.model.whole_instance(None)}
        of_classes = degrees_of_classes(self.model)
        common = set.intersection(*(set(of_classes[kind]) for kind in self._classes(given, devices)))
        if engine in _ONE_GPU:
            common &= {1}
        allowed = common if degree is None else common & {degree}
        if not allowed:
            of = (
                "a tensor degree that all of its devices have"
                if degree is None
                else f"devices of tensor degree {degree}"
            )
            raise InputError(
                f"{engine} needs {of}", parameter="machine", remedy="change tensor_parallel of its devices"
            )
        instances = degree_instances(self.model, None)
        return {one: instances[one] for one in sorted(allowed)}

    def _check_degree(self, degree: int | None) -> None:
        """Raise InputError if a text has a tensor degree that devices without degrees cannot have."""
        if degree not in (None, 1, ServingLoad.of_sizes(self.model.dims).degree):
            remedy = "give devices of a machine tensor_parallel and tensor_link"
            raise InputError(f"has tensor degree {degree}", parameter="layout", remedy=remedy)

    def _classes(self, given: GivenLayout, devices: Mapping[int, int]) -> set[int]:
        """Return the classes of the devices that a layout names; of all where it names one that there is not."""
        machine = self.model.machine
        assert machine is not None
        classes = machine.class_of
        places = self.places(given)
        if not places or not devices.keys() >= {*places}:
            return {*classes}
        return {classes[devices[place]] for place in places}

    def _devices(self, given: GivenLayout, order: Sequence[int] | None) -> dict[int, int]:
        """Return the device in the machine of each device that the engine sees."""
        firsts = given.pasted.first_gpus
        if order is not None:
            return dict(enumerate(order))
        if firsts is None:
            return self.gpus if given.layout.devices_of_layers is not None else dict(enumerate(self.gpus.values()))
        found = [self._device_of_gpu(number) for number in firsts]
        twice = next((number for number, device in zip(firsts, found, strict=True) if found.count(device) > 1), None)
        if twice is not None:
            problem = f"GPU {twice} is of a device that another stage is on"
            raise InputError(problem, parameter="layout", remedy="give each stage a device of the machine")
        return dict(enumerate(found))

    def _device_of_gpu(self, number: int) -> int:
        """Return the number of the device that a GPU belongs to."""
        machine = self.model.machine
        assert machine is not None
        for first, device in self.gpus.items():
            if first <= number < first + machine.devices[device].tensor.degrees[-1]:
                return device
        raise InputError(f"names GPU {number}, which the machine has not", parameter="layout")

    def capacity(self, found: AuditOnMachine) -> dict[str, Any] | None:
        """Return the largest context that stages hold; None without a limit on memory, and of a prefill."""
        from mtpp.language_models.capacity import StageRoom, capacity_of_stages
        from mtpp.language_models.tensor_parallel import divided

        audit = found.audit
        load = ServingLoad.of_sizes(self.model.dims)
        limited = any(stage.limit_bytes is not None for stage in audit.stages)
        if load.phase != DECODE or not limited or any(stage.holder.encoder for stage in audit.stages):
            return None
        share = divided(self.described, found.degree) if found.degree > 1 else self.described
        caches = {layer.name: layer.cache for layer in [*share.layers, *share.mtp]}
        rooms = []
        for stage in audit.stages:
            kept = stage.cost.param_bytes + stage.cost.peak_bytes
            free = None if stage.limit_bytes is None else stage.limit_bytes - kept
            rooms.append(StageRoom([caches[name] for name in stage.layers if name in caches], free))
        sequences = found.instance.device.sequences
        held = capacity_of_stages(rooms, sequences=sequences, kv_dtype=load.kv_dtype)
        return {
            "objective": held.objective,
            "sequences": sequences,
            "value": held.value,
            "deciding_stage": held.deciding,
            "of_stages": list(held.of_stages),
        }
