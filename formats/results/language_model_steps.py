"""FLOPs and bytes of a step of a language model, by layer and in all, as JSON takes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from mtpp.language_models.arithmetic import Step, decode, embedding, head, prefill
from mtpp.language_models.language_model import DecoderLayer, LanguageModel
from mtpp.language_models.layer_graph import DECODER_EMBEDDING, EMBEDDING, HEAD, layer_graph
from mtpp.language_models.serving_load import ServingLoad
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine


def add_steps(document: dict[str, Any], model: LanguageModel, phases: Sequence[str], batch: int) -> None:
    """Add the steps of phases to the document of a model: to each layer, to its other parts, and in all.

    Parameters
    ----------
    phases
        ``decode``: a further token of each sequence, the last of its context. ``prefill``: a prompt that fills the
        context.
    batch
        Sequences in a step.
    """
    context, kv_dtype = document["context"], document["kv_dtype"]
    document["batch"], document["steps"] = batch, {}
    for phase in phases:

        def of_layer(layer: DecoderLayer, phase: str = phase) -> Step | None:
            if phase == "decode":
                return decode(layer, batch, context, source=context, kv_dtype=kv_dtype)
            return prefill(layer, context, sequences=batch, source=context, kv_dtype=kv_dtype)

        steps = [of_layer(layer) for layer in model.layers]
        for name in ("layers", "mtp"):
            for entry, layer in zip(document[name], getattr(model, name), strict=True):
                entry.setdefault("steps", {})[phase] = _step(of_layer(layer))
        parts = {
            "embedding": embedding(model, batch * (1 if phase == "decode" else context)),
            "head": head(model, batch),
        }
        for name, step in parts.items():
            document[name].setdefault("steps", {})[phase] = _step(step)
        document["steps"][phase] = _whole([*steps, *parts.values()])


def add_times(document: dict[str, Any], model: LanguageModel, machine: Machine) -> None:
    """Add the times of :func:`add_steps` on one GPU of each kind of device, as plans have them.

    They are ``time_ps`` of each step, in the order of ``devices``; None where measured times take their place.
    """
    numbers = machine.class_of
    first = [numbers.index(i) for i in range(len(machine.classes))]
    document["devices"] = [
        {"name": machine.names[place], "count": numbers.count(i), "memory_bytes": machine.classes[i].memory_bytes}
        for i, place in enumerate(first)
    ]
    parts = {EMBEDDING: document["embedding"], DECODER_EMBEDDING: document["embedding"], HEAD: document["head"]}
    parts |= {layer["name"]: layer for layer in [*document["layers"], *document["mtp"]]}
    for phase, whole in document["steps"].items():
        load = ServingLoad(phase, document["context"], document["batch"], document["kv_dtype"])
        ops = layer_graph(model, load).ops
        total = [0] * len(first)
        for op in ops:
            times = [None if _is_measured(device) else op.time_ps(device) for device in machine.classes]
            step = parts[op.name]["steps"][phase]
            if step is not None:
                before = step.get("time_ps") or [0] * len(times)
                step["time_ps"] = [
                    None if time is None else time + old for time, old in zip(times, before, strict=True)
                ]
            if op.name not in {layer.name for layer in model.mtp}:
                total = [old + (time or 0) for time, old in zip(times, total, strict=True)]
        if whole is not None:
            whole["time_ps"] = [
                None if _is_measured(device) else time for device, time in zip(machine.classes, total, strict=True)
            ]


def _is_measured(device: Device) -> bool:
    return bool(device.costs or device.stage_times_ps)


def _step(step: Step | None) -> dict[str, int] | None:
    if step is None:
        return None
    return {
        "flops": step.flops,
        "weight_bytes": ceil(step.weight_bytes),
        "cache_bytes_read": step.read_bytes,
        "cache_bytes_written": step.written_bytes,
    }


def _whole(steps: Sequence[Step | None]) -> dict[str, int] | None:
    """Sum steps; None where one is not known."""
    known = [entry for entry in map(_step, steps) if entry is not None]
    if len(known) < len(steps):
        return None
    return {key: sum(entry[key] for entry in known) for key in known[0]}
