"""Maps of modules to the devices of a machine, with the least bottleneck."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.api.language_models.device_limits import given_limits
from mtpp.errors import InputError
from mtpp.language_models.serving_load import DEFAULT_CONTEXT, ServingLoad

if TYPE_CHECKING:
    from mtpp.api.language_models.device_limits import Limits
    from mtpp.api.language_models.placed_modules import PlacedModel
    from mtpp.inference.instance import Instance
    from mtpp.language_models.module_blocks import ModuleBlock
    from mtpp.machine.machine import Machine

_CUDA = re.compile(r"cuda:([0-9]+)", re.ASCII)


def machine_at(machine: Any) -> Machine:
    """Return a machine of devices that a map of modules can stand on.

    Raises
    ------
    InputError
        If it is no machine, or has devices or links that a map does not have.
    """
    from mtpp.api.options.machine import OnMachine, System

    found = OnMachine(machine=machine).placed_for(System())
    if found is None:
        raise InputError("must be given", parameter="machine")
    device = next((one for one in found.classes if one.tensor or one.costs or one.stage_times_ps), None)
    if device is not None:
        key = "tensor_parallel" if device.tensor else "costs" if device.costs else "stage_times"
        raise InputError(f"{key} of devices is not for maps of modules", parameter="machine", remedy="leave it out")
    if found.neighbours:
        problem = "modules send their results from device to device, not over neighbours"
        raise InputError(problem, parameter="machine", where="/transport", remedy='use "direct"')
    return found


def keys_of(machine: Machine) -> list[int | str]:
    """Device of each of a machine's: the GPU of its place, or else its number."""
    found: list[int | str] = [
        int(match[1]) if (match := _CUDA.fullmatch(place)) else number for number, place in enumerate(machine.places)
    ]
    if len(set(found)) < len(found):
        raise InputError("two of its devices are one GPU", parameter="machine", where="/device", remedy="give ‹place›s")
    return found


def limits_on(machine: Machine, keys: Sequence[int | str], max_memory: Any) -> Limits:
    """Bytes of each device: its own memory without the reserve, or as given.

    Raises
    ------
    InputError
        If one has no limit, or a limit is of no device of the machine.
    """
    given = {} if max_memory is None else given_limits(max_memory)
    stranger = next((device for device in given if device not in keys), None)
    if stranger is not None:
        problem = f"the machine has no device {stranger}"
        raise InputError(problem, parameter="max_memory", remedy="nothing is offloaded on a ‹machine›")
    limits: Limits = {}
    for key, name, device in zip(keys, machine.names, machine.devices, strict=True):
        if key in given:
            limits[key] = given[key]
        elif device.memory_bytes is None:
            raise InputError(f"device {name} has no memory", parameter="machine", remedy="give it, or ‹max_memory›")
        else:
            limits[key] = max(0, device.memory_bytes - device.activation_reserve_bytes)
    return limits


def fastest_map(
    model: PlacedModel,
    blocks: Sequence[ModuleBlock],
    machine: Machine,
    limits: Sequence[int],
    context: int,
    sequences: int,
) -> list[int] | None:
    """Device of each block by number, with the least bottleneck of a decoding step; None if none keeps the limits."""
    from mtpp.inference.instance import Instance
    from mtpp.language_models.layer_graph import layer_graph
    from mtpp.solvers.device_maps.fastest import fastest_in_order

    load = ServingLoad(
        context=context or DEFAULT_CONTEXT, batch=-(-sequences // machine.count), kv_dtype=model.cache_type, mtp=0
    )
    language_model = model.language_model
    graph = layer_graph(language_model, load)
    for name, device in zip(machine.names, machine.devices, strict=True):
        if None in device.rates:
            raise InputError(f"device {name} has no rates", parameter="machine", remedy="give its system")
    graphs = [graph.cost_graph(device) for device in machine.classes]
    instance = Instance.build(graphs[0], machine, [one.work for one in graphs])
    places = _blocks_of_ops(model, blocks, instance)
    weights = [block.bytes for block in blocks]
    return fastest_in_order(instance, places, weights, [block.held_bytes for block in blocks], limits)


def _blocks_of_ops(model: PlacedModel, blocks: Sequence[ModuleBlock], instance: Instance) -> list[int]:
    """Block of each op: a layer's own, and that of the embedding or of the head."""
    from mtpp.language_models.layer_graph import DECODER_EMBEDDING, EMBEDDING, HEAD

    place = {name: number for number, block in enumerate(blocks) for name in block.names}
    first = _place_of(model.modules.embedding, place, 0)
    last = _place_of(model.modules.head or model.modules.final_norm, place, len(blocks) - 1)
    names = model.layer_names
    around = {EMBEDDING: first, DECODER_EMBEDDING: first, HEAD: last}
    return [around[op] if op in around else _place_of(names[op], place, first) for op in instance.op_names]


def _place_of(name: str | None, place: Mapping[str, int], otherwise: int) -> int:
    """Block that holds a module, or the first one of its parts."""
    if name is None:
        return otherwise
    path = name
    while path and path not in place:
        path = path.rpartition(".")[0]
    parts = (number for inner, number in place.items() if inner.startswith(f"{name}."))
    return place[path] if path else min(parts, default=otherwise)
