"""``mtpp generate`` as a process: files, standard output, and options that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from processes import run, run_afresh

from mtpp.cli.generate import command
from mtpp.datasets.chain import chain
from mtpp.datasets.multi_branch_training import MICRO_BATCH_SIZES, multi_branch_model
from mtpp.datasets.regal_style import regal_style
from mtpp.datasets.transformer_training import transformer_training
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.training.models import read_training_model
from mtpp.formats.training.native import write_training_model
from mtpp.machine.presets import load_device
from mtpp.names import RANDOM_GRAPHS, TRANSFORMERS

SMALL = {
    "regal-style": ("-n", "20"),
    "transformer": ("--layers", "1"),
    "multi-branch": ("--length", "3", "--blocks", "2", "--cross-links", "2"),
    "chain": ("-n", "12", "--skips", "3"),
    "in-tree": ("--leaves", "9", "--fan-in", "3"),
}


def test_every_family_has_a_small_draw_here() -> None:
    """The tests below cover all families there are, and the choices offered are those of the generators."""
    assert isinstance(command, click.Group)
    assert set(command.commands) == {*SMALL, "transformer-training", *MICRO_BATCH_SIZES}
    choices = {
        parameter.name: tuple(parameter.type.choices)
        for family in command.commands.values()
        for parameter in family.params
        if isinstance(parameter.type, click.Choice)
    }
    assert choices == {"family": RANDOM_GRAPHS, "kind": TRANSFORMERS}


@pytest.mark.parametrize("family", SMALL)
@pytest.mark.slow
def test_what_is_drawn_can_be_partitioned(family: str, tmp_path: Path) -> None:
    """The same seed gives the same file, to standard output and to -o alike; partition takes it and verify agrees."""
    model, plan = tmp_path / "g.json", tmp_path / "plan.json"
    printed = run_afresh("generate", family, *SMALL[family], "--seed", "5")
    done = run("generate", family, *SMALL[family], "--seed", "5", "-o", model)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"{model}: ")
    assert model.read_text() == printed.stdout
    assert run("partition", model, "-k", "3", "-q", "-o", plan).returncode == 0
    assert run("verify", plan, "--model", model).returncode == 0


def test_the_file_is_the_generators_graph(tmp_path: Path) -> None:
    """What the command writes is what the function returns."""
    done = run("generate", "regal-style", "--family", "ba", "-n", "31", "--seed", "8")
    assert done.stdout == write_native(regal_style("ba", 31, 8))
    done = run("generate", "chain", "-n", "9", "--seed", "2", "--skips", "4", "--longest-skip", "3", "-o", "-")
    assert done.stdout == write_native(chain(9, 2, skips=4, longest_skip=3))


def test_models_to_be_trained_are_written_in_their_own_format(tmp_path: Path) -> None:
    """The same text goes to standard output and to a file, which is what the generator makes; planners read it."""
    sizes = ("--layers", "2", "--hidden", "64", "--heads", "4", "--system", "reference")
    done = run("generate", "transformer-training", *sizes)
    model = transformer_training(2, hidden=64, heads=4, system=load_device("reference"))
    assert (done.returncode, done.stdout, done.stderr) == (0, write_training_model(model), "")
    path = tmp_path / "model.json"
    written = run("generate", "transformer-training", *sizes, "-o", path)
    assert (written.returncode, written.stdout, written.stderr) == (0, "", f"{path}: 4 layers, 3 edges\n")
    read, _ = read_training_model(str(path))
    assert write_training_model(read) == done.stdout == path.read_text()


def test_a_bed_of_all_random_families(tmp_path: Path) -> None:
    """Twelve seeds give twelve files of four families, sizes in range, each the same as when drawn alone."""
    bed = tmp_path / "bed"
    done = run("generate", "regal-style", "-o", f"{bed}/", "--count", "12", "-n", "20-40", "--seed", "3", "-v")
    assert (done.returncode, done.stdout) == (0, "")
    files = sorted(bed.iterdir())
    assert len(files) == 12
    graphs = [read_native(path.read_bytes(), path.name) for path in files]
    assert [graph.name for graph in graphs] == [path.stem for path in files]
    assert {graph.metadata["seed"] for graph in graphs} == set(range(3, 15))
    assert sorted(graph.metadata["family"] for graph in graphs) == sorted([*RANDOM_GRAPHS] * 3)
    assert all(20 <= graph.op_count <= 40 for graph in graphs)
    assert len({graph.op_count for graph in graphs}) > 3
    notes = done.stderr.splitlines()
    assert len(notes) == 13
    assert notes[-1] == f"{bed}: 12 graphs, {sum(graph.op_count for graph in graphs)} ops in all"
    alone = run("generate", "regal-style", "-n", "20-40", "--seed", "7").stdout
    assert alone in [path.read_text() for path in files]


def test_transformers_differ_by_ranges(tmp_path: Path) -> None:
    """Seeds that draw the same size still get a file each, since the name tells the seed."""
    done = run("generate", "transformer", "--layers", "1-2", "--count", "4", "-o", tmp_path / "bed", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    names = {json.loads(path.read_text())["name"] for path in (tmp_path / "bed").iterdir()}
    assert len(names) == 4


def test_files_are_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """An old file gives way to the new one, but not to a draw that fails; a folder takes a single graph too."""
    path = tmp_path / "g.json.gz"
    path.write_text("old")
    assert run("generate", "chain", "-n", "3", "--skips", "9", "-o", path).returncode == 2
    assert path.read_text() == "old"
    assert run("generate", "chain", "-n", "3", "-o", path).returncode == 0
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert run("generate", "chain", "-n", "3", "-o", tmp_path).returncode == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["chain-3-0.json", "g.json.gz"]


@pytest.mark.parametrize(
    ("family", "options", "sizes"),
    [
        ("mmt", ("--branches", "2", "--layers", "3", "--seed", "4"), {"branches": 2, "layers": 3, "seed": 4}),
        ("dlrm", ("--branches", "2", "--sparse", "0", "--layers", "1"), {"dense": 2, "sparse": 0, "layers": 1}),
        ("candle-uno", ("--branches", "3"), {"branches": 3}),
    ],
)
def test_multi_branch_models_have_costs_by_size(family: str, options: tuple[str, ...], sizes: dict[str, int]) -> None:
    """What is printed is the generator's model, with the sizes of micro-batches asked for."""
    done = run("generate", family, *options, "--micro-batch-sizes", "4,1-2", "--system", "a100")
    model = multi_branch_model(family, micro_batch_sizes=(1, 2, 4), system=load_device("a100"), **sizes)
    assert (done.returncode, done.stdout, done.stderr) == (0, write_training_model(model), "")
    assert list(model.layers[0].configurations[1][0].micro_batches) == [1, 2, 4]
