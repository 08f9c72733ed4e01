"""``accelerate`` and ``transformers``: a device for each module, given or by their rules.

A map is read by the longest of its keys that is the beginning of a name. ``auto``, ``balanced``, ``balanced_low_0`` and
``sequential`` fill devices in order; accelerate and transformers 5 each have their own numbers for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.language_models.module_trees import llama_names
from mtpp.formats.layouts.balancing import (
    balanced_limits,
    limits_in_order,
    sizes_for_accelerate,
    sizes_for_transformers,
)
from mtpp.formats.layouts.counts import check_counts
from mtpp.formats.layouts.filling import CPU, DISK, Device, Filling, merged
from mtpp.formats.layouts.named_modules import map_by_names
from mtpp.formats.layouts.placed_stages import device_notes, gpus, numbering, refuse_tensor_degrees, refused
from mtpp.formats.layouts.request import (
    LayoutRequest,
    Setting,
    check_keys,
    json_in,
    json_text,
    named,
    refusal,
    uncommented,
)
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout, Range
from mtpp.language_models.modules import Modules

MODES = ("auto", "balanced", "balanced_low_0", "sequential", "infer")
_MAP, _MODE, _MEMORY, _WHOLE, _TYPE = "device_map", "mode", "max_memory", "no_split_module_classes", "dtype"
_FALLBACK = "fallback_allocation"
_KEYS = (_MAP, _MODE, _MEMORY, _WHOLE, _TYPE, _FALLBACK, "offload_buffers", "max_memory_after_balancing")
_ELEMENT_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2, "float64": 8, "float8_e4m3fn": 1}
_ASSIGNED = re.compile(r"device_map\s*[:=]\s*")
_CUDA = re.compile(r"cuda(?::([0-9]+))?", re.ASCII)


def read(setting: Setting | str, request: LayoutRequest, *, transformers: bool = False) -> Layout:
    """Layout of a map, or of a rule.

    Parameters
    ----------
    setting
        A map, or the name of a rule with the limits that it fills devices to.
    request
        The model; without modules, names are Llama's and only a map can be read.
    transformers
        The rules of transformers 5.
    """
    setting = _of_text(setting) if isinstance(setting, str) else _as_keys(setting)
    engine = "transformers" if transformers else "accelerate"
    given = setting.get(_MAP)
    findings = check_keys(setting, _KEYS)
    if given is not None and not isinstance(given, str):
        return _layout_of_map(engine, given, request, findings)
    mode = named(setting, _MODE, default=given if given is not None else "auto")
    if not isinstance(mode, str) or mode not in MODES:
        return _layout_of_map(engine, {"": _whole_device(mode)}, request, findings)
    return _layout_of_rule(engine, mode, setting, request, findings)


def _of_text(text: str) -> Setting:
    line = uncommented(text).strip()
    if line.startswith("{"):
        return _as_keys(json_text(text, "a device_map"))
    found = _ASSIGNED.match(line)
    if found is None:
        return {_MODE: text}
    value = line[found.end() :]
    return {_MODE: value.strip("\"'")} if not value.startswith("{") else _as_keys(json_in(text, _MAP, "a device_map"))


def _as_keys(setting: Setting) -> Setting:
    """Give a bare map of modules the key that it stands for."""
    if not isinstance(setting, Mapping):
        raise InputError(f"is {type(setting).__name__}, not a map", parameter="layout")
    return setting if not setting or any(key in setting for key in _KEYS) else {_MAP: setting}


def _whole_device(name: Any) -> Any:
    if isinstance(name, str) and not _CUDA.fullmatch(name) and name not in (CPU, DISK, "mps"):
        raise refusal(
            "ValueError",
            "When passing device_map as a string, the value needs to be a device name (e.g. cpu, cuda:0) or 'auto', "
            f"'balanced', 'balanced_low_0', 'sequential' but found {name}.",
        )
    return name


def _modules(request: LayoutRequest, names: Mapping[str, Any] | None = None) -> Modules:
    if request.modules is not None:
        modules = request.modules()
        known = len(modules.by_name[modules.layer_prefix].children) if modules.layer_prefix in modules.by_name else 0
        if known and known != request.layers:
            raise InputError(f"the model has {known} layers, not {request.layers}", parameter="layers")
        return modules
    if names is None or not all(name.partition(".")[0] in ("", "model", "lm_head") for name in names):
        raise InputError("sizes and names of modules decide", parameter="layout", remedy="give ‹model›")
    return llama_names(request.layers, request.tied)


def _layout_of_rule(engine: str, mode: str, setting: Setting, request: LayoutRequest, findings: list[str]) -> Layout:
    modules = _modules(request)
    if not isinstance(given := setting.get(_MEMORY), Mapping):
        raise InputError("limits of devices decide", parameter="layout", remedy=f"give {{'{_MEMORY}': {{0: '24GB'}}}}")
    limits = limits_in_order(given)
    own = engine == "transformers"
    whole = setting.get(_WHOLE, modules.undividable) or ()
    whole = [whole] if isinstance(whole, str) else whole
    if not isinstance(whole, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in whole):
        raise InputError(f"{_WHOLE} is {whole!r}, not names of classes", parameter="layout")
    sizes = (sizes_for_transformers if own else sizes_for_accelerate)(modules, _element_bytes(setting.get(_TYPE)))
    if mode not in ("infer", "sequential"):
        low = mode == "balanced_low_0"
        limits = balanced_limits(modules, limits, sizes, whole, transformers=own, low_zero=low)
    fallback = bool(setting.get(_FALLBACK)) and not own
    placed = merged(Filling(modules, limits, sizes, whole, transformers=own, fallback=fallback).run())
    names = {str(device): limit for device, limit in limits.items()}
    return _layout(engine, placed, modules, request, findings, sizes=sizes, limits=names)


def _element_bytes(name: Any) -> int | None:
    if name is None:
        return None
    found = _ELEMENT_BYTES.get(str(name).removeprefix("torch."))
    if found is None:
        raise InputError(
            f"type {name!r} is not known", parameter="layout", remedy=f"known are {', '.join(_ELEMENT_BYTES)}"
        )
    return found


def _layout_of_map(engine: str, given: Any, request: LayoutRequest, findings: list[str]) -> Layout:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InputError("device_map is no map from names of modules to devices", parameter="layout")
    modules = _modules(request, given)
    unknown = [name for name in given if name and name not in modules.by_name]
    if unknown:
        findings.append(f"The following device_map keys do not match any submodules in the model: {unknown}")
    _check_covered(given, modules)
    placed = {name: _device(device, findings) for name, device in given.items()}
    return _layout(engine, placed, modules, request, findings)


def _device(device: Any, findings: list[str]) -> Device:
    match = _CUDA.fullmatch(str(device))
    device = int(match[1] or 0) if match else device
    number = int(device) if isinstance(device, str) and device.isdecimal() else device
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise InputError(f"device {device!r} is neither a number nor a name", parameter="layout")
    if isinstance(number, int) and number < 0:
        findings.append(f"device {number} is a negative number")
    return number


def _check_covered(given: Mapping[str, Any], modules: Modules) -> None:
    """Raise InputError for stored parameters without a device."""
    missing = [
        name for name, t in modules.root.named_tensors() if t.stored and not _covering(name, given, own_name=True)
    ]
    if missing and "" not in given:
        text = "The device_map provided does not give any device for the following parameters: "
        raise refusal("ValueError", text + ", ".join(missing))


def _covering(name: str, placed: Mapping[str, Any], *, own_name: bool = False) -> str | None:
    """Longest key that is a name's beginning."""
    path = name if own_name else name.rpartition(".")[0]
    while path and path not in placed:
        path = path.rpartition(".")[0]
    return path if path in placed else None


