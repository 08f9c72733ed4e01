"""Recipes of synthetic graphs: a family with its sizes, from which each seed draws one graph."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from mtpp.api.parameters import choice, flag, whole, whole_or_none
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph

LARGEST_SIZE = 2_000_000

Size = int | tuple[int, int]
"""A size of all graphs, or a range, both ends included, from which each graph draws its own."""


class Recipe(Protocol):
    """A family of graphs with its sizes."""

    @property
    def varies(self) -> bool:
        """Whether graphs of different seeds may differ."""

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""


@dataclass(frozen=True)
class RegalStyle:
    """Random graphs after the recipe of the REGAL data set (Archer et al. 2024, appendix C.2).

    Attributes
    ----------
    n
        Ops, at least 5.
    family
        ``er``, ``ba``, ``ws`` or ``sbm``; None: by turns, seed by seed.

    Examples
    --------
    >>> RegalStyle(n=(10, 20), family="ws").draw(3).op_count in range(10, 21)
    True
    """

    n: Size = (50, 200)
    family: str | None = None

    def __post_init__(self) -> None:
        from mtpp.datasets.regal_style import FAMILIES

        _check_size(self.n, "n", 5)
        if self.family is not None:
            choice(self.family, "family", FAMILIES)

    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""
        from mtpp.datasets import regal_style

        family: Any = self.family or regal_style.FAMILIES[seed % len(regal_style.FAMILIES)]
        return regal_style.regal_style(family, drawn(self.n, "-n", seed), seed)


@dataclass(frozen=True)
class Transformer:
    """Transformers op by op, with the shapes of real ones; nothing is random but sizes given as ranges.

    Attributes
    ----------
    layers
        Of each kind, for an encoder with a decoder.
    sequence
        Tokens at once.
    kind
        ``decoder``, ``encoder`` or ``encoder-decoder``.
    hidden, heads, vocabulary
        Width of a token, attention heads, words that a token may be.
    split_heads
        Whether each head has ops of its own.
    """

    layers: Size = 12
    sequence: Size = 128
    kind: str = "decoder"
    hidden: int = 768
    heads: int = 12
    vocabulary: int = 32_000
    split_heads: bool = False

    def __post_init__(self) -> None:
        from mtpp.datasets.transformer import KINDS

        _check_size(self.layers, "layers", 1)
        _check_size(self.sequence, "sequence", 1)
        choice(self.kind, "kind", KINDS)
        for name, most in (("hidden", 10**6), ("heads", 10**4), ("vocabulary", 10**7)):
            whole(getattr(self, name), name, most=most)
        flag(self.split_heads, "split_heads")

    @property
    def varies(self) -> bool:
        """Whether graphs of different seeds may differ."""
        return _is_range(self.layers) or _is_range(self.sequence)

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed, whose name tells the seed where sizes are ranges."""
        from mtpp.datasets.transformer import transformer

        kind: Any = self.kind
        graph = transformer(
            drawn(self.layers, "--layers", seed),
            sequence=drawn(self.sequence, "--sequence", seed),
            kind=kind,
            hidden=self.hidden,
            heads=self.heads,
            vocabulary=self.vocabulary,
            split_heads=self.split_heads,
        )
        return replace(graph, name=f"{graph.name}-{seed}") if self.varies else graph


@dataclass(frozen=True)
class MultiBranch:
    """Parallel branches, block after block: cells as in Inception or NASNet, towers as in CLIP.

    Attributes
    ----------
    branches, length
        Branches of a block, and ops of a branch.
    blocks
        Blocks in a row, each joined before the next.
    cross_links
        Edges between branches, per block.
    """

    branches: Size = 4
    length: Size = 8
    blocks: Size = 4
    cross_links: Size = 0

    def __post_init__(self) -> None:
        for one in fields(self):
            _check_size(getattr(self, one.name), one.name, 0 if one.name == "cross_links" else 1)

    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""
        from mtpp.datasets.multi_branch import multi_branch

        return multi_branch(
            drawn(self.branches, "--branches", seed),
            drawn(self.length, "--length", seed),
            seed,
            blocks=drawn(self.blocks, "--blocks", seed),
            cross_links=drawn(self.cross_links, "--cross-links", seed),
        )


@dataclass(frozen=True)
class Chain:
    """Paths of ops, with or without edges that skip some.

    Attributes
    ----------
    n, skips
        Ops, and edges that skip ops.
    longest_skip
        Ops that a skip may go ahead, at least 2; None: any number.
    """

    n: Size = (50, 200)
    skips: Size = 0
    longest_skip: int | None = None

    def __post_init__(self) -> None:
        _check_size(self.n, "n", 1)
        _check_size(self.skips, "skips", 0)
        whole_or_none(self.longest_skip, "longest_skip", least=2)

    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""
        from mtpp.datasets.chain import chain

        n, skips = drawn(self.n, "-n", seed), drawn(self.skips, "--skips", seed)
        return chain(n, seed, skips=skips, longest_skip=self.longest_skip)


@dataclass(frozen=True)
class InTree:
    """Trees that reduce many results to one.

    Attributes
    ----------
    leaves, fan_in
        Ops without inputs, and results that an op combines, at least 2.
    """

    leaves: Size = 64
    fan_in: Size = 2

    def __post_init__(self) -> None:
        _check_size(self.leaves, "leaves", 1)
        _check_size(self.fan_in, "fan_in", 2)

    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""
        from mtpp.datasets.in_tree import in_tree

        return in_tree(drawn(self.leaves, "--leaves", seed), drawn(self.fan_in, "--fan-in", seed), seed)


def drawn(size: Size, stream: str, seed: int) -> int:
    """Return a size of the graph of a seed, drawn apart from every other size.

    Parameters
    ----------
    stream
        Name of the random stream; it decides which graph a seed stands for, so that it must never change.
    """
    import numpy as np

    low, high = size if isinstance(size, tuple) else (size, size)
    return int(np.random.default_rng([seed, *stream.encode()]).integers(low, high + 1))


def _is_range(size: Size) -> bool:
    return isinstance(size, tuple) and size[0] < size[1]


def _check_size(size: Any, parameter: str, least: int) -> None:
    if not isinstance(size, tuple):
        whole(size, parameter, least=least, most=LARGEST_SIZE)
        return
    if len(size) != 2:
        raise InputError("is no range", parameter=parameter, remedy="give a whole number, or two: (50, 200)")
    low, high = (whole(end, parameter, least=least, most=LARGEST_SIZE) for end in size)
    if low > high:
        raise InputError(f"({low}, {high}) is a range that ends before it begins", parameter=parameter)
