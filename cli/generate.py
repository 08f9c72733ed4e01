"""``mtpp generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mtpp.api.options.option import Options
from mtpp.api.recipes import (
    CandleUno,
    Chain,
    Dlrm,
    Drawing,
    InTree,
    MultiBranch,
    MultiModalTransformer,
    RegalStyle,
    Transformer,
    TransformerTraining,
)
from mtpp.cli.options.groups import CommandGroup
from mtpp.cli.options.made import options
from mtpp.cli.options.shared import noise_options, output_path
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


@click.group("generate", cls=CommandGroup)
def command() -> None:
    """Draw synthetic graphs for test beds, in the native formats.

    Sizes are a number, or a range such as 50-200 from which each graph draws its own. The same options and seed give
    the same graph, alone or among others.
    """


def _graphs(name: str, recipe: type[Options], verb: str, short_help: str) -> None:
    """Add a family of random graphs, whose record says what the command does."""

    @command.command(name, help=_sentence(verb, recipe), short_help=short_help)
    @options(recipe, Drawing)
    @output_path("Where to write [default: standard output]; a folder is made if missing.", "FILE|FOLDER/", folder=True)
    @noise_options()
    def family(drawing: Drawing, output: str | None, console: Console, **of_family: Any) -> None:
        from mtpp.api.generate import generate, generate_files, graph_text
        from mtpp.cli.terminal.output import write_stdout

        (asked,) = of_family.values()
        graphs = generate(asked, seed=drawing.seed, count=drawing.count)
        if output not in (None, "-"):
            generate_files(asked, output, seed=drawing.seed, count=drawing.count, observer=console)
        elif drawing.count == 1:
            write_stdout(graph_text(next(graphs)))
        else:
            raise InputError("several graphs are no single output", parameter="count", remedy="add ‹folder› FOLDER/")


def _trained(name: str, recipe: type[Options], short_help: str) -> None:
    """Add a family of models to be trained, whose record says what the command does."""

    @command.command(name, help=_sentence("Make", recipe), short_help=short_help)
    @options(recipe)
    @output_path("Where to write [default: standard output].")
    @noise_options()
    def family(output: str | None, console: Console, **of_family: Any) -> None:
        from mtpp.api.generate import training_model_text, write_training_model_file
        from mtpp.cli.terminal.delivery import check_output
        from mtpp.cli.terminal.output import write_stdout

        (asked,) = of_family.values()
        check_output(output)
        model = asked.make()
        if output is None or output == "-":
            write_stdout(training_model_text(model))
            return
        write_training_model_file(model, output)
        console.say(f"{output}: {len(model.layers):,} layers, {len(model.edges):,} edges")


def _sentence(verb: str, recipe: type[Options]) -> str:
    return f"{verb} {recipe.about[0].lower()}{recipe.about[1:]}"


_graphs("regal-style", RegalStyle, "Draw", "Random graphs after the recipe of the REGAL data set.")
_graphs("transformer", Transformer, "Make", "Encoders, decoders and both, op by op.")
_graphs("multi-branch", MultiBranch, "Draw", "Parallel branches, as cells or towers.")
_graphs("chain", Chain, "Draw", "Paths of ops, with or without skips.")
_graphs("in-tree", InTree, "Draw", "Reductions of many results to one.")
_trained("transformer-training", TransformerTraining, "Transformers to be trained, for `mtpp plan`.")
_trained("mmt", MultiModalTransformer, "Multi-modal transformers to be trained: branches that join at the end.")
_trained("dlrm", Dlrm, "Recommendation models to be trained: dense and sparse branches.")
_trained("candle-uno", CandleUno, "CANDLE-Uno to be trained: branches of feed-forward layers.")
