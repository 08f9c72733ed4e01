"""Pages of best times: every cell as the document has it, nothing called proven, and malformed files refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import mtpp
from mtpp.datasets.transformer_training import transformer_training


@pytest.fixture(scope="module")
def sweep() -> dict[str, Any]:
    """Return the document of a table of best times, in which one device is too small."""
    model = transformer_training(2, hidden=64, heads=4)
    planner = mtpp.Piper(max_micro_batches=4)
    terms: dict[str, Any] = {"planner": planner, "bandwidth": "25GB/s"}
    return mtpp.sweep_training(model, devices=[1, 2, 4], memory="192MiB", **terms).document()


def test_cells_are_those_of_the_document(sweep: dict[str, Any]) -> None:
    """Each time is a cell that sorts by its exact value; figures are claimed, and the page says so."""
    page = mtpp.report(sweep)
    assert not page.passed
    assert not page.false
    assert 'data-verdict="unchecked"' in page.html
    known = [row for row in sweep["rows"] if row["feasible"]]
    assert known
    body = page.html.split('<table id="sweep-table"')[1].split("</table>")[0]
    assert body.count("<tr>") == len(sweep["rows"]) + 1
    for row in known:
        assert f'data-key="{float(Fraction(*row["time_per_sample_ticks"]))}"' in body
    assert body.count(">none fits<") == sum(row["feasible"] is False for row in sweep["rows"])
    assert body.count(">optimal<") == sum(row["optimal"] for row in sweep["rows"])


def test_malformed_files_are_refused(sweep: dict[str, Any]) -> None:
    """The message names the place; a model has no effect."""
    row = next(row for row in sweep["rows"] if row["feasible"])
    place = sweep["rows"].index(row)
    for changed, where in (
        ({**sweep, "rows": []}, "/rows"),
        ({**sweep, "version": 2}, "/version"),
        (
            {**sweep, "rows": [*sweep["rows"][:place], {**row, "feasible": None}]},
            f"/rows/{place}/time_per_sample_ticks",
        ),
        ({**sweep, "rows": [{**row, "time_per_sample_ticks": [1, 0]}]}, "/rows/0/time_per_sample_ticks"),
    ):
        with pytest.raises(mtpp.InputError, match=where):
            mtpp.report(changed)
    with pytest.raises(mtpp.InputError, match="has no effect on best times"):
        mtpp.report(sweep, model=mtpp.datasets.sample_path("resnet50"))
