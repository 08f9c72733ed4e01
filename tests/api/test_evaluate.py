"""Scores of given partitions: by file, dictionary, plan, list and cuts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from processes import run
from refusals import refusal

import mtpp
from mtpp.api.observer import MtppWarning
from mtpp.errors import InputError, InvalidPartition

STAGES = {"op0": 0, "op1": 0, "op2": 1, "op3": 1}


def test_ways_to_give_an_assignment(chain_file: Path, tmp_path: Path) -> None:
    """All of them are one plan, which the command prints too."""
    path = tmp_path / "stages.json"
    path.write_text(json.dumps(STAGES))
    printed = json.loads(run("evaluate", chain_file, "--assignment", path, "--format", "json").stdout)
    table = tmp_path / "stages.csv"
    table.write_text("op,stage\n" + "".join(f"{op},{stage}\n" for op, stage in STAGES.items()))
    first = mtpp.evaluate(chain_file, STAGES)
    for given in (path, str(table), list(STAGES.values()), first, first.document(), mtpp.load(first.document())):
        document = json.loads(json.dumps(mtpp.evaluate(chain_file, given).document()))
        assert {**document, "elapsed_s": 0} == {**printed, "elapsed_s": 0}
    assert (first.bottleneck_s, first.algorithm, first.optimal) == (0.071, "given", False)


@pytest.mark.parametrize("cuts", ["op0,op2", " op2 , op0", ["op0", "op2"], ("op2", "op0")])
def test_cuts(chain_file: Path, cuts: Any) -> None:
    """Names of ops that end a stage, as one text or several."""
    plan = mtpp.evaluate(chain_file, cuts=cuts)
    assert plan.assignment == {"op0": 0, "op1": 1, "op2": 1, "op3": 2}
    printed = run("evaluate", chain_file, "--cuts", "op0,op2").stdout
    assert repr(plan) + "\n" == printed


def test_stages_are_numbered_in_the_order_of_the_data_flow(chain_file: Path) -> None:
    """Which is said as a warning."""
    with pytest.warns(MtppWarning, match="numbered anew"):
        plan = mtpp.evaluate(chain_file, [3, 3, 1, 1])
    assert plan.assignment == STAGES
    assert mtpp.evaluate(chain_file, STAGES, k=5).k == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"op0": 0}, "assignment: 3 of 4 ops have no stage, the first is 'op1'"),
        ([0, 0, 1], "assignment: 3 stages were given for 4 ops"),
        ([0, 1, 0, 1], "blocks wait for each other"),
    ],
)
def test_what_is_no_partition(chain_file: Path, given: Any, message: str) -> None:
    """Ops without a stage, and stages in a circle."""
    with pytest.raises(InvalidPartition, match=message):
        mtpp.evaluate(chain_file, given)
    with pytest.raises(InvalidPartition, match="2 blocks were given, but k is 1"):
        mtpp.evaluate(chain_file, STAGES, k=1)


@pytest.mark.parametrize("parameters", [{}, {"assignment": STAGES, "cuts": "op0"}])
def test_one_partition_is_given(chain_file: Path, parameters: dict[str, Any]) -> None:
    """As an assignment or by cuts; the error names the first."""
    assert refusal(mtpp.evaluate, chain_file, **parameters).parameter == "assignment"


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"op0": 0}, None),
        ([0, 1, 0, 1], None),
        ([0, 1, 1.5, 1], "/2"),
        ({**STAGES, "op0": -1}, "/op0"),
        ({**STAGES, "op0": None}, "/op0"),
        ({**STAGES, "op9": 0}, "/op9"),
        ([0, 0], None),
        ([[0], [0], [1], [1]], "/0"),
    ],
)
@pytest.mark.parametrize("function", ["evaluate", "convert"])
def test_whatever_is_wrong_is_the_parameter_s(chain_file: Path, function: str, given: Any, where: str | None) -> None:
    """Of every function that takes an assignment, however deep inside it is found."""
    name = {"evaluate": "assignment", "convert": "plan"}[function]
    call = {"evaluate": mtpp.evaluate, "convert": lambda model, plan: mtpp.convert(model, to="csv", plan=plan)}
    with pytest.raises(mtpp.InputError) as caught:
        call[function](chain_file, given)
    assert (caught.value.parameter, caught.value.where) == (name, where)


def test_cuts_and_files_are_named_as_well(chain_file: Path, tmp_path: Path) -> None:
    """A circle in a file is the file's."""
    with pytest.raises(InputError) as caught:
        mtpp.evaluate(chain_file, cuts="op1", k=1)
    assert (caught.value.parameter, caught.value.exit_code) == ("cuts", 2)
    (tmp_path / "stages.json").write_text(json.dumps({"op0": 0, "op1": 1, "op2": 0, "op3": 1}))
    with pytest.raises(mtpp.InputError) as found:
        mtpp.evaluate(chain_file, tmp_path / "stages.json")
    assert found.value.source == str(tmp_path / "stages.json")
    assert found.value.exit_code == 1
    with pytest.raises(mtpp.InvalidPartition) as circle:
        mtpp.emit(chain_file, {"op0": 0, "op1": 1, "op2": 0, "op3": 1}, "cut-names")
    assert circle.value.parameter == "plan"


def test_broken_assignments_name_the_place(chain_file: Path) -> None:
    """As in a file."""
    with pytest.raises(mtpp.InputError, match="assignment: /op9: the model has no such op"):
        mtpp.evaluate(chain_file, {**STAGES, "op9": 0})
    with pytest.raises(mtpp.InputError, match="assignment: /op0: '0' is not the number of a stage"):
        mtpp.evaluate(chain_file, {**STAGES, "op0": "0"})


def test_more_cuts_than_stages_are_refused(chain_file: Path, tmp_path: Path) -> None:
    """As a wrong parameter, by k or by the devices of a machine."""
    machine = tmp_path / "machine.toml"
    machine.write_text("[[device]]\ncount = 2\nspeed = 2\n")
    with pytest.raises(InputError, match="cuts: make 3 stages, more than the 2 devices of the machine"):
        mtpp.evaluate(mtpp.read(chain_file, machine=machine), cuts="op0,op1")
    done = run("evaluate", chain_file, "--cuts", "op0,op1", "-k", 2)
    assert (done.returncode, done.stderr) == (2, "error: --cuts: make 3 stages, more than k, 2; give fewer\n")
