"""Figures of a model and its other formats: as the commands give them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import run
from refusals import refusal

import mtpp
from mtpp.datasets import sample_path

STAGES = {"op0": 0, "op1": 0, "op2": 1, "op3": 1}


@pytest.mark.parametrize("ops", [False, True])
def test_inspection_is_what_the_command_prints(ops: bool) -> None:
    """The document and the table."""
    path, options = sample_path("resnet50"), ("--ops",) if ops else ()
    found = mtpp.inspect(path, ops=ops)
    assert json.loads(json.dumps(found.document())) == json.loads(
        run("inspect", path, *options, "--format", "json").stdout
    )
    assert repr(found) + "\n" == run("inspect", path, *options).stdout


def test_figures_of_an_inspection(chain_file: Path) -> None:
    """Counts, seconds and kinds; a notebook gets a table."""
    found = mtpp.inspect(chain_file)
    assert (found.name, found.op_count, found.tensor_count, found.work_s) == ("chain", 4, 3, 0.1)
    assert found.kinds[0]["ops"] == 4
    assert found._repr_html_().startswith("<div><p><b>chain</b></p><table>")
    assert refusal(mtpp.inspect, chain_file, ops="yes").parameter == "ops"


@pytest.mark.parametrize("to", ["native", "node-link", "graphml", "dot"])
def test_conversion_is_what_the_command_writes(chain_file: Path, tmp_path: Path, to: str) -> None:
    """By the format's name, with a file and without."""
    text = mtpp.convert(chain_file, tmp_path / "out", to=to)
    assert (tmp_path / "out").read_text() == text == mtpp.convert(chain_file, to=to)
    assert run("convert", chain_file, "-", "--to", to).stdout.rstrip("\n") == text.rstrip("\n")


def test_stages_go_along(chain_file: Path, tmp_path: Path) -> None:
    """A plan, or what stands for one, in formats that have a place for it."""
    plan = mtpp.evaluate(chain_file, STAGES)
    plan.save(tmp_path / "plan.json")
    run("convert", chain_file, tmp_path / "command.csv", "--assignment", tmp_path / "plan.json")
    for given in (plan, STAGES, tmp_path / "plan.json"):
        assert mtpp.convert(chain_file, tmp_path / "out.csv", plan=given) == (tmp_path / "command.csv").read_text()


def test_what_cannot_be_written(chain_file: Path, tmp_path: Path) -> None:
    """The error names Python's parameters; the model's own file stays."""
    before = chain_file.read_bytes()
    with pytest.raises(mtpp.InputError, match="plan: native files have no place for stages; choose to node-link"):
        mtpp.convert(chain_file, to="native", plan=STAGES)
    with pytest.raises(mtpp.InputError, match="csv files list stages, and none were given; add plan "):
        mtpp.convert(chain_file, to="csv")
    with pytest.raises(mtpp.InputError, match="to: unknown format 'xml'"):
        mtpp.convert(chain_file, to="xml")
    with pytest.raises(mtpp.InputError, match="is the model too"):
        mtpp.convert(chain_file, chain_file)
    with pytest.raises(mtpp.InputError, match="there is no directory"):
        mtpp.convert(chain_file, tmp_path / "none" / "out.dot")
    assert chain_file.read_bytes() == before


GPT2 = sample_path("gpt2", "pt2")
DIMS = {"token_ids:0": 1, "token_ids:1": 8}


def test_modules_add_up_to_the_model() -> None:
    """Ops and work of the modules are those of all ops, each holds what it reads; the table has a row for each."""
    model = mtpp.read(GPT2, dims=DIMS)
    found = mtpp.inspect(model, modules=2)
    names = [row["module"] for row in found.modules]
    assert names == ["tokens", *(f"blocks.{i}" for i in range(12)), "norm", None]
    assert len({(row["ops"], row["work"], row["param_bytes"]) for row in found.modules[1:13]}) == 1
    tied, positions = 4 * 50_257 * 768, 8 * 8
    held = found.param_bytes + tied + 12 * positions  # the first in two places, the second in each block and before
    for key, total in (("ops", found.op_count), ("work", found.document()["work"]), ("param_bytes", held)):
        assert sum(row[key] for row in found.modules) == total
    dims = [word for name, value in DIMS.items() for word in ("--dim", f"{name}={value}")]
    printed = run("inspect", GPT2, *dims, "--modules", "2")
    assert printed.stdout == repr(found) + "\n"
    assert "blocks.11" in printed.stdout.splitlines()[-3]
    assert (
        run("inspect", GPT2, *dims, "--modules", "1", "--format", "csv")
        .stdout.splitlines()[2]
        .startswith("blocks,288,")
    )


def test_modules_are_drawn() -> None:
    """A box for each module, and in each stage where there are stages."""
    model = mtpp.read(GPT2, dims=DIMS)
    assert mtpp.convert(model, to="dot", modules=2).count("blocks.") == 12
    plan = mtpp.partition(model, 2)
    drawn = mtpp.convert(model, to="dot", modules=1, plan=plan)
    assert (drawn.count("subgraph"), drawn.count('"blocks\\n')) == (2, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: mtpp.inspect(path, modules=1), "no ONNX model and no exported program"),
        (lambda path: mtpp.inspect(path, modules=1, ops=True), "excludes"),
        (lambda path: mtpp.convert(path, to="graphml", modules=1), "hold ops, not modules"),
        (lambda path: mtpp.convert(path, to="dot", modules=1), "no ONNX model and no exported program"),
    ],
)
def test_modules_that_cannot_be_shown(chain_file: Path, call: Callable[[Path], object], words: str) -> None:
    """One line, with the parameter."""
    with pytest.raises(mtpp.InputError, match=words) as caught:
        call(chain_file)
    assert caught.value.parameter == "modules"
