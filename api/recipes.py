"""Recipes of synthetic graphs, from which each seed draws one, and of models to be trained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mtpp.api.options import kinds
from mtpp.api.options.kinds import Choice, Flag, Whole, Wholes
from mtpp.api.options.machine import preset_names
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.names import RANDOM_GRAPHS, TRANSFORMERS
from mtpp.ranges import MOST_GRAPHS, MOST_MICRO_BATCH, MOST_SEED

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from mtpp.inference.graph import CostGraph
    from mtpp.machine.device import Device
    from mtpp.training.model import TrainingModel

Size = int | tuple[int, int]
"""A size of all graphs, or a range, both ends included, from which each graph draws its own."""


class Drawing(Options):
    """Seeds that graphs are drawn for."""

    seed: int = option(0, Whole(0, MOST_SEED), "Of all random choices.", "S")
    count: int = option(1, Whole(1, MOST_GRAPHS), "Graphs, of seeds S to S + N - 1, into a folder.", "N")


class Recipe(Protocol):
    """A family of graphs with its sizes."""

    @property
    def varies(self) -> bool:
        """Whether graphs of different seeds may differ."""

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""


def _size(default: Size, help: str, least: int = 1) -> Any:
    return option(default, kinds.Size(least), help, "N|LOW-HIGH")


class RegalStyle(Options):
    """Random graphs after the recipe of the REGAL data set (Archer et al. 2024, appendix C.2)."""

    family: str | None = option(
        None, Choice(RANDOM_GRAPHS),
        "Erdős-Rényi, Barabási-Albert, Watts-Strogatz or stochastic block model [default: by turns, seed by seed].",
    )  # fmt: skip
    n: Size = _size((50, 200), "Ops.", 5)
    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed.

        Examples
        --------
        >>> RegalStyle(n=(10, 20), family="ws").draw(3).op_count in range(10, 21)
        True
        """
        from mtpp.datasets.regal_style import regal_style

        return regal_style(self.family or RANDOM_GRAPHS[seed % len(RANDOM_GRAPHS)], drawn(self.n, "-n", seed), seed)


