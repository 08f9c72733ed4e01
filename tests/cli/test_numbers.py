"""Costs of any size: what is accepted gives a document that is accepted, and a table in which nothing reads as zero."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import printed, refused, run

from mtpp.cli.main import root
from mtpp.errors import MtppError

UNITS = ("1", "ps", "ns", "us", "ms", "s")
NUMBER = re.compile(r"[+-]?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?")


@st.composite
def costs(draw: st.DrawFn, low: int, high: int) -> str:
    """Draw a decimal literal from 10^low to 10^high, or zero."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(["0", "0.0", "0e5", "0e-300"]))
    digits = draw(st.integers(1, 999_999))
    exponent = draw(st.integers(low, high)) - len(str(digits)) + 1
    return f"{digits}e{exponent}"


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Draw the JSON of a small graph whose costs differ by few powers of ten, or by any."""
    low = draw(st.integers(-320, 18))
    high = min(18, low + draw(st.sampled_from([0, 2, 6, 20, 400])))
    n = draw(st.integers(1, 5))
    cost = costs(low, high)
    ops = [f'{{"name": "op{i}", "work": {draw(cost)}}}' for i in range(n)]
    tensors = []
    for u in range(n):
        readers = [v for v in range(u + 1, n) if draw(st.booleans())]
        if readers:
            named = ", ".join(f'"op{v}"' for v in readers)
            tensors.append(f'{{"name": "t{u}", "producer": "op{u}", "consumers": [{named}], "transfer": {draw(cost)}}}')
    unit = draw(st.sampled_from(UNITS))
    head = f'"format": "mtpp-graph", "version": 1, "name": "net", "time_unit": "{unit}"'
    return f'{{{head}, "ops": [{", ".join(ops)}], "tensors": [{", ".join(tensors)}]}}'


def _call(*arguments: object) -> tuple[int, str, str]:
    """Run a command in this process: exit code, standard output, and the error or what was on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = root.main([str(argument) for argument in arguments], prog_name="mtpp", standalone_mode=False)
        except MtppError as error:
            return error.exit_code, out.getvalue(), str(error)
    return code or 0, out.getvalue(), err.getvalue()


def _check_table(text: str, plan: dict[str, Any]) -> None:
    """Hold every cost in the table of stages against the plan."""
    assert "nan" not in text.lower()
    assert "inf" not in text.lower().replace("inferences", "")
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("stage "))
    header = lines[begin].split()
    assert header[-6:] == ["work", "in", "out", "overflow", "cost", "share"]
    for stage, line in zip(plan["stages"], lines[begin + 1 :], strict=False):
        cells = [cell for cell in line.split() if cell == "–" or NUMBER.fullmatch(cell) or cell.endswith("%")][-6:]
        if not stage["ops"]:
            continue
        for name, cell in zip(("work", "input", "output", "cost"), (*cells[:3], cells[4]), strict=True):
            assert (float(cell.replace(",", "")) == 0) == (stage[name] == 0), (name, line)
        share = cells[5]
        assert (share == "0.0%") == (stage["cost"] == 0 or plan["bottleneck"] == 0), line


def _check(graph: str, k: int, folder: Path) -> None:
    model, plan = folder / "model.json", folder / "plan.json"
    model.write_text(graph)
    plan.unlink(missing_ok=True)
    code, table, said = _call("partition", model, "-k", k, "-q", "-o", plan)
    if code == 2:  # at the door, in one line
        assert said.startswith(f"{model}: ")
        assert "too large" in said or "too small" in said
        assert "\n" not in said
        assert (table, plan.exists()) == ("", False)
        return
    assert (code, said) == (0, "")
    document = json.loads(plan.read_text())
    assert 1 <= document["ticks_per_unit"] < 2**63
    _check_table(table, document)
    assert _call("verify", plan, "--model", model)[0] == 0
    code, embedded, _ = _call("partition", model, "-k", k, "-q", "--embed", "--format", "json")
    plan.write_text(embedded)
    assert code == 0
    assert _call("verify", plan)[0] == 0
    if document["time_unit"] != "1":
        return
    # Rounding up moves no cost of an abstract graph visibly, unless far larger ones stand beside it.
    exact = [Fraction(op["work"]) for op in json.loads(graph, parse_float=str, parse_int=str)["ops"]]
    total = sum(stage["work"] for stage in document["stages"])
    error = total - sum(exact) * document["ticks_per_unit"]
    assert 0 <= error <= len(exact)


