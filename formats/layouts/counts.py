"""Numbers of layers of stages as a text with commas, which vLLM and SGLang share."""

from __future__ import annotations

import re

from mtpp.formats.layouts.request import LayoutRequest, Setting, refusal, value_in
from mtpp.language_models.layout import Layout, ranges_of_counts

_PLAIN = re.compile(r"\s*[0-9]+\s*", re.ASCII)


def setting_of_text(text: str, variable: str) -> Setting:
    """Read the setting of a variable; none where a command stands without it."""
    value = value_in(text, variable)
    return {} if value == text and "--pipeline-parallel-size" in text else {variable: value}


def counts_of_text(text: str, request: LayoutRequest) -> list[int]:
    """Numbers of layers in the words of a text, with the checks that both engines make.

    Each word between commas is read as Python's ``int`` reads it: blanks around it, a sign and underscores pass.
    """
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        raise refusal("ValueError", f"Invalid partition string: {text} (a word between commas is no number)") from None
    stages = request.stage_count(len(counts))
    if len(counts) != stages:
        raise refusal("ValueError", f"len(partitions)={len(counts)} does not match pp_size={stages}.")
    if sum(counts) != request.layers:
        total = f"sum(partitions)={sum(counts)} does not match num_hidden_layers={request.layers}."
        raise refusal("ValueError", total)
    return counts


def first_longer(layers: int, stages: int) -> list[int]:
    """Equal numbers of layers, the first ones with one more where they do not divide."""
    each, rest = divmod(layers, stages)
    return [each + 1] * rest + [each] * (stages - rest)


def forms_of_text(text: str) -> list[str]:
    """Name words that are numbers in a form that few would expect."""
    words = [word for word in text.split(",") if not _PLAIN.fullmatch(word) and int(word) >= 0]
    return [f"{word.strip()!r} is read as {int(word)}" for word in words]


def faults_of_counts(counts: list[int]) -> list[str]:
    """Name stages without layers, or with fewer than none."""
    return [
        f"stage {stage} holds no layer" if count == 0 else f"stage {stage} has {count} layers, a negative number"
        for stage, count in enumerate(counts)
        if count <= 0
    ]


def layout_of_counts(engine: str, counts: list[int], request: LayoutRequest, findings: list[str]) -> Layout:
    """Layout of consecutive stages: the embedding on the first; final norm, head and MTP layers on the last."""
    last = len(counts) - 1
    return Layout(
        engine=engine,
        ranges=ranges_of_counts(counts),
        layers=counts,
        embedding_on=[0],
        final_norm_on=[last],
        head_on=[last],
        mtp_on=[last] if request.mtp else [],
        findings=[*findings, *faults_of_counts(counts)],
    )


def written_counts(counts: list[int], request: LayoutRequest) -> str:
    """Join counts by commas, each stage with a layer."""
    check_counts(counts, request)
    return ",".join(map(str, counts))


def check_counts(counts: list[int], request: LayoutRequest, *, least: int = 1) -> None:
    """Raise InputError unless the counts are those of all layers on the stages asked for, none below the least."""
    from mtpp.errors import InputError

    if sum(counts) != request.layers:
        raise InputError(f"the stages have {sum(counts)} layers, the model {request.layers}", parameter="layout")
    if request.stages is not None and len(counts) != request.stages:
        raise InputError(f"{len(counts)} stages, where {request.stages} are asked for", parameter="layout")
    few = next((stage for stage, count in enumerate(counts) if count < least), None)
    if few is not None:
        raise InputError(f"stage {few} has {counts[few]} layers, and needs at least {least}", parameter="layout")
