"""Audit of a layout: time and memory of each stage on its device, and faults with their consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil

from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.language_models.audit_records import CPU, LLAMA_CPP, AuditedStage, LayoutAudit, MovedBytes
from mtpp.language_models.layer_names import LayerNames
from mtpp.language_models.layout import Layout
from mtpp.language_models.layout_faults import consequences, findings, notes
from mtpp.language_models.placed_layout import WHOLE, Holder, PlacedLayout, placed_layout
from mtpp.language_models.set_cost import SetCost, cost_of_set

_DIRECT = "tensors are charged as if devices sent them directly: not all stages follow each other on devices"


def audited(
    instance: Instance,
    layout: Layout,
    *,
    devices: Mapping[int, int] | None = None,
    cpu: int | None = None,
    moved: MovedBytes | None = None,
    groups: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> LayoutAudit:
    """Audit a layout of a language model whose layer graph an instance is made of.

    Parameters
    ----------
    devices
        Number in the machine of each device of the engine; None: the machine's own.
    cpu
        Number of the device that works on layers of llama.cpp's CPU, None where none does.
    moved
        Weights that are in other buffers than their layers.
    groups
        Ops that one stage has to hold, by the reason.

    Raises
    ------
    InputError
        If there are more stages than devices, or the layout does not say where layers are.

    Notes
    -----
    Layers in no stage cost nothing, those in two are charged to both. A device with several stages is charged for all
    of them together. Of a layer that devices share, each has work, weights and caches by its part of the bytes.
    """
    names = LayerNames.of(instance.op_names)
    placed = placed_layout(layout, len(names.decoder), len(names.mtp))
    holders = _with_encoder(placed, names, layout)
    audit = _Audit(instance, names, devices, cpu if layout.engine == LLAMA_CPP else None, moved or {})
    stages = audit.with_buffers([audit.stage(holder) for holder in holders])
    told = []
    if instance.cost.boundary is not None:
        passed = _with_boundaries(instance, stages) if placed.in_order else None
        told = [_DIRECT] if passed is None else []
        stages = passed or stages
    found = LayoutAudit(layout, placed, stages, (), (), apart=_apart(groups or {}, stages))
    told = [*notes(found, names), *told]
    return replace(found, findings=findings(found, names), consequences=consequences(found), notes=told)


def _apart(groups: Mapping[str, Sequence[Sequence[str]]], stages: Sequence[AuditedStage]) -> dict[str, list[str]]:
    """Return the ops of groups that several stages hold, by the reason."""
    found: dict[str, list[str]] = {}
    for reason, members in groups.items():
        for group in members:
            if sum(not set(group).isdisjoint(stage.ops) for stage in stages) > 1:
                found.setdefault(reason, []).extend(group)
    return found


def _with_boundaries(instance: Instance, stages: Sequence[AuditedStage]) -> list[AuditedStage] | None:
    """Charge stages for all tensors that pass their boundaries; None unless each op is in one stage on a device."""
    busy = [i for i, stage in enumerate(stages) if stage.device is not None and stage.is_busy]
    order = [device for device in (stages[i].device for i in busy) if device is not None]
    spare = [device for device in range(instance.cost.machine.count) if device not in order]
    held = {name: place for place, i in enumerate(busy) for name in stages[i].ops}
    if len(held) < instance.op_count or sum(len(stages[i].ops) for i in busy) > len(held):
        return None
    placed = instance.on([*order, *spare])
    costs = stage_costs(placed, Partition.from_stages(placed, [held[name] for name in instance.op_names]))
    found = list(stages)
    for place, i in enumerate(busy):
        arriving, leaving = int(costs.input[place]), int(costs.output[place])
        found[i] = replace(stages[i], cost=replace(stages[i].cost, input=arriving, output=leaving))
    return found


def _with_encoder(placed: PlacedLayout, names: LayerNames, layout: Layout) -> list[Holder]:
    """Give layers of an encoder to the devices that a map names, all others to that of the embedding."""
    holders = list(placed.holders)
    if not names.encoder:
        return holders
    first = next((i for i, holder in enumerate(holders) if holder.embedding), 0)
    held: dict[int, list[int]] = {}
    for number, name in enumerate(names.encoder):
        on = _device_in_map(layout.device_map or {}, name)
        found = (i for i, holder in enumerate(holders) if on is not None and holder.name == on)
        held.setdefault(next(found, first), []).append(number)
    return [replace(holder, encoder=held.get(i, ())) for i, holder in enumerate(holders)]


def _device_in_map(given: Mapping[str, str], name: str) -> str | None:
    while name and name not in given:
        name = name.rpartition(".")[0]
    return given.get(name)


@dataclass
class _Audit:
    """An audit in the making."""

    instance: Instance
    names: LayerNames
    devices: Mapping[int, int] | None
    cpu: int | None
    moved: MovedBytes
    away: dict[str, int] = field(default_factory=dict)

    @cached_property
    def index(self) -> dict[str, int]:
        """Number of each op by its name."""
        return {name: v for v, name in enumerate(self.instance.op_names)}

    def stage(self, holder: Holder) -> AuditedStage:
        """Time and memory of a device."""
        ops = self._ops(holder)
        device = self._device(holder)
        numbers = [self.index[name] for name in ops]
        machine = self.instance.cost.machine
        kind = 0 if device is None else machine.class_of[device]
        cost = self._corrected(cost_of_set(self.instance, numbers, kind), holder, ops, kind)
        if device is None:
            still = replace(cost, work=0, input=0, output=0, overflow=0, peak_bytes=0)
            return AuditedStage(holder, None, holder.name, still, None, timed=False, ops=ops)
        limit = machine.classes[kind].memory_bytes
        return AuditedStage(holder, device, self._device_name(device), cost, limit, ops=ops)

    def _device_name(self, device: int) -> str:
        machine = self.instance.cost.machine
        return machine.names[device] if machine.groups[0].name else str(device)

    def _device(self, holder: Holder) -> int | None:
        """Return the number of the device, None for a place that is none."""
        if holder.place is None:
            return self.cpu if holder.name == CPU else None
        count = self.instance.cost.machine.count
        device = holder.place if self.devices is None else self.devices.get(holder.place, count)
        if device >= count:
            known = count if self.devices is None else len(self.devices)
            raise InputError(
                f"stands on device {holder.place}, counted from 0, and there are {known}",
                parameter="layout",
                remedy="raise ‹k›, or give a machine with more devices",
            )
        return device

    def _ops(self, holder: Holder) -> list[str]:
        """Names of ops in the order of the graph, each once."""
        names, found = self.names, []
        if holder.embedding:
            found.append(names.embedding)
        found += [names.encoder[i] for i in holder.encoder]
        if holder.embedding and names.decoder_embedding is not None:
            found.append(names.decoder_embedding)
        layers = [*names.decoder, *names.mtp]
        own = dict.fromkeys(layers[i] for i in holder.layers if i < len(layers))
        further = [name for name in own if name in names.mtp]
        head = [names.head] if holder.head else []
        return [*found, *(name for name in own if name not in further), *head, *further]

    def _corrected(self, cost: SetCost, holder: Holder, ops: Sequence[str], kind: int) -> SetCost:
        """Add layers that run twice on a device; take off parts that others have, and weights in other buffers."""
        parts = self.instance.cost
        layers = [*self.names.decoder, *self.names.mtp]
        added = [(i, Fraction(holder.layers.count(i) - 1)) for i in set(holder.layers) if holder.layers.count(i) > 1]
        added += [(i, share - WHOLE) for i, share in holder.shares.items()]
        work, params, states = cost.work, cost.param_bytes, cost.state_bytes
        for layer, factor in sorted(added):
            op = self.index[layers[layer]]
            alone = cost_of_set(self.instance, [op], kind)
            work += ceil(int(parts.work[kind, op]) * factor)
            params += ceil(alone.param_bytes * factor)
            states += ceil(alone.state_bytes * factor)
        for name in ops:
            for buffer, size in self.moved.get(name, {}).items():
                if buffer != holder.name:
                    params -= size
                    self.away[buffer] = self.away.get(buffer, 0) + size
        overflow = cost.overflow
        if params != cost.param_bytes:
            overflow = parts.overflow(params, cost.peak_bytes, parts.machine.classes[kind])
        return replace(cost, work=work, overflow=overflow, param_bytes=params, state_bytes=states)

    def with_buffers(self, stages: Sequence[AuditedStage]) -> list[AuditedStage]:
        """Add weights that patterns move away from their layers to the places that they move to."""
        found = []
        for stage in stages:
            size = self.away.pop(stage.holder.name, 0)
            cost = replace(stage.cost, param_bytes=stage.cost.param_bytes + size)
            found.append(replace(stage, cost=cost, moved_bytes=size) if size else stage)
        rest = [
            AuditedStage(Holder(name, None), None, name, SetCost(param_bytes=size), timed=False, moved_bytes=size)
            for name, size in self.away.items()
        ]
        return found + rest
