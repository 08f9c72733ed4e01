"""``mtpp generate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from mtpp.cli.generate_training import transformer_training
from mtpp.cli.generating import Sizes, choice_option, number_option, run_options, size_option, write_graphs


@click.group("generate", commands=[transformer_training])
def command() -> None:
    """Draw synthetic graphs for test beds, in the native formats.

    Sizes are a number, or a range such as 50-200 from which each graph draws its own. The same options and seed give
    the same graph, alone or among others.
    """


@command.command("regal-style", short_help="Random graphs after the recipe of the REGAL data set.")
@choice_option("--family", "er", "ba", "ws", "sbm", help="Erdős-Rényi, Barabási-Albert, Watts-Strogatz or stochastic "
               "block model [default: by turns, seed by seed].", default=None)  # fmt: skip
@size_option("-n", "n", default="50-200", least=5, help="Ops.")
@run_options
def regal_style(family: Any, n: Sizes, **run: Any) -> None:
    """Draw random graphs after the recipe of the REGAL data set (Archer et al. 2024, appendix C.2)."""
    from mtpp.datasets import regal_style as recipe

    def draw(seed: int) -> Any:
        return recipe.regal_style(family or recipe.FAMILIES[seed % len(recipe.FAMILIES)], n.drawn(seed), seed)

    write_graphs(draw, **run)


@command.command("transformer", short_help="Encoders, decoders and both, op by op.")
@choice_option("--kind", "decoder", "encoder", "encoder-decoder", default="decoder", help="Of the layers.")
@size_option("--layers", "layers", default="12", help="Layers; an encoder-decoder has so many of each kind.")
@size_option("--sequence", "sequence", default="128", help="Tokens at once.")
@number_option("--hidden", default=768, most=10**6, help="Width of a token.")
@number_option("--heads", default=12, most=10**4, help="Attention heads.")
@number_option("--vocabulary", default=32_000, most=10**7, help="Words that a token may be.")
@click.option("--split-heads", is_flag=True, help="Give each head ops of its own.")
@run_options
def transformer(layers: Sizes, sequence: Sizes, seed: int, count: int, **options: Any) -> None:
    """Make transformers op by op, with the shapes of real ones; nothing is random but sizes given as ranges."""
    from mtpp.datasets import transformer as model

    shape = {name: options.pop(name) for name in ("kind", "hidden", "heads", "vocabulary", "split_heads")}
    drawn = layers.is_range or sequence.is_range
    if count > 1 and not drawn:
        raise click.UsageError("--count: all graphs would be the same; give a range such as --layers 2-12")

    def draw(seed: int) -> Any:
        graph = model.transformer(layers.drawn(seed), sequence=sequence.drawn(seed), **shape)
        return replace(graph, name=f"{graph.name}-{seed}") if drawn else graph

    write_graphs(draw, seed=seed, count=count, **options)


@command.command("multi-branch", short_help="Parallel branches, as cells or towers.")
@size_option("--branches", "branches", default="4", help="Parallel branches of a block.")
@size_option("--length", "length", default="8", help="Ops of a branch.")
@size_option("--blocks", "blocks", default="4", help="Blocks in a row, each joined before the next.")
@size_option("--cross-links", "links", default="0", least=0, help="Edges between branches, per block.")
@run_options
def multi_branch(branches: Sizes, length: Sizes, blocks: Sizes, links: Sizes, **run: Any) -> None:
    """Draw parallel branches, block after block: cells as in Inception or NASNet, towers as in CLIP."""
    from mtpp.datasets.multi_branch import multi_branch as network

    def draw(seed: int) -> Any:
        sizes = {"blocks": blocks.drawn(seed), "cross_links": links.drawn(seed)}
        return network(branches.drawn(seed), length.drawn(seed), seed, **sizes)

    write_graphs(draw, **run)


@command.command("chain", short_help="Paths of ops, with or without skips.")
@size_option("-n", "n", default="50-200", help="Ops.")
@size_option("--skips", "skips", default="0", least=0, help="Edges that skip ops.")
@number_option("--longest-skip", least=2, help="Ops that a skip may go ahead [default: any number].")
@run_options
def chain(n: Sizes, skips: Sizes, longest_skip: int | None, **run: Any) -> None:
    """Draw paths of ops, with or without edges that skip some."""
    from mtpp.datasets.chain import chain as path

    write_graphs(lambda s: path(n.drawn(s), s, skips=skips.drawn(s), longest_skip=longest_skip), **run)


@command.command("in-tree", short_help="Reductions of many results to one.")
@size_option("--leaves", "leaves", default="64", help="Ops without inputs.")
@size_option("--fan-in", "fan_in", default="2", least=2, help="Results that an op combines.")
@run_options
def in_tree(leaves: Sizes, fan_in: Sizes, **run: Any) -> None:
    """Draw trees that reduce many results to one."""
    from mtpp.datasets.in_tree import in_tree as tree

    write_graphs(lambda s: tree(leaves.drawn(s), fan_in.drawn(s), s), **run)