def _layout(
    engine: str,
    placed: Mapping[str, Device],
    modules: Modules,
    request: LayoutRequest,
    findings: list[str],
    *,
    sizes: Mapping[str, int] | None = None,
    limits: dict[str, int] | None = None,
) -> Layout:
    on = {
        name: str(placed[key])
        for name, _ in modules.root.named_tensors()
        if (key := _covering(name, placed, own_name=True)) is not None
    }
    layers = _devices_of_layers(on, modules, request.layers)
    tied = _split_ties(on, modules)
    used = list(dict.fromkeys(on.values()))
    devices = [name for name in limits or {} if name in used] + [name for name in used if name not in (limits or {})]
    return Layout(
        engine=engine,
        device_map={name: str(device) for name, device in placed.items()},
        devices=devices,
        devices_of_layers=list(layers),
        divided_layers=_divided(on, layers, modules, sizes),
        layers={name: layers.count(name) for name in dict.fromkeys(layers)},
        ranges=_ranges(layers, devices),
        embedding_on=_device_below(on, modules.embedding),
        final_norm_on=_device_below(on, modules.final_norm),
        head_on=_device_below(on, modules.head),
        output_on=_device_below(on, modules.head),
        token_embedding_on=_device_below(on, modules.embedding),
        max_memory=limits,
        offloaded_bytes=_offloaded(on, modules, sizes),
        findings=[*findings, *tied],
    )


def _devices_of_layers(on: Mapping[str, str], modules: Modules, number: int) -> list[str]:
    """Device of each layer; several joined by ``+`` in the order of its modules."""
    names: list[dict[str, None]] = [{} for _ in range(number)]
    prefix = f"{modules.layer_prefix}."
    for name, device in on.items():
        layer = name.removeprefix(prefix).partition(".")[0]
        if name.startswith(prefix) and layer.isdecimal() and int(layer) < number:
            names[int(layer)][device] = None
    return ["+".join(found) for found in names]


