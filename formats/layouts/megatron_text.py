"""Megatron's layout of stages, as a text of letters or as a list of lists, with the checks of its own class.

``core/transformer/pipeline_parallel_layer_layout.py``. Commas are deleted before anything else; ``(…)*n`` is expanded
once, then ``x*n`` of single characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mtpp.formats.layouts.request import refusal

LETTERS = {"E": "embedding", "L": "loss", "t": "decoder", "m": "mtp"}
KINDS = ("embedding", "loss", "encoder", "decoder", "mtp")
MOST_LAYERS = 10**6
"""Characters of an expanded text, which repeats could make any number of."""

_GROUP = re.compile(r"\(([^)]+)\)\*(\d+)")
_SINGLE = re.compile(r"(.)\*(\d+)")

Stage = list[str]


def stages_of_text(text: str) -> list[Stage]:
    """Kinds of layers by stage.

    Examples
    --------
    >>> stages_of_text("Et|(t|)*2L")
    [['embedding', 'decoder'], ['decoder'], ['decoder'], ['loss']]
    """
    expanded = text.replace(",", "")
    for pattern in (_GROUP, _SINGLE):
        _check_length(pattern, expanded)
        expanded = pattern.sub(lambda match: match[1] * int(match[2]), expanded)
    for stage in expanded.split("|"):
        for letter in stage:
            if letter not in LETTERS:
                raise refusal(
                    "AssertionError",
                    f"Invalid layer character: {letter} ({stage=}, layout_str={expanded!r}), known layer characters: "
                    f"{list(LETTERS)}",
                )
    return [[LETTERS[letter] for letter in stage] for stage in expanded.split("|")]


def _check_length(pattern: re.Pattern[str], text: str) -> None:
    grown = 0
    for match in pattern.finditer(text):
        grown += MOST_LAYERS if len(match[2]) > 9 else len(match[1]) * int(match[2])
    if len(text) + grown > MOST_LAYERS:
        raise refusal("MemoryError", f"the text stands for more than {MOST_LAYERS} layers")


def check_lists(rows: Any) -> None:
    """Raise InputError unless there are lists of lists."""
    if not isinstance(rows, list | tuple) or not all(isinstance(row, list) for row in rows):
        raise refusal("AssertionError", "pipeline_model_parallel_layout must be a list of lists")


def stages_of_lists(rows: Sequence[Sequence[Any]]) -> list[Stage]:
    """Kinds of layers by stage, from words in which case and blanks around them do not count."""
    return [[_kind(word) for word in row] for row in rows]


def _kind(word: Any) -> str:
    if not isinstance(word, str):
        kind = f"elements in pipeline_model_parallel_layout must be LayerType or str, but got {type(word)}."
        raise refusal("AssertionError", kind)
    kind = word.strip().lower()
    if kind not in KINDS:
        raise refusal("AssertionError", f"{kind} is not a valid LayerType")
    return kind


def virtual_stages(stages: Sequence[Sequence[Any]], ranks: int) -> int:
    """Count the virtual stages of each rank."""
    if len(stages) % ranks:
        raise refusal(
            "AssertionError",
            "pipeline_model_parallel_layout must be divisible by pipeline_model_parallel_size "
            f"(len(layout)={len(stages)}, pipeline_model_parallel_size={ranks})",
        )
    return len(stages) // ranks


def check_stages(stages: Sequence[Stage], ranks: int, layers: int, mtp: int | None) -> None:
    """Raise InputError where Megatron does: for letters in the wrong number or in the wrong place."""
    flat = [kind for stage in stages for kind in stage]
    _check_ends(flat)
    _check_numbers(flat, layers, mtp)
    if "mtp" in flat:
        _check_mtp(stages, flat, ranks)
    if "encoder" in flat:
        raise refusal("NotImplementedError", "Encoder layer is not supported for flexible pipeline layout")


def _check_ends(flat: Stage) -> None:
    if not flat:
        raise refusal("IndexError", "list index out of range (the layout is empty)")
    for place, wanted, position in ((0, "embedding", "first"), (-1, "loss", "last")):
        if flat[place] != wanted:
            wrong = f"The {position} layer must be {wanted}, but got LayerType.{flat[place]}"
            raise refusal("AssertionError", wrong)


def _check_numbers(flat: Stage, layers: int, mtp: int | None) -> None:
    for kind in ("embedding", "loss"):
        if flat.count(kind) != 1:
            raise refusal("AssertionError", f"{kind.capitalize()} must be specified exactly once")
    if (decoders := flat.count("decoder")) != layers:
        raise refusal("AssertionError", f"Number of decoder layers {decoders}must match num_layers {layers}")
    if flat.count("mtp") != (mtp or 0):
        raise refusal("AssertionError", "Number of mtp layers in layout must match mtp_num_layers")


def _check_mtp(stages: Sequence[Stage], flat: Stage, ranks: int) -> None:
    if "decoder" in flat[flat.index("mtp") :]:
        raise refusal("AssertionError", "decoder layers must be placed before MTP layers")
    holding = [number for number, stage in enumerate(stages) if "mtp" in stage]
    if any(number < len(stages) - ranks for number in holding):
        place = "Currently we restrict that the MTP should be always in the last virtual pipeline stage of that rank."
        raise refusal("AssertionError", place)
    if len(holding) > 1:
        same = "All of the MTP layers must be in the same one virtual pipeline stage"
        raise refusal("AssertionError", same)
