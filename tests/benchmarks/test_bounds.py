"""The tables of bounds are means and counts of what was measured, and a run takes up what an earlier one kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bounds
from mtpp.datasets.regal_style import regal_style
from mtpp.formats.graphs.native import write_native


@pytest.fixture
def cells() -> list[Any]:
    """Return what was measured on two graphs."""
    return [
        bounds.Cell("a", 2, 100, {"simple": (50, 0.0, True), "downset": (None, 1.0, False)}, 1.0),
        bounds.Cell("b", 2, 100, {"simple": (25, 0.0, True), "downset": (100, 3.0, True)}, 1.0),
        bounds.Cell("a", 4, 80, {"simple": (80, 0.0, True)}, 1.0),
    ]


def rows_of(text: str) -> list[list[list[str]]]:
    """Return the cells of each Markdown table, without header and rule."""
    tables: list[list[list[str]]] = []
    for block in text.split("## ")[1:]:
        lines = [line for line in block.splitlines() if line.startswith("|")]
        tables.append([[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]])
    return tables


def test_tables_by_hand(cells: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Means are geometric; what proved nothing counts as simple; what was not tried, in the second table alone."""
    bounds.report(cells, bounds.best_partitions(cells, None), (2, 4))
    means, so_far, above, ended, seconds = rows_of(capsys.readouterr().out)
    assert means == [["simple", "0.3536", "1.0000", "0.5000"], ["downset", "0.7071", "–", "0.7071"]]
    assert so_far == [["simple", "0.3536", "1.0000", "0.5000"], ["downset", "0.7071", "1.0000", "0.7937"]]
    assert above == [["simple", "2", "1", "3"], ["downset", "1", "0", "1"]]
    assert ended == [["simple", "2/2", "1/1", "3/3"], ["downset", "1/2", "0/0", "1/2"]]
    assert seconds == [["simple", "0.00", "0.00", "0.00"], ["downset", "2.00", "–", "2.00"]]


def test_baselines_lower_the_best_partition(cells: list[Any], tmp_path: Path) -> None:
    """Bottlenecks of others count, their seconds and the simple bound do not; a bound above them stops everything."""
    path = tmp_path / "baselines.json"
    path.write_text(json.dumps({"a": {"2": {"simple": 1, "brkga_10000": 90, "brkga_s": 0.2}, "4": {"anneal": 99}}}))
    assert bounds.best_partitions(cells, path) == {("a", 2): 90, ("b", 2): 100, ("a", 4): 80}
    path.write_text(json.dumps({"b": {"2": {"anneal": 99}}}))
    with pytest.raises(SystemExit, match="b, k = 2: downset proves 100, but there is 99"):
        bounds.best_partitions(cells, path)


@pytest.mark.parametrize("each", [(), ("--each",)])
@pytest.mark.slow
def test_a_run_takes_up_another(
    each: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cells that are kept are not worked at again."""
    path, kept = tmp_path / "g.json", tmp_path / "kept.jsonl"
    path.write_text(write_native(regal_style("ws", 12, 0)))
    arguments = [str(path), "--time-limit", "2", "--keep", str(kept), "--bounds", "simple", *each]
    bounds.main([*arguments, "-k", "2"])
    assert [json.loads(line)["k"] for line in kept.read_text().splitlines()] == [2]
    worked: list[int] = []
    measure = bounds.measure

    def noted(task: Any) -> Any:
        worked.append(task.k)
        return measure(task)

    monkeypatch.setattr(bounds, "measure", noted)
    capsys.readouterr()
    bounds.main([*arguments, "-k", "2,3"])
    assert worked == [3]
    table = rows_of(capsys.readouterr().out)[0]
    assert table[0][0] == "simple"
    assert len(table[0]) == 4
