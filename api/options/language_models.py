"""Sequences that a language model serves, and the type of its cache."""

from __future__ import annotations

from mtpp.api.options.kinds import Choice, Tokens
from mtpp.api.options.option import Options, option
from mtpp.names import CACHE_TYPES
from mtpp.wording import one_of


class Serving(Options):
    """Caches of a language model."""

    kv_dtype: str | None = option(
        None, Choice(CACHE_TYPES, "type"),
        f"Of the cache of a language model: {one_of(CACHE_TYPES)} [default: bf16].", "TYPE",
    )  # fmt: skip
    context: int | str | None = option(
        None, Tokens(), "Tokens of a sequence of a language model, such as 32k [default: 4k].", "TOKENS",
        more="1k are 1,024.",
    )  # fmt: skip
