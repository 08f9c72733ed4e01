"""Sequences that a language model serves, and the type of its cache."""

from __future__ import annotations

from mtpp.api.options.kinds import Choice, Tokens, Whole
from mtpp.api.options.option import Options, option
from mtpp.names import CACHE_TYPES, PHASES
from mtpp.ranges import MOST_SEQUENCES


class Serving(Options):
    """Caches of a language model."""

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
        "Show FLOPs and bytes of a step of a language model: of a further token, of a prompt, or of each.",
    )  # fmt: skip
    batch: int | None = option(
        None, Whole(1, MOST_SEQUENCES), "Sequences in a step of a language model [default: --sequences].",
    )  # fmt: skip
