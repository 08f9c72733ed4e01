"""Tables of certificates, bounds and comparisons under goals: brute force, verification, forged rows, stores."""

from __future__ import annotations

import copy
import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from goal_cells import GOALS, KINDS, GoalCell, random_cell
from seeds import sampled

import mtpp
from mtpp.errors import InputError, MtppError
from mtpp.solvers.certify.cells.cell import run_here

COMBINATIONS = [(kind, goal) for kind, goal in product(KINDS, GOALS) if (kind, goal) != ("neighbours", "replicas")]
SEEDS = sampled(range(2_000), 20)


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work at cells here: a process of its own takes a hundred times as long as a small cell."""
    monkeypatch.setattr(
        "mtpp.solvers.certify.cells.processes.run_in_processes",
        lambda cells, interrupted, **_: run_here(cells, interrupted),
    )


def _document(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(result.document()))
    return found


def _verdict(document: dict[str, Any], model: Any) -> str:
    """Return the verdict on a table; a malformed one is false, too."""
    try:
        return str(mtpp.verify(document, model).verdict)
    except MtppError:
        return "malformed"


def _check_certificate(cell: GoalCell) -> dict[str, Any] | None:
    """Certify a cell and hold its row to the optimum and to the verifier; return the table, None without a plan."""
    table = mtpp.certify(cell.model, cell.k, time_limit_s=None, **cell.asked)
    if cell.least is None:
        assert not table.cells
        assert "proven infeasible" in " ".join(table.problems.values())
        return None
    (row,) = table.cells
    assert row.lower.value <= cell.least <= row.upper
    assert row.optimal == (row.upper == cell.least == row.lower.value)
    assert row.optimal
    document = _document(table)
    stated = document["rows"][0]
    assert stated["objective"] == ("latency" if cell.of_latency else "bottleneck")
    assert stated["upper"] == stated[stated["objective"]]
    found = mtpp.verify(document, cell.model)
    assert found.verdict == "ok", found.sentence
    return document


@pytest.mark.parametrize(("kind", "goal"), COMBINATIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_certificates(kind: str, goal: str, seed: int) -> None:
    """Rows are closed at the optimum of brute force and verified; a changed number is found out."""
    cell = random_cell(seed, kind, goal)
    document = _check_certificate(cell)
    if document is None:
        return
    forged = forge(document, Random(seed))
    if forged is not None:
        assert _verdict(forged, cell.model) != "ok", forged["rows"][0]


CLAIMS = ("upper", "lower", "bottleneck", "latency", "max_bottleneck", "max_latency", "lower_proof", "ratio", "bounds")


_PRICES = {"prices", "price_of_any", "per_byte", "per_tick", "scale"}
"""Keys of numbers of a proof, others of which may prove as much."""


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all whole numbers in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [place for key, one in items for place in numbers_in(one, (*path, key))]
    return [path] if isinstance(value, int) and not isinstance(value, bool) else found


def forge(document: dict[str, Any], chance: Random) -> dict[str, Any] | None:
    """Return a table whose row claims more in one place; None where that place is no claim of its own."""
    forged = copy.deepcopy(document)
    row = forged["rows"][0]
    kind = chance.choice(("number", "objective", "replicas", "shift"))
    if kind == "objective":  # a row of another goal
        row["objective"] = "bottleneck" if row["objective"] == "latency" else "latency"
        for key in ("max_latency", "max_bottleneck"):
            row.pop(key, None)
        same = row["bottleneck"] == row["latency"]
        return None if same else forged
    if kind == "replicas":
        if "replicas" not in row:
            return None
        del row["replicas"]
        return forged
    if kind == "shift":  # a lower bound that is too high, with all that depends on it
        row["lower"] += 1
        row["upper"] += 1
        row[row["objective"]] += 1
        return forged
    places = [path for key in CLAIMS if key in row for path in numbers_in(row[key], (key,)) if not _PRICES & set(path)]
    *above, last = chance.choice(places)
    at = row
    for key in above:
        at = at[key]
    if last == "limit":
        at[last] -= 1  # a proof within more holds as well
    elif last in ("max_bottleneck", "max_latency"):
        at[last] = row[last.removeprefix("max_")] - 1
    else:
        at[last] += chance.choice([1, 10] if "bounds" in (*above,) else [-1, 1, 10])  # a bound may be more than is said
    return forged if at[last] >= 0 else None


def _check_bounds(cell: GoalCell) -> None:
    """Bound a cell each for itself: none above the optimum, the search meets it, and the table holds."""
    named = ["simple", "downset"] if cell.of_latency or "replicas" in cell.asked else ["simple", "node", "downset"]
    table = mtpp.bound(cell.model, cell.k, bounds=named, **cell.asked)
    if cell.least is None:
        assert not table.cells
        return
    found = {row.bound: row.ticks for row in table}
    assert all(ticks is None or ticks <= cell.least for ticks in found.values())
    assert cell.least in (table.cells[0].lower.value, *found.values())
    assert mtpp.verify(_document(table), cell.model).verdict == "ok"


@pytest.mark.parametrize(("kind", "goal"), COMBINATIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds(kind: str, goal: str, seed: int) -> None:
    """No bound is above the optimum of brute force, and the exhaustive search meets it."""
    _check_bounds(random_cell(seed, kind, goal))


def _check_runs(cell: GoalCell) -> None:
    """Compare algorithms on a cell: those that know the goal meet the optimum, others are held to it."""
    if not sum(op["work"] for op in json.loads(cell.model.source.data)["ops"]):
        return
    for run in mtpp.compare(cell.model, cell.k, algorithms=["auto", "downset", "slice"], **cell.asked):
        knows = run.algorithm != "slice"
        if cell.least is None:
            assert run.ratio is None
            assert run.problem
        elif knows:
            assert (run.reached, run.problem) == (cell.least, None)
        elif run.problem is None:
            assert run.reached >= cell.least
        else:
            assert run.breaks_limit == (run.bottleneck is not None)
            assert not run.breaks_limit or "breaks the limit" in run.problem


@pytest.mark.parametrize(("kind", "goal"), [one for one in COMBINATIONS if one[0] != "chain"])
@pytest.mark.parametrize("seed", SEEDS)
def test_comparisons(kind: str, goal: str, seed: int) -> None:
    """Algorithms that know a goal meet the optimum of brute force; plans of others are said to break its limit."""
    _check_runs(random_cell(seed, kind, goal))


RESNET = mtpp.datasets.sample_path("resnet50")

REFUSED = [
    ({"objective": "latency", "max_latency": "1ms"}, "max_latency"),
    ({"max_bottleneck": "1ms"}, "max_bottleneck"),
    ({"replicas": True, "objective": "latency"}, "replicas"),
    ({"replicas": True, "max_latency": "1ms"}, "replicas"),
    ({"objective": "throughput"}, "objective"),
    ({"max_latency": "9 parsecs"}, "max_latency"),
    ({"max_latency": 9}, "max_latency"),
]
"""Options of goals that do not go together, or are no times; and the one that is named."""


@pytest.mark.parametrize("command", [mtpp.certify, mtpp.bound, mtpp.compare])
@pytest.mark.parametrize(("asked", "named"), REFUSED)
def test_bad_goals(command: Any, asked: dict[str, Any], named: str) -> None:
    """One line, by the name of the option, before the first cell."""
    with pytest.raises(InputError) as refused:
        command(RESNET, 2, **asked)
    assert refused.value.parameter == named


@pytest.mark.parametrize("goal", [{"objective": "latency"}, {"replicas": True}])
def test_bounds_of_other_goals(goal: dict[str, Any]) -> None:
    """A bound that does not hold for the goal is refused by name, and left out of all with a line."""
    with pytest.raises(InputError, match="node does not bound"):
        mtpp.bound(RESNET, 2, bounds=["simple", "node"], **goal)
    with pytest.raises(InputError, match="node does not bound"):
        mtpp.certify(RESNET, 2, bounds="node", **goal)
    with pytest.warns(mtpp.MtppWarning, match="left out node, crossings"):
        assert {row.bound for row in mtpp.bound(RESNET, 2, **goal)} == {"simple", "downset"}


def test_algorithms_that_know_nothing_of_a_goal_do_not_certify() -> None:
    """They have no bound on it, and their partitions are not for it."""
    with pytest.raises(InputError, match="slice knows nothing of latency"):
        mtpp.certify(RESNET, 2, algorithm="slice", objective="latency")
    with pytest.raises(InputError, match="does not go with the algorithm slice"):
        mtpp.certify(RESNET, 2, algorithm="slice", replicas=True)


def test_stored_rows_are_of_their_goal(tmp_path: Path) -> None:
    """Rows of other goals are never taken for those asked for; the same goal finds its own."""
    goals: list[dict[str, Any]] = [
        {},
        {"objective": "latency"},
        {"objective": "latency", "max_bottleneck": "600us"},
        {"objective": "latency", "max_bottleneck": "601us"},
        {"max_latency": "2100us"},
        {"max_latency": "2200us"},
        {"replicas": True},
    ]
    store = tmp_path / "rows.db"
    first = [mtpp.certify(RESNET, 4, store=store, **goal)[0] for goal in goals]
    again = [mtpp.certify(RESNET, 4, store=store, **goal)[0] for goal in reversed(goals)][::-1]
    for one, other in zip(first, again, strict=True):
        assert one.to_document() == other.to_document()
    assert len({(row.upper, row.replicas, row.goal) for row in first}) == len(goals)


def test_stored_rows_are_of_their_devices(tmp_path: Path) -> None:
    """A row of four equal devices has no devices listed; that of a machine of five has them all."""
    path, store = tmp_path / "machine.toml", tmp_path / "rows.db"
    path.write_text('order = "free"\n[[device]]\nname = "d"\ncount = 5\n')
    model = mtpp.read(RESNET, machine=path)
    for goal in ({}, {"replicas": True}, {"objective": "latency"}):
        mtpp.certify(RESNET, 4, store=store, **goal)
        table = mtpp.certify(model, 4, store=store, **goal)
        assert mtpp.verify(_document(table), model).verdict == "ok"


def test_the_upper_side_of_a_row_of_latency_is_no_bottleneck() -> None:
    """Nor where the row leaves both figures out."""
    document = _document(mtpp.certify(RESNET, 4, objective="latency"))
    row = document["rows"][0]
    row["upper"] = row.pop("bottleneck")
    del row["latency"]
    with pytest.raises(InputError, match="/rows/0/latency"):
        mtpp.verify(document, RESNET)


def test_the_objective_is_named(tmp_path: Path) -> None:
    """Tables, Markdown, CSV and pages say what their figures are of, with the limit in its unit."""
    goal = {"objective": "latency", "max_bottleneck": "900us"}
    table = mtpp.certify(RESNET, 4, **goal)
    for form in ("table", "markdown", "html"):
        assert "bottleneck at most 900.0 µs" in table.text(form)
        assert "Latency / best lower bound so far" in table.text(form) or form == "html"
    head, line = (one.split(",") for one in table.text("csv").splitlines())
    found = dict(zip(head, line, strict=True))
    assert (found["objective"], found["max_bottleneck"], found["upper"]) == ("latency", "900000000", found["latency"])
    assert "objective" not in mtpp.certify(RESNET, 4, bounds="simple").text("csv").splitlines()[0].split(",")
    document = _document(table)
    assert document["summary"][0]["objective"] == "latency"
    document["summary"][0]["objective"] = "bottleneck"
    assert _verdict(document, RESNET) == "false"
    page = tmp_path / "page.html"
    mtpp.report(_document(table), page, model=RESNET)
    assert "bottleneck at most 900.0 µs" in page.read_text()
    compared = mtpp.compare(RESNET, 4, algorithms=["auto", "even"], objective="latency", max_bottleneck="620us")
    text = str(compared)
    assert "Latency / simple lower bound" in text
    assert "breaks" in text
