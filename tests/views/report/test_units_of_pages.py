"""One unit for a quantity of a page, and names for the rows of tables."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import mtpp
from mtpp.views.report.stated import cost_text, page_costs

TIMED = SimpleNamespace(timed=True, ticks_per_unit=1)


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([1_706_000_000, 426_512_345], ["1.706 ms", "0.427 ms"]),
        ([671_207_081, 41_950_442], ["671.2 µs", "42.0 µs"]),
        ([10_230_000_000_000, 160_500_000_000], ["10.230 s", "0.161 s"]),
        ([999, 12], ["999 ps", "12 ps"]),
        ([0], ["0 ps"]),
    ],
)
def test_costs_have_the_unit_of_the_largest(ticks: list[int], texts: list[str]) -> None:
    """Four digits of the largest, and three of the least where two more are enough for that."""
    costs = page_costs(TIMED, ticks)
    assert [cost_text(one, costs) for one in ticks] == texts


def test_tables_name_models_and_keep_one_unit() -> None:
    """Reasons have the names of models, not their paths; cells of a model have the unit of its charts."""
    path = str(mtpp.datasets.sample_path("resnet50"))
    table = mtpp.certify([path], [1, 4]).document()
    upper = [row["upper"] / 10**9 for row in table["rows"]]
    page = mtpp.report(table, model=[path])
    assert all(f">{one:.3f} ms</td>" in page.html for one in upper)
    table["rows"][0]["upper"] -= 1
    reasons = mtpp.report(table, model=[path]).html.split("<ul>")[1].split("</ul>")[0]
    assert "resnet50, k = 1: " in reasons
    assert path not in reasons
