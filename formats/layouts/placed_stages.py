"""Stages of a plan against the rules of engines: numbers of layers, one tensor degree, GPUs in the order of stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

from mtpp.errors import InputError
from mtpp.formats.layouts.request import LayoutRequest, listed
from mtpp.language_models.layer_stages import LayerStage

_CUDA = re.compile(r"cuda(?::([0-9]+))?", re.ASCII)


def refused(problem: str, *, layers_only: bool = False) -> InputError:
    """Error that an engine cannot express a plan."""
    return InputError(problem, parameter="form", remedy="plan with ‹layers_only›" if layers_only else None)


def stage_counts(stages: Sequence[LayerStage], engine: str) -> list[int]:
    """Numbers of layers for an engine that keeps the embedding in the first stage, norm and head in the last.

    Raises
    ------
    InputError
        If a stage has no layer, or there is an encoder.
    """
    check_ends(stages, engine)
    for stage in stages:
        if not stage.count:
            raise refused(f"stage {stage.number} has {_held(stage)} alone, and {engine} gives each stage a layer",
                          layers_only=True)  # fmt: skip
    return [stage.count for stage in stages]


def check_ends(stages: Sequence[LayerStage], engine: str) -> None:
    """Raise InputError unless the embedding is in the first stage, the head in the last, and there is no encoder."""
    if any(stage.encoder_count or stage.decoder_embedding for stage in stages):
        raise refused(f"{engine} does not cut models with an encoder into stages")
    for stage, held, what, place in ((stages[0], stages[0].embedding, "embedding", "first"),
                                     (stages[-1], stages[-1].head, "head", "last")):  # fmt: skip
        if not held:
            own = next(one.number for one in stages if getattr(one, what))
            raise refused(f"the {what} is in stage {own}, and {engine} keeps it in the {place} one, {stage.number}")


def _held(stage: LayerStage) -> str:
    return "the embedding" if stage.embedding else "head and MTP layers" if stage.mtp else "the head"


def tensor_degree(stages: Sequence[LayerStage], engine: str) -> int:
    """Return the number of GPUs that share each layer, of an engine that has one number for all stages.

    Raises
    ------
    InputError
        If stages differ.
    """
    degrees = [stage.tensor_parallel for stage in stages]
    if len(set(degrees)) > 1:
        problem = f"stages have tensor degrees {listed(degrees)}, and {engine} has one for all"
        raise refused(problem, layers_only=True)
    return degrees[0]


def rank_count(stages: Sequence[LayerStage], request: LayoutRequest) -> int:
    """Return the number of ranks, of which each has the same number of virtual stages.

    Raises
    ------
    InputError
        If stages do not divide among ranks, or virtual stages have devices of their own.
    """
    ranks = request.stages or len(stages)
    if len(stages) % ranks:
        raise refused(f"{len(stages)} stages are no multiple of {ranks} ranks")
    if len(stages) > ranks and any(stage.device is not None for stage in stages):
        raise refused("virtual stages share devices, and stages of this plan have a device each")
    return ranks


def refuse_tensor_degrees(stages: Sequence[LayerStage], engine: str, why: str) -> None:
    """Raise InputError if GPUs share layers."""
    degree = max(stage.tensor_parallel for stage in stages)
    if degree > 1:
        raise refused(f"a stage has tensor degree {degree}, and {engine} {why}")


def first_gpu(stage: LayerStage) -> int | None:
    """Return the number of the first GPU of a stage: that of its place, or of its device; None without a machine."""
    named = _CUDA.fullmatch(stage.place)
    if named:
        return int(named[1] or 0)
    if stage.gpu is not None:
        return stage.gpu
    return None if stage.device is None else stage.device * stage.tensor_parallel


def gpus(stages: Sequence[LayerStage]) -> list[int]:
    """Return the GPUs of all stages in the order of ranks; 0, 1, 2, … without a machine."""
    firsts = [first_gpu(stage) for stage in stages]
    if None in firsts:
        return list(range(sum(stage.tensor_parallel for stage in stages)))
    return [
        first + i for stage, first in zip(stages, firsts, strict=True) if first is not None
        for i in range(stage.tensor_parallel)
    ]  # fmt: skip


def visible_gpus(stages: Sequence[LayerStage]) -> str | None:
    """Return ``CUDA_VISIBLE_DEVICES``; None where ranks are GPUs 0, 1, 2, … anyway."""
    found = gpus(stages)
    return None if found == list(range(len(found))) else ",".join(map(str, found))


def environment(stages: Sequence[LayerStage], **variables: str) -> str:
    """Return assignments before a command: the variables, after the GPUs where their order is not the machine's.

    CUDA numbers unequal GPUs by their speed where nobody says otherwise, ``nvidia-smi`` by their bus.
    """
    shown = visible_gpus(stages)
    given = ({} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}) | variables
    order = numbering(stages)
    return "".join(f"{word} " for word in [*([order] if order else []), *map("=".join, given.items())])


def numbering(stages: Sequence[LayerStage]) -> str:
    """Return the assignment that numbers GPUs as a list of ``nvidia-smi`` does; empty where it is all the same."""
    listed = all(stage.device is not None for stage in stages)
    single = all(stage.tensor_parallel == 1 and stage.gpu in (None, stage.device) for stage in stages)
    differ = visible_gpus(stages) is not None or len({stage.name for stage in stages}) > 1
    return "CUDA_DEVICE_ORDER=PCI_BUS_ID" if listed and single and differ else ""


def device_notes(stages: Sequence[LayerStage], *, started: bool = False) -> list[str]:
    """Return notes on the devices of stages.

    Parameters
    ----------
    started
        The text has the order of GPUs; otherwise a note says it.
    """
    notes = []
    if any(stage.name for stage in stages):
        notes.append(f"devices of the stages in order: {', '.join(stage.name for stage in stages)}")
    if not started and (before := environment(stages)):
        notes.append(f"start it with {before.strip()}")
    nodes = any(stage.tensor_parallel > 1 or stage.gpu not in (None, stage.device) for stage in stages)
    if visible_gpus(stages) is not None and nodes:
        notes.append("on several hosts: the hosts in this order, without CUDA_VISIBLE_DEVICES")
    return notes


def served(request: LayoutRequest) -> str:
    """Return the model's path, as a shell takes it."""
    return quote(request.path) if request.path != "MODEL" else request.path


def has_hybrid_caches(request: LayoutRequest) -> bool:
    """Return whether decoder layers keep caches of several kinds."""
    model = request.described
    kinds = {layer.kind for layer in model.decoder_layers} if model is not None else set()
    return len(kinds - {None}) > 1