class Transformer(Options):
    """Transformers op by op, with the shapes of real ones; nothing is random but sizes given as ranges."""

    kind: str = option(TRANSFORMERS[0], Choice(TRANSFORMERS), "Of the layers.")
    layers: Size = _size(12, "Layers; an encoder-decoder has so many of each kind.")
    sequence: Size = _size(128, "Tokens at once.")
    hidden: int = option(768, Whole(1, 10**6), "Width of a token.")
    heads: int = option(12, Whole(1, 10**4), "Attention heads.")
    vocabulary: int = option(32_000, Whole(1, 10**7), "Words that a token may be.")
    split_heads: bool = option(False, Flag(), "Give each head ops of its own.")

    @property
    def varies(self) -> bool:
        """Whether graphs of different seeds may differ."""
        return any(isinstance(size, tuple) and size[0] < size[1] for size in (self.layers, self.sequence))

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed, whose name tells the seed where sizes are ranges."""
        from mtpp.datasets.transformer import transformer

        sizes = {name: drawn(getattr(self, name), f"--{name}", seed) for name in ("layers", "sequence")}
        graph = transformer(**{**self.values(), **sizes})
        return replace(graph, name=f"{graph.name}-{seed}") if self.varies else graph


class MultiBranch(Options):
    """Parallel branches, block after block: cells as in Inception or NASNet, towers as in CLIP."""

    branches: Size = _size(4, "Parallel branches of a block.")
    length: Size = _size(8, "Ops of a branch.")
    blocks: Size = _size(4, "Blocks in a row, each joined before the next.")
    cross_links: Size = _size(0, "Edges between branches, per block.", 0)
    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""
        from mtpp.datasets.multi_branch import multi_branch

        streams = {name: f"--{name.replace('_', '-')}" for name in self.values()}
        return multi_branch(
            seed=seed, **{name: drawn(getattr(self, name), stream, seed) for name, stream in streams.items()}
        )


class Chain(Options):
    """Paths of ops, with or without edges that skip some."""

    n: Size = _size((50, 200), "Ops.")
    skips: Size = _size(0, "Edges that skip ops.", 0)
    longest_skip: int | None = option(None, Whole(2), "Ops that a skip may go ahead [default: any number].")
    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""
        from mtpp.datasets.chain import chain

        n, skips = drawn(self.n, "-n", seed), drawn(self.skips, "--skips", seed)
        return chain(n, seed, skips=skips, longest_skip=self.longest_skip)


class InTree(Options):
    """Trees that reduce many results to one."""

    leaves: Size = _size(64, "Ops without inputs.")
    fan_in: Size = _size(2, "Results that an op combines.", 2)
    varies = True

    def draw(self, seed: int) -> CostGraph:
        """Return the graph of a seed."""
        from mtpp.datasets.in_tree import in_tree

        return in_tree(drawn(self.leaves, "--leaves", seed), drawn(self.fan_in, "--fan-in", seed), seed)


def _system(default: str) -> Any:
    kind = InputPath("the system", names=preset_names, other="Device")
    return option(default, kind, "Whose peak rates times follow.", "NAME|FILE")


class TransformerTraining(Options):
    """A decoder with configurations for 1, 2, 4 and 8 devices, with and without recomputation.

    Nothing is random. Memory is that of PipeDream-2BW with Adam; the system's link joins devices that share a layer.
    """

    layers: int = option(24, Whole(1, 10_000), "Layers between the embedding and the head.")
    hidden: int = option(2048, Whole(1, 10**6), "Width of a token.")
    heads: int = option(16, Whole(1, 10**4), "Attention heads.")
    sequence: int = option(1024, Whole(1, 10**6), "Tokens of a sample.")
    vocabulary: int = option(51_200, Whole(1, 10**7), "Words that a token may be.")
    micro_batch_size: int = option(1, Whole(1, 10**6), "Samples of a micro-batch.")
    system: str | os.PathLike[str] | Device = _system("a100")

    def make(self) -> TrainingModel:
        """Return the model."""
        from mtpp.datasets.transformer_training import transformer_training

        values: dict[str, Any] = self.values()
        return transformer_training(**{**values, "system": _loaded(values["system"])})


_SEED = option(None, Whole(0, MOST_SEED), "Draw the size of each branch [default: all are equal].", "S")


def _micro_batch_sizes(default: str) -> Any:
    help = f"Samples that a device may take at once [default: {default}]."
    return option(None, Wholes(MOST_MICRO_BATCH), help, "LIST")


class Branches(Options):
    """Parallel branches, with costs by micro-batch size."""

    family: ClassVar[str]

    def make(self) -> TrainingModel:
        """Return the model."""
        from mtpp.datasets.multi_branch_training import multi_branch_model

        values: dict[str, Any] = self.values()
        return multi_branch_model(self.family, **{**values, "system": _loaded(values["system"])})


class MultiModalTransformer(Branches):
    """Branches of Transformer layers that are concatenated at the end, with costs by micro-batch size.

    Shapes are those of GraphPipe's evaluation: 256 tokens of width 1024, 16 heads, feed-forward layers of width 4096,
    float32. Times are a roofline of whole layers, for each size, at the system's peak rates: 125 TFLOP/s of a V100.
    """

    family: ClassVar[str] = "mmt"

    branches: int = option(4, Whole(1, 1000), "Modalities.")
    layers: int = option(8, Whole(1, 10_000), "Transformer layers of each branch.")
    micro_batch_sizes: Iterable[int] | None = _micro_batch_sizes("1,2,4,8,16,32")
    seed: int | None = _SEED
    system: str | os.PathLike[str] | Device = _system("v100")


class Dlrm(Branches):
    """A recommendation model of dense and sparse branches, with costs by micro-batch size.

    Shapes are those of GraphPipe's evaluation: feed-forward layers of width 4096, tables of a million embeddings of
    width 64 in bags of 100, and four feed-forward layers behind the join, whose number the paper does not state.
    """

    family: ClassVar[str] = "dlrm"

    dense: int = option(7, Whole(1, 1000), "Branches of dense features.")
    sparse: int = option(7, Whole(0, 1000), "Branches of sparse features, a table each.")
    layers: int = option(4, Whole(1, 10_000), "Feed-forward layers of each dense branch.")
    micro_batch_sizes: Iterable[int] | None = _micro_batch_sizes("16,32,64,128,256,512,1024,2048")
    seed: int | None = _SEED
    system: str | os.PathLike[str] | Device = _system("v100")


class CandleUno(Branches):
    """Branches of feed-forward layers that are concatenated, with costs by micro-batch size.

    Shapes are those of GraphPipe's evaluation: layers of width 4096, and four more behind the join.
    """

    family: ClassVar[str] = "candle-uno"

    branches: int = option(7, Whole(1, 1000), "Branches.")
    layers: int = option(4, Whole(1, 10_000), "Feed-forward layers of each branch.")
    micro_batch_sizes: Iterable[int] | None = _micro_batch_sizes("64,128,256,512,1024,2048,4096")
    seed: int | None = _SEED
    system: str | os.PathLike[str] | Device = _system("v100")


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


def _loaded(system: Any) -> Device:
    from mtpp.machine.device import Device
    from mtpp.machine.presets import load_device

    return system if isinstance(system, Device) else load_device(system)
