"""Maps of modules to devices, for ``from_pretrained`` and ``dispatch_model``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.errors import Infeasible, InputError
from mtpp.units import format_bytes

if TYPE_CHECKING:
    import torch

    from mtpp.api.language_models.device_limits import Limits
    from mtpp.language_models.module_blocks import ModuleBlock
    from mtpp.language_models.modules import Modules
    from mtpp.machine.machine import Machine

_MOST_BYTES = 2**62
_MOST_TOKENS = 2**40
_CPU, _DISK = "cpu", "disk"


def device_map(
    model: torch.nn.Module | Modules | str | os.PathLike[str] | Mapping[str, Any],
    max_memory: Mapping[int | str, int | str] | None = None,
    *,
    context: int = 0,
    sequences: int = 1,
    machine: str | os.PathLike[str] | Machine | None = None,
) -> dict[str, int | str]:
    """Map modules to devices so that the fullest device, as a share of its limit, is as empty as can be.

    Parameters
    ----------
    model
        A ``torch.nn.Module``, on the meta device for example, a model's folder, its ``config.json``, or a configuration
        of transformers, as an object or a mapping. No weight is read.
    max_memory
        Limits as accelerate takes them: ``{0: "10GiB", 1: "24GiB", "cpu": "64GiB"}``. By default the free memory of the
        GPUs that are present.
    context
        Tokens of each sequence whose caches and states count; with 0 weights alone count.
    sequences
        Sequences held at a time.
    machine
        A machine file, or an :class:`mtpp.Machine`: the bottleneck of a decoding step is least, instead of the share of
        the fullest device. Limits are those of its devices, but for the ones in *max_memory*; a device is the GPU that
        its ``place`` names, such as ``cuda:0``, or else its number.

    Returns
    -------
    Devices by names of modules: ``device_map=`` of transformers' ``from_pretrained``, and of accelerate's
    ``dispatch_model``. Undividable modules (``_no_split_modules``) stay whole, tied weights together.

    Raises
    ------
    InputError
        If a parameter is not right, or nothing is known of the model's modules.
    Infeasible
        If no map keeps the limits.

    Notes
    -----
    Modules are consecutive on each device, in the order of their definition, with devices in any order; among these
    maps the least share is proven. Where none of them keeps the limits, the search is among all maps, and ends with the
    least share of all or with the proof that there is no map. ``cpu`` and ``disk`` take weights only where no map
    without them keeps the limits. On a machine the same maps are searched, with devices in the order that it says, for
    the least bottleneck; where none of them keeps the limits, all maps for the least share.

    Examples
    --------
    >>> import mtpp
    >>> sizes = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "vocab_size": 32000}
    >>> config = {"model_type": "llama", "num_hidden_layers": 4, "dtype": "bfloat16", **sizes}
    >>> mtpp.device_map(config, {0: "200MB", 1: "200MB"})["lm_head"]
    1
    """
    from mtpp.api.language_models.device_limits import limits_of
    from mtpp.api.language_models.machine_maps import fastest_map, keys_of, limits_on, machine_at
    from mtpp.api.language_models.placed_modules import placed_model
    from mtpp.api.parameters import whole

    context = whole(context, "context", least=0, most=_MOST_TOKENS)
    sequences = whole(sequences, "sequences", most=_MOST_TOKENS)
    placed = placed_model(model)
    devices = None if machine is None else machine_at(machine)
    keys = [] if devices is None else keys_of(devices)
    limits = limits_of(max_memory) if devices is None else limits_on(devices, keys, max_memory)
    blocks = placed.blocks(context, sequences)
    if not blocks:
        raise InputError("has no modules to place", parameter="model")
    if sum(block.held_bytes for block in blocks) >= _MOST_BYTES:
        raise InputError("caches of so many tokens are beyond 2^62 bytes", parameter="context")
    if devices is not None:
        numbers = fastest_map(placed, blocks, devices, [limits[key] for key in keys], context, sequences)
        if numbers is not None:
            return _named(placed.modules, blocks, [keys[number] for number in numbers])
    found = _devices(blocks, limits, "max_memory" if devices is None else "machine")
    return _named(placed.modules, blocks, found)


def _devices(blocks: Sequence[ModuleBlock], limits: Limits, parameter: str) -> list[int | str]:
    """Device of each block.

    GPUs alone come first, then GPUs with weights elsewhere, then the CPU alone, then the CPU with weights on disk.

    Parameters
    ----------
    parameter
        Name of the parameter that has the limits.
    """
    from mtpp.solvers.device_maps.least_fullest import Undecided

    gpus = [device for device, limit in limits.items() if device not in (_CPU, _DISK) and limit > 0]
    running, decided = [gpus] if gpus else [], True
    if limits.get(_CPU):
        running.append([_CPU])
    for devices in running:
        room = [limits[device] for device in devices]
        keeping = [place for place in (_CPU, _DISK) if place in limits and place not in devices]
        try:
            found = _whole(blocks, room)
        except Undecided:
            found, decided = None, False
        found = found or _offloaded(blocks, room, limits, keeping)
        if found is not None:
            return [device if isinstance(device, str) else devices[device] for device in found]
    problem, remedy = _told(blocks, limits, decided), "raise a limit"
    if parameter == "max_memory" and _DISK not in limits:
        remedy += ", or name 'cpu' or 'disk' to offload weights"
    raise Infeasible(problem, parameter=parameter, remedy=remedy)


def _whole(blocks: Sequence[ModuleBlock], room: Sequence[int]) -> Sequence[int | str] | None:
    """Map without weights elsewhere."""
    from mtpp.solvers.device_maps.anywhere import least_fullest_anywhere
    from mtpp.solvers.device_maps.in_order import least_fullest_in_order

    sizes = [block.held_bytes for block in blocks]
    found = least_fullest_in_order(sizes, room) or least_fullest_anywhere(sizes, room)
    return None if found is None else found[0]


def _offloaded(
    blocks: Sequence[ModuleBlock], room: Sequence[int], limits: Limits, keeping: Sequence[str]
) -> list[int | str] | None:
    """Map with as few blocks as can be elsewhere, the last ones."""
    from mtpp.solvers.device_maps.offloaded import least_offloaded

    if not keeping:
        return None
    found = least_offloaded([block.bytes for block in blocks], [block.cache_bytes for block in blocks], room)
    if found is None:
        return None
    placed: list[int | str] = list(found)
    left = limits[_CPU] if _CPU in keeping else -1
    for block in blocks[len(placed) :]:
        if block.bytes <= left:
            left -= block.bytes
            placed.append(_CPU)
        elif _DISK in keeping:
            placed.append(_DISK)
        else:
            return None
    return placed


def _told(blocks: Sequence[ModuleBlock], limits: Limits, decided: bool) -> str:
    """Say why no map keeps the limits."""
    running = {device: limit for device, limit in limits.items() if device != _DISK}
    held, room = sum(block.held_bytes for block in blocks), sum(running.values())
    largest = max(blocks, key=lambda block: block.held_bytes)
    most = max(running.values())
    if held > room and _DISK not in limits:
        return f"the model takes {format_bytes(held)}, all devices together have {format_bytes(room)}"
    if largest.held_bytes > most:
        names = " and ".join(largest.names[:3])
        return f"{names} takes {format_bytes(largest.held_bytes)}, the largest limit is {format_bytes(most)}"
    return "no map of whole blocks keeps the limits" if decided else "no map that keeps the limits was found"


def _named(modules: Modules, blocks: Sequence[ModuleBlock], devices: Sequence[int | str]) -> dict[str, int | str]:
    """Map by names, in the order of definition; modules whose parts share a device stand for them."""
    from mtpp.formats.layouts.filling import merged

    placed = {name: device for block, device in zip(blocks, devices, strict=True) for name in block.names}
    found = merged(placed)
    order = {name: i for i, name in enumerate(_all_names(modules))}
    return {name: found[name] for name in sorted(found, key=order.__getitem__)}


def _all_names(modules: Modules) -> list[str]:
    names = []
    for path, module in modules.root.walk():
        names.append(path)
        names += [f"{path}.{tensor.name}" if path else tensor.name for tensor in module.tensors]
    return names
