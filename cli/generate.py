"""``mtpp generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mtpp.cli.generate_training import candle_uno, dlrm, mmt, transformer_training
from mtpp.cli.options.generating import choice_option, number_option, run_options, size_option, write_graphs

if TYPE_CHECKING:
    from mtpp.api.recipes import Size
    from mtpp.cli.terminal.console import Console


@click.group("generate", commands=[transformer_training, mmt, dlrm, candle_uno])
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
def regal_style(family: str | None, n: Size, **run: Any) -> None:
    """Draw random graphs after the recipe of the REGAL data set (Archer et al. 2024, appendix C.2)."""
    from mtpp.api.recipes import RegalStyle

    write_graphs(RegalStyle(n, family), **run)


@command.command("transformer", short_help="Encoders, decoders and both, op by op.")
@choice_option("--kind", "decoder", "encoder", "encoder-decoder", default="decoder", help="Of the layers.")
@size_option("--layers", "layers", default="12", help="Layers; an encoder-decoder has so many of each kind.")
@size_option("--sequence", "sequence", default="128", help="Tokens at once.")
@number_option("--hidden", default=768, most=10**6, help="Width of a token.")
@number_option("--heads", default=12, most=10**4, help="Attention heads.")
@number_option("--vocabulary", default=32_000, most=10**7, help="Words that a token may be.")
@click.option("--split-heads", is_flag=True, help="Give each head ops of its own.")
@run_options
def transformer(seed: int, count: int, output: str, console: Console, **shape: Any) -> None:
    """Make transformers op by op, with the shapes of real ones; nothing is random but sizes given as ranges."""
    from mtpp.api.recipes import Transformer

    recipe = Transformer(**shape)
    if count > 1 and not recipe.varies:
        raise click.UsageError("--count: all graphs would be the same; give a range such as --layers 2-12")
    write_graphs(recipe, seed=seed, count=count, output=output, console=console)


@command.command("multi-branch", short_help="Parallel branches, as cells or towers.")
@size_option("--branches", "branches", default="4", help="Parallel branches of a block.")
@size_option("--length", "length", default="8", help="Ops of a branch.")
@size_option("--blocks", "blocks", default="4", help="Blocks in a row, each joined before the next.")
@size_option("--cross-links", "links", default="0", least=0, help="Edges between branches, per block.")
@run_options
def multi_branch(branches: Size, length: Size, blocks: Size, links: Size, **run: Any) -> None:
    """Draw parallel branches, block after block: cells as in Inception or NASNet, towers as in CLIP."""
    from mtpp.api.recipes import MultiBranch

    write_graphs(MultiBranch(branches, length, blocks, links), **run)


@command.command("chain", short_help="Paths of ops, with or without skips.")
@size_option("-n", "n", default="50-200", help="Ops.")
@size_option("--skips", "skips", default="0", least=0, help="Edges that skip ops.")
@number_option("--longest-skip", least=2, help="Ops that a skip may go ahead [default: any number].")
@run_options
def chain(n: Size, skips: Size, longest_skip: int | None, **run: Any) -> None:
    """Draw paths of ops, with or without edges that skip some."""
    from mtpp.api.recipes import Chain

    write_graphs(Chain(n, skips, longest_skip), **run)


@command.command("in-tree", short_help="Reductions of many results to one.")
@size_option("--leaves", "leaves", default="64", help="Ops without inputs.")
@size_option("--fan-in", "fan_in", default="2", least=2, help="Results that an op combines.")
@run_options
def in_tree(leaves: Size, fan_in: Size, **run: Any) -> None:
    """Draw trees that reduce many results to one."""
    from mtpp.api.recipes import InTree

    write_graphs(InTree(leaves, fan_in), **run)