EXAMPLES = (
    ("1", ["1e-300", "2e-300"]),
    ("1", ["1e-300", "1e-18"]),
    ("1", ["0.00002", "0.000031", "0.0000125"]),
    ("1", ["1e-30", "1e15"]),
    ("1", ["0", "0.0"]),
    ("1", ["1e-18", "3e-18"]),
    ("1", ["1.5e-13", "1.5e-12"]),
    ("1", ["1e18", "0.5"]),
    ("1", ["1e19", "0.5"]),
    ("ps", ["1e-320", "1e18"]),
    ("s", ["1e-320", "1e6"]),
    ("s", ["1e7"]),
)


@pytest.mark.parametrize(("unit", "works"), EXAMPLES)
@pytest.mark.parametrize("k", [1, 2, 7])
def test_costs_at_the_edges(unit: str, works: list[str], k: int, tmp_path: Path) -> None:
    """Accepted with a plan that verifies, or refused in one line."""
    ops = ", ".join(f'{{"name": "op{i}", "work": {work}}}' for i, work in enumerate(works))
    head = f'"format": "mtpp-graph", "version": 1, "name": "net", "time_unit": "{unit}"'
    _check(f'{{{head}, "ops": [{ops}], "tensors": []}}', k, tmp_path)


def test_what_is_refused(tmp_path: Path) -> None:
    """Costs that a tick of 10^-18 units cannot tell apart, and sums that 62 bits cannot hold."""
    for works, problem in ((["1e-300", "2e-300"], "too small"), (["1e18", "4e18"], "too large")):
        ops = ", ".join(f'{{"name": "op{i}", "work": {work}}}' for i, work in enumerate(works))
        head = '"format": "mtpp-graph", "version": 1, "name": "net", "time_unit": "1"'
        model = tmp_path / "model.json"
        model.write_text(f'{{{head}, "ops": [{ops}], "tensors": []}}')
        for command in (["partition", model, "-k", "2"], ["bound", model, "-k", "2"], ["inspect", model]):
            said = refused(*command)
            assert said.startswith(f"error: {model}: /ops/1")
            assert problem in said


def test_small_abstract_costs_are_shown_and_verified(shared_data: Path, tmp_path: Path) -> None:
    """Three ops of 10^-5 units: the table has a power of ten, every other view significant digits."""
    model, plan = shared_data / "trust" / "tiny_abstract.json", tmp_path / "plan.json"
    assert "(costs in 10⁻⁶)" in printed("partition", model, "-k", "2", "-o", plan)
    assert json.loads(plan.read_text())["ticks_per_unit"] == 10**18
    assert run("verify", plan, "--model", model).returncode == 0
    for command in (
        ("certify", model, "-k", "2,3", "-j", "1", "-o", tmp_path / "table.json"),
        ("bound", model, "-k", "2"),
        ("inspect", model, "--ops"),
    ):
        assert re.search(r"\d\.?\d*e-05", run(*command).stdout), command
    assert run("verify", tmp_path / "table.json", "--model", model).returncode == 0


@settings(max_examples=260, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(), st.integers(1, 6))
@pytest.mark.slow
def test_what_is_accepted_gives_a_plan_that_is_accepted(graph: str, k: int) -> None:
    """Costs from 10^-320 to 10^18 in every unit of time, and in none."""
    with tempfile.TemporaryDirectory() as folder:
        _check(graph, k, Path(folder))
