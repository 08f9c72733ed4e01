"""Load of a language model that serves: a step of its layers, on so many sequences of such a length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mtpp.errors import InputError
from mtpp.language_models.cache import DEFAULT_TYPE, TYPE_BITS

DECODE, PREFILL = "decode", "prefill"

DEFAULT_CONTEXT = 4096
"""Tokens of a sequence where nobody says how many."""

CONTEXT, PROMPT, BATCH, BLOCK, MTP, NO_MTP = "context", "prompt", "batch", "cache_block_bytes", "mtp", "no_mtp"
GPUS = "tensor_parallel"
SIZES = (CONTEXT, PROMPT, BATCH, BLOCK, MTP, NO_MTP, GPUS)
"""Names of sizes in documents: *context* of a decoding step, *prompt* of a prefill; bytes of 32 elements of the cache
where they are not 64; layers for further tokens where the caller has another number than the model; GPUs of a stage
where they are several."""

_BLOCK = 32
_USUAL_BLOCK = 64


@dataclass(frozen=True)
class ServingLoad:
    """Step that costs are of.

    Attributes
    ----------
    phase
        ``"decode"``: a further token of each sequence, the last of its context. ``"prefill"``: a prompt of each, which
        fills the context.
    context
        Tokens of a sequence.
    batch
        Sequences that a step works on.
    kv_dtype
        Type of an element of the cache.
    mtp
        Layers for further tokens; None: as many as the model has.
    degree
        GPUs that share each stage: costs and sizes are of one of them.
    """

    phase: str = DECODE
    context: int = DEFAULT_CONTEXT
    batch: int = 1
    kv_dtype: str = DEFAULT_TYPE
    mtp: int | None = None
    degree: int = 1

    @property
    def tokens(self) -> int:
        """Tokens of a step, of all sequences."""
        return self.batch * (1 if self.phase == DECODE else self.context)

    def sizes(self) -> dict[str, int]:
        """Return the load as whole numbers above zero by name, as documents have sizes of models."""
        block = int(TYPE_BITS[self.kv_dtype] * _BLOCK) // 8
        return {
            CONTEXT if self.phase == DECODE else PROMPT: self.context,
            BATCH: self.batch,
            **({} if block == _USUAL_BLOCK else {BLOCK: block}),
            **({} if self.mtp is None else {MTP: self.mtp} if self.mtp else {NO_MTP: 1}),
            **({} if self.degree == 1 else {GPUS: self.degree}),
        }

    @classmethod
    def of_sizes(cls, sizes: Mapping[str, int]) -> ServingLoad:
        """Read :meth:`sizes`, of which any may be absent.

        Raises
        ------
        InputError
            If two sizes exclude each other, or no type of the cache has such a block; names the parameter ``dims``.
        """
        for one, other in ((CONTEXT, PROMPT), (MTP, NO_MTP)):
            if one in sizes and other in sizes:
                raise InputError(f"{one} does not go with {other}", parameter="dims", remedy="leave one of them out")
        block = sizes.get(BLOCK, _USUAL_BLOCK)
        types = {int(bits * _BLOCK) // 8: name for name, bits in reversed(TYPE_BITS.items())}
        types[_USUAL_BLOCK] = DEFAULT_TYPE
        if block not in types:
            known = ", ".join(f"{size} ({name})" for size, name in sorted(types.items()))
            raise InputError(f"no cache has {BLOCK} {block}", parameter="dims", remedy=f"use one of {known}")
        return cls(
            PREFILL if PROMPT in sizes else DECODE,
            sizes.get(PROMPT, sizes.get(CONTEXT, DEFAULT_CONTEXT)),
            sizes.get(BATCH, 1),
            types[block],
            0 if NO_MTP in sizes else sizes.get(MTP),
            sizes.get(GPUS, 1),
        )

    def told(self) -> str:
        """Return the step in words."""
        of = f"{self.batch:,} sequence{'s' if self.batch > 1 else ''}"
        if self.phase == DECODE:
            step = f"a further token of {of} at a context of {self.context:,} tokens"
        else:
            step = f"prompts of {self.context:,} tokens, {of} at a time"
        shared = "" if self.degree == 1 else f", figures of one of {self.degree} GPUs that share a stage"
        return f"{self.phase}: {step}, cache in {self.kv_dtype}{shared}"
