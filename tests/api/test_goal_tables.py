"""Tables of certificates, bounds and comparisons under goals: brute force, verification, forged rows, stores."""

from __future__ import annotations

import copy
import json
from itertools import product
from random import Random
from typing import Any

import pytest
from goal_cells import GOALS, KINDS, GoalCell, random_cell
from seeds import sampled

import mtpp
from mtpp.errors import MtppError
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


_PRICES = {"prices", "per_byte", "per_tick", "scale"}
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
        at[last] += chance.choice([-1, 1, 10])
    return forged if at[last] >= 0 else None
