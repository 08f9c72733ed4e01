"""Sequences that a language model serves, and the type of its cache."""

from __future__ import annotations

from typing import Any

from mtpp.api.options.kinds import Choice, Repeated, Tokens, Whole
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import MODELS, InputPath
from mtpp.names import CACHE_TYPES, PHASES
from mtpp.ranges import MOST_MTP, MOST_SEQUENCES, MOST_STAGES


def adapters_option() -> Any:
    """Declare the option of adapters."""
    return option(
        (), Repeated(InputPath("an adapter", folder=MODELS)),
        "Add the weights of an adapter to a language model; may be repeated.",
        "FOLDER", more="Folders with safetensors, or such files.",
    )  # fmt: skip


class Serving(Options):
    """Load of a language model, and all that its folder does not say."""

    kv_dtype: str | None = option(
        None, Choice(CACHE_TYPES, "type"),
        "Type of the cache of a language model [default: bf16].",
    )  # fmt: skip
    context: int | str | None = option(
        None, Tokens(), "Tokens of a sequence of a language model, such as 32k [default: 4k].", "TOKENS",
        more="1k are 1,024.",
    )  # fmt: skip
    phase: str | None = option(
        None, Choice(PHASES, "phase"),
        "Step of a language model: a further token of each sequence, a prompt of each, or both [default: decode].",
    )  # fmt: skip
    batch: int | None = option(
        None, Whole(1, MOST_SEQUENCES),
        "Sequences in a step of a language model [default: ‹sequences› over the number of stages, rounded up].",
    )  # fmt: skip
    mtp: int | None = option(
        None, Whole(0, MOST_MTP), "Layers of a language model for further tokens [default: those that it has].", "N",
    )  # fmt: skip
    adapters: tuple[str, ...] = adapters_option()


class Stages(Options):
    """Stages that sequences of a language model are shared out among."""

    k: int | None = option(
        None, Whole(1, MOST_STAGES),
        "Number of stages, which the sequences of a language model are shared out among [default: those of ‹machine›].",
        also="--stages",
    )  # fmt: skip