def _divided(
    on: Mapping[str, str], layers: list[str], modules: Modules, sizes: Mapping[str, int] | None
) -> dict[int, dict[str, int]] | None:
    """Bytes by device of layers that were opened."""
    found: dict[int, dict[str, int]] = {i: {} for i, names in enumerate(layers) if "+" in names}
    for i, held in found.items():
        path = f"{modules.layer_prefix}.{i}"
        for name, tensor in modules.by_name[path].named_tensors(path):
            if name in on:
                size = tensor.nbytes if sizes is None else sizes.get(name, 0)
                held[on[name]] = held.get(on[name], 0) + size
    return found or None


def _device_below(on: Mapping[str, str], module: str | None) -> str | None:
    found = dict.fromkeys(device for name, device in on.items() if module and name.startswith(f"{module}."))
    return "+".join(found) or None


def _ranges(layers: list[str], devices: list[str]) -> list[Range] | None:
    """Layers of each device where they are contiguous and whole, otherwise None."""
    found = []
    for device in devices:
        held = [i for i, name in enumerate(layers) if name == device]
        if held and held[-1] - held[0] != len(held) - 1:
            return None
        found.append([held[0], held[-1] + 1] if held else [])
    return found if all(name in devices for name in layers) else None


def _split_ties(on: Mapping[str, str], modules: Modules) -> list[str]:
    groups = [{name: on[name] for name in group if name in on} for group in modules.tied]
    return [f"Tied parameters are on different devices: {group}" for group in groups if len(set(group.values())) > 1]


def _offloaded(on: Mapping[str, str], modules: Modules, sizes: Mapping[str, int] | None) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for name, tensor in modules.root.named_tensors():
        if on.get(name) in (CPU, DISK) and name not in modules.aliases:
            size = tensor.nbytes if sizes is None else sizes.get(name, 0)
            found[on[name]] = found.get(on[name], 0) + size
    return found or None


def write(stages: Sequence[LayerStage], request: LayoutRequest) -> WrittenLayout:
    """Map of modules to GPUs for a plan; a tied head stays with the embedding."""
    refuse_tensor_degrees(stages, "accelerate", "keeps each layer on one GPU")
    check_counts([stage.count for stage in stages], LayoutRequest(layers=request.layers), least=0)
    on, model = gpus(stages), request.described
    try:
        modules = None if any(stage.encoder_count for stage in stages) else _modules(request, {})
    except InputError:
        if model is None or model.source == "gguf":
            raise
        modules = None
    if modules is not None:
        placed, tied = _map(stages, on, modules), bool(modules.tied)
    elif model is not None:
        placed, tied = map_by_names(model, stages, on), model.tied
    else:
        raise refused("names of modules of an encoder and its decoder are not known")
    notes = _notes(stages, request, tied=tied)
    return WrittenLayout({_MAP: placed}, f"device_map = {json.dumps(placed)}\n", notes)


def _map(stages: Sequence[LayerStage], on: Sequence[int], modules: Modules) -> dict[str, int]:
    first, last = (next(i for i, stage in enumerate(stages) if getattr(stage, part)) for part in ("embedding", "head"))
    prefix = f"{modules.layer_prefix}."
    devices = iter([device for device, stage in zip(on, stages, strict=True) for _ in range(stage.count)])
    placed: dict[str, int] = {}
    seen_layers = False
    for name in _parts(modules):
        if name.startswith(prefix):
            placed[name], seen_layers = next(devices), True
        else:
            with_embedding = not seen_layers or (bool(modules.tied) and name == modules.head)
            placed[name] = on[first if with_embedding else last]
    return placed


def _notes(stages: Sequence[LayerStage], request: LayoutRequest, *, tied: bool) -> list[str]:
    notes = device_notes(stages, started=True)
    if before := numbering(stages):
        notes.append(f"start it with {before}: devices are numbered so")
    if len(stages) > 1:
        notes.append("devices compute one after the other: requests do not overlap as in a pipeline")
    if tied and not any(stage.embedding and stage.head for stage in stages):
        notes.append("the tied head is with the embedding, once, not with the final norm")
    if request.mtp:
        notes.append("transformers leaves MTP layers out")
    return notes


def _parts(modules: Modules) -> list[str]:
    """Full names of the layers and of all modules around them."""
    parents = {modules.layer_prefix.rsplit(".", i)[0] for i in range(modules.layer_prefix.count(".") + 1)}
    return [
        name
        for name in modules.by_name
        if name and name not in parents and (name.rpartition(".")[0] in parents or "." not in name)
    ]
