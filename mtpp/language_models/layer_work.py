"""Sizes that the arithmetic of a layer depends on: projections, experts, heads, recurrences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attention:
    """Heads of an attention.

    Attributes
    ----------
    heads
        Of queries.
    key_width, value_width
        Of a head; of a latent cache those of expanded keys and values.
    cached
        Elements of a token in the cache that it reads, its own or that of another layer.
    latent
        Width of the latent in a latent cache (MLA), without the rotated part; 0 for others.
    window
        Tokens attended to at most; None where all are.
    """

    heads: int
    key_width: int
    value_width: int
    cached: int
    latent: int = 0
    window: int | None = None

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values; of a latent cache as many as of queries."""
        return self.heads if self.latent else self.cached // (self.key_width + self.value_width)

    @property
    def expansion(self) -> int:
        """Weights that expand a latent to keys and values; 0 without one."""
        rotated = self.cached - self.latent
        return self.latent * self.heads * (self.key_width - rotated + self.value_width) if self.latent else 0


@dataclass(frozen=True)
class Experts:
    """Experts of a layer.

    Attributes
    ----------
    chosen
        Experts that a token is multiplied by.
    weights
        Of one expert.
    """

    count: int
    chosen: int
    weights: int


@dataclass(frozen=True)
class Recurrent:
    """Heads of a recurrence, or its channels where it has no heads.

    Attributes
    ----------
    heads
        Of values.
    key_heads
        Of keys, where they are fewer; 0 otherwise.
    groups
        Of Mamba-2, whose heads share projections to the state; 0 for others.
    group_width
        Channels of a group in projection and convolution.
    """

    heads: int
    key_heads: int = 0
    groups: int = 0
    group_width: int = 0


@dataclass(frozen=True)
class LayerWork:
    """Arithmetic of a layer.

    Attributes
    ----------
    projections
        Weights that every token is multiplied by; those of experts are not among them.
    source
        Weights that every token of an encoder is multiplied by, once.
    cross
        Attention to the tokens of an encoder.
    recurrence
        FLOPs of a token beside projections: updates of states, and convolutions where they count.
    recurrent
        Heads of the recurrence; None without one.
    """

    projections: int = 0
    source: int = 0
    experts: Experts | None = None
    attention: Attention | None = None
    cross: Attention | None = None
    recurrence: int = 0
    recurrent: Recurrent | None = None

    @property
    def of_token(self) -> int:
        """Weights that a token is multiplied by, those of its experts included."""
        return self.projections + (0 if self.experts is None else self.experts.chosen * self.experts.weights)

    @property
    def weights(self) -> int:
        """Weights of all matrices."""
        experts = 0 if self.experts is None else self.experts.count * self.experts.weights
        return self.projections + self.source + experts
