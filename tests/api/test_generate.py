"""Synthetic graphs from Python: those of the command, seed by seed, and sizes that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from observers import Heard
from processes import run
from refusals import refusal

from mtpp.api.generate import (
    generate,
    generate_files,
    graph_text,
    training_model_text,
    write_training_model_file,
)
from mtpp.api.recipes import Chain, InTree, MultiBranch, RegalStyle, Transformer, TransformerTraining
from mtpp.formats.graphs.native import read_native

RECIPES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "regal-style": (RegalStyle(n=(20, 40)), ("-n", "20-40")),
    "transformer": (Transformer(layers=(1, 3), heads=4), ("--layers", "1-3", "--heads", "4")),
    "multi-branch": (
        MultiBranch(length=(3, 9), blocks=2, cross_links=2),
        ("--length", "3-9", "--blocks", "2", "--cross-links", "2"),
    ),
    "chain": (
        Chain(n=(12, 99), skips=(0, 3), longest_skip=4),
        ("-n", "12-99", "--skips", "0-3", "--longest-skip", "4"),
    ),
    "in-tree": (InTree(leaves=(9, 99), fan_in=3), ("--leaves", "9-99", "--fan-in", "3")),
}


@pytest.mark.parametrize("family", RECIPES)
def test_the_command_draws_the_same_graph(family: str) -> None:
    """A seed stands for one graph, whichever way it is drawn, alone or among others."""
    recipe, options = RECIPES[family]
    printed = run("generate", family, *options, "--seed", "5").stdout
    first, second = generate(recipe, seed=4, count=2)
    assert graph_text(second) == printed
    assert graph_text(first) != printed


def test_files_are_named_after_graphs(tmp_path: Path) -> None:
    """A folder is made for several; one graph goes to the file that is named, or into a folder that is there."""
    heard = Heard()
    paths = generate_files(Chain(n=(3, 9)), tmp_path / "bed", seed=2, count=3, observer=heard)
    assert sorted((tmp_path / "bed").iterdir()) == sorted(paths)
    ops = sum(read_native(path.read_bytes(), path.name).op_count for path in paths)
    assert heard.said == [f"{tmp_path / 'bed'}: 3 graphs, {ops} ops in all"]
    (alone,) = generate_files(Chain(n=(3, 9)), tmp_path / "one.json", seed=3)
    assert alone.read_text() == paths[1].read_text()
    (inside,) = generate_files(Chain(n=3), tmp_path)
    assert inside == tmp_path / "chain-3-0.json"


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: generate(Chain(), seed=-1), "seed"),
        (lambda: generate(Chain(), count=0), "count"),
        (lambda: generate(Transformer(), count=2), "count"),
        (lambda: generate("chain"), "recipe"),  # type: ignore[arg-type]
        (lambda: generate_files(Chain(), 3), "path"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters_are_named(make: Callable[[], object], parameter: str) -> None:
    """They are refused at the door; those of records as in all records."""
    assert refusal(make).parameter == parameter


def test_models_to_be_trained_are_those_of_the_command(tmp_path: Path) -> None:
    """The same sizes give the same text, and the same file."""
    sizes = ("--layers", "2", "--hidden", "64", "--heads", "4", "--system", "reference")
    model = TransformerTraining(system="reference", layers=2, hidden=64, heads=4).make()
    assert training_model_text(model) == run("generate", "transformer-training", *sizes).stdout
    write_training_model_file(model, tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text() == training_model_text(model)
