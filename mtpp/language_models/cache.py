"""Caches and states that a layer keeps for each sequence, in elements and in bytes."""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.units import ceil_ratio

TYPE_BITS = {
    "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4, "q8_0": 34 * 8 / 32, "q4_0": 18 * 8 / 32,
}  # fmt: skip
"""Bits of an element by name of its type; the last two are blocks of 32 with a scale."""

DEFAULT_TYPE = "bf16"


def cache_bytes(elements: int, type_name: str = DEFAULT_TYPE) -> int:
    """Return the bytes of elements of a cache."""
    return ceil_ratio(elements * int(TYPE_BITS[type_name] * 2), 16)


@dataclass(frozen=True)
class LayerCache:
    """Elements that a layer keeps for a sequence.

    Attributes
    ----------
    per_token
        Elements of keys and values of a token; of a latent cache the latent, once.
    window
        Tokens that are kept at most; None where all are.
    state
        Elements of the recurrent state of a sequence.
    convolution
        Elements of the state of a convolution, *columns* of them for each channel.
    state_bytes
        Bytes of an element of the state.
    convolution_bytes
        Bytes of an element of the convolution.
    per_source_token
        Elements of keys and values of a token of the encoder, kept once.
    """

    per_token: int = 0
    window: int | None = None
    state: int = 0
    convolution: int = 0
    columns: int = 0
    state_bytes: int = 2
    convolution_bytes: int = 2
    per_source_token: int = 0

    @property
    def bytes_of_states(self) -> int:
        """Bytes of state and convolution of a sequence, with all columns."""
        return self.state * self.state_bytes + self.convolution * self.convolution_bytes

    def tokens(self, context: int) -> int:
        """Tokens kept of a sequence of *context* tokens."""
        return context if self.window is None else min(context, self.window)

    def bytes(self, context: int, type_name: str = DEFAULT_TYPE, source: int = 0) -> int:
        """Bytes of a sequence of *context* tokens, states included.

        Parameters
        ----------
        source
            Tokens of the encoder.
        """
        elements = self.per_token * self.tokens(context) + self.per_source_token * source
        return cache_bytes(elements, type_name) + self.bytes_of_states
