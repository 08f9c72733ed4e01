"""Tables of certificates for people and programs, letter by letter on rows made by hand."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction

import pytest
from certificate_documents import row
from rich.console import Console

from mtpp.api.cells.certificate_table import CertificateTable
from mtpp.inference.certificate import LowerBound
from mtpp.inference.certificate_table import CertificateRow
from mtpp.views import terminal as terminals
from mtpp.views.certificates import certificates_text, unmet_ratio

MICRO = 10**6

ASSUMED = "assumptions  system reference: 20 TFLOP/s, memory 200 GB/s, link 25 GB/s, no fast-memory limit"


def mixed() -> list[CertificateRow]:
    """Return two cells of a graph in microseconds and one of an abstract graph: optimal, within tolerance, open."""
    proven = LowerBound(45 * MICRO, "node", "exact")
    return [
        row("resnet50", 2, 90 * MICRO, "downset", simple=80 * MICRO, downset=90 * MICRO, tier_="enumerated"),
        row(
            "resnet50", 8, 60 * MICRO, "exact-mip",
            simple=40 * MICRO, downset=None, node=45 * MICRO, exact_mip=60 * MICRO - 9, tier_="solver",
            total_seconds_=61.25, proven_=proven,
        ),
        row(
            "net", 2, 28, "node",
            simple=20, downset=None, node=25, ops_=1400, time_unit_="1", ticks_per_unit_=10, stopped_="time-limit",
        ),
    ]  # fmt: skip


def narrow(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Let the result go to a terminal of so many columns."""

    def terminal(*, endless: bool = False) -> Console:
        return Console(file=io.StringIO(), width=1000 if endless else width, no_color=True, highlight=False)

    monkeypatch.setattr(terminals, "result_terminal", terminal)


def test_table() -> None:
    """A line per cell, what became of all cells, then the means."""
    assert certificates_text(mixed(), "table", notes=[("limits", "60 s per cell")]).splitlines() == [
        "Certificates: 2 graphs, k = 2, 8",
        "model       ops  k     upper  by         lower  by         tier          ratio  seconds",
        "resnet50     12  2  90.00 µs  anneal  90.00 µs  downset    enumerated  optimal     1.00",
        "resnet50     12  8  60.00 µs  anneal  60.00 µs  exact-mip  solver      closed*     61.2",
        "net       1,400  2       2.8  anneal       2.5  node       exact        1.1200     1.25",
        "",
        "closed       2 of 3, 1 of them optimal, 1 closed to solver tolerance (*): a ratio of at most 1 + 10⁻⁶ by "
        "HiGHS's word, not proven",
        "open         1 out of time; largest ratio 1.1200, net at k = 2",
        "seconds      63.5 in all cells together",
        "tier         exact: mtpp verify checks the proof; enumerated: mtpp verify runs the search again; "
        "solver: HiGHS's word, or a proof too long to be kept: nobody can check it",
        "proven       the best bound is HiGHS's in 1 of 3; what is proven is at least 0.7500 of it",
        ASSUMED,
        "limits       60 s per cell",
        "",
        "Bottleneck / best lower bound so far, geometric means over 2 graphs",
        "bound       k = 2   k = 8",
        "simple     1.2550  1.5000",  # √(90/80 · 28/20)
        "downset    1.1832  1.5000",  # √(28/20)
        "node       1.0583  1.3333",  # √(28/25)
        "exact-mip  1.0583  1.0000",
        "graphs          2       1",
        "best of the bounds down to each row; one that was not run in a cell, closed or out of time, adds nothing; "
        "in 1 cell the best is HiGHS's word, not proven",
        "",
        "Lower bound / simple lower bound, geometric means over 2 graphs",
        "bound                k = 2        k = 8",
        "downset         1.061 (50)    1.000 (0)",  # √(90/80)
        "node       1.250 (100) [1]  1.125 (100)",
        "exact-mip                –  1.500 (100)",
        "graphs                   2            1",
        "each bound in its turn, in whole ticks (percent of runs completed); one that proved "
        "nothing above those before it may count as 1; [n]: run on n graphs only",
        "",
        "Cells whose best bound is this one",
        "bound       k = 2   k = 8",
        "downset         1       0",
        "node            1       0",
        "exact-mip       0       1",
        "closed     1 of 2  1 of 1",
        "the first that reached it, where several did; closed: optimal, or to solver tolerance",
    ]


def test_narrow_terminal_has_a_line_for_each_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of models stand above their cells where 80 columns hold no more; all else is kept."""
    narrow(monkeypatch, 80)
    rows = [row("transformer-encoder-of-many-layers", upper=14, simple=9, node=14, method="node"), *mixed()]
    text = certificates_text(rows, "table")
    lines = text.splitlines()
    assert lines[:13] == [
        "Certificates: 3 graphs, k = 2, 8",
        "",
        "transformer-encoder-of-many-layers: 12 ops",
        "k     upper  by         lower  by         tier          ratio  seconds",
        "2     14 ps  anneal     14 ps  node       exact       optimal     1.00",
        "",
        "resnet50: 12 ops",
        "k     upper  by         lower  by         tier          ratio  seconds",
        "2  90.00 µs  anneal  90.00 µs  downset    enumerated  optimal     1.00",
        "8  60.00 µs  anneal  60.00 µs  exact-mip  solver      closed*     61.2",
        "",
        "net: 1,400 ops",
        "k     upper  by         lower  by         tier          ratio  seconds",
    ]
    assert max(map(len, lines)) <= 80


def test_columns_of_k_that_do_not_fit_follow_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table of means is wider than the terminal, and none loses a column."""
    narrow(monkeypatch, 60)
    rows = [
        row(name, k, 30, simple=10, bottleneck_no_cut_io=-20, exact_mip=-25, method="exact-mip")
        for name in "ab"
        for k in (2, 4, 8, 16, 32, 64)
    ]
    lines = certificates_text(rows, "table").splitlines()
    assert max(map(len, lines)) <= 60
    assert [line.split()[1:] for line in lines if line.startswith("exact-mip   ")] == [
        ["1.2000"] * 5,
        ["1.2000"],
        ["2.500", "(0)"] * 3,
        ["2.500", "(0)"] * 3,
        ["2"] * 6,
    ]


def test_the_papers_example_as_fractions() -> None:
    """The case study of section 5 (net10, k = 4): 0.2775, then 2.37 times that, then 1.39 times that, then 0.9913."""
    rows = [
        row("net10", 4, 10000, "exact-mip", simple=2775, bottleneck=6570, bottleneck_guess=9152, exact_mip=-9913)
    ]  # fmt: skip
    lines = certificates_text(rows, "table", as_fraction=True).splitlines()
    start = lines.index("Best lower bound so far / bottleneck")
    assert lines[start + 1 : start + 6] == [
        "bound              k = 4",
        "simple            0.2775",
        "bottleneck        0.6570",
        "bottleneck-guess  0.9152",
        "exact-mip         0.9913",
    ]
    start = lines.index("Lower bound / simple lower bound")
    assert lines[start + 1 : start + 5] == [
        "bound                   k = 4",
        "bottleneck        2.368 (100)",
        "bottleneck-guess  3.298 (100)",
        "exact-mip           3.572 (0)",
    ]


def test_only_what_is_optimal_reads_as_one() -> None:
    """A ratio that rounds to 1 shows what it exceeds 1 by; a mean is 1 only where all are optimal."""
    rows = [row(k=2, upper=10**9, simple=10**9 - 3000), row(k=4, upper=9, simple=9), row(k=8, upper=3, simple=0)]
    lines = certificates_text(rows, "table").splitlines()
    assert [line.split()[-2] for line in lines[2:5]] == ["3.0e-06", "optimal", "–"]
    assert "1 + 3.0e-06" in lines[2]
    last = "2 at the ratio asked for; largest ratio 1 + 3.0e-06, net at k = 2; no ratio in 1, whose lower bound is 0"
    assert lines[7].endswith(last)
    start = lines.index("Bottleneck / best lower bound so far")
    assert lines[start + 1 : start + 5] == [
        "bound    k = 2  k = 4  k = 8",
        "simple  1.0000      1      –",
        "graphs       1      1      0",
        "best of the bounds down to each row; one that was not run in a cell, closed or out of time, adds nothing; "
        "1 cell is left out: no simple bound above 0",
    ]


def test_share_of_solved_cells_is_never_rounded_up_to_all() -> None:
    """One unsolved of many is not 100 %."""
    rows = [row(str(i), simple=2, node=-3 if i == 0 else 3, method="node") for i in range(3000)]
    assert "\n| node | 1.500 (99.9) |\n" in certificates_text(rows, "markdown", with_upper=False)


def test_graphs_of_one_name_are_called_by_their_files() -> None:
    """Two files may hold graphs of the same name."""
    rows = [row(upper=3, simple=2, path_="x.json"), row(upper=3, simple=2, path_="y.json"), row("z", upper=3, simple=1)]
    assert [line.split()[0] for line in certificates_text(rows, "table").splitlines()[2:5]] == [
        "x.json",
        "y.json",
        "z",
    ]


def test_markdown() -> None:
    """GitHub tables; the phrase for the solver's tolerance in full."""
    text = certificates_text(mixed()[1:], "markdown", as_fraction=True)
    assert text.splitlines()[:10] == [
        "### Certificates: 2 graphs, k = 2, 8",
        "",
        "| model | ops | k | upper | by | lower | by | tier | ratio | seconds |",
        "|---|---:|---:|---:|---|---:|---|---|---|---:|",
        "| resnet50 | 12 | 8 | 60.00 µs | anneal | 60.00 µs | exact-mip | solver | closed to solver tolerance | 61.2 |",
        "| net | 1,400 | 2 | 2.8 | anneal | 2.5 | node | exact | 1.1200 | 1.25 |",
        "",
        "- **closed**: 1 of 2, 0 of them optimal, 1 closed to solver tolerance: a ratio of at most 1 + 10⁻⁶ by "
        "HiGHS's word, not proven",
        "- **open**: 1 out of time; largest ratio 1.1200, net at k = 2",
        "- **seconds**: 62.5 in all cells together",
    ]
    assert (
        "### Best lower bound so far / bottleneck, geometric means over 2 graphs\n\n"
        "| bound | k = 2 | k = 8 |\n|---|---:|---:|\n| simple | 0.7143 | 0.6667 |\n"
    ) in text


def test_csv_has_every_bound_as_a_column() -> None:
    """A line per cell in ticks; a bound that proved nothing has seconds and no value, one that was not run neither."""
    lines = list(csv.DictReader(io.StringIO(certificates_text(mixed(), "csv"))))
    assert list(lines[0]) == [
        "model", "path", "sha256", "ops", "tensors", "k", "time_unit", "ticks_per_unit", "upper", "upper_algorithm",
        "lower", "lower_method", "tier", "ratio", "optimal", "closed", "proven", "proven_method", "proven_tier",
        "stopped", "partition_seconds", "total_seconds",
        "simple", "downset", "node", "exact-mip",
        "simple_seconds", "downset_seconds", "node_seconds", "exact-mip_seconds",
    ]  # fmt: skip
    assert [line["exact-mip"] for line in lines] == ["", "59999991", ""]
    assert (lines[1]["downset"], lines[1]["downset_seconds"]) == ("", "0.25")
    assert (lines[0]["node"], lines[0]["node_seconds"]) == ("", "")
    assert [(line["optimal"], line["closed"]) for line in lines] == [("true",) * 2, ("false", "true"), ("false",) * 2]
    assert float(lines[2]["ratio"]) == 28 / 25
    assert [line["proven"] for line in lines] == ["90000000", "45000000", "25"]
    assert (lines[1]["proven_method"], lines[1]["proven_tier"]) == ("node", "exact")


def test_csv_of_bounds_has_no_upper_side() -> None:
    """What ``mtpp bound`` does not know is no empty column."""
    assert certificates_text([row(simple=10, node=-12, method="node")], "csv", with_upper=False) == (
        "model,path,sha256,ops,tensors,k,time_unit,ticks_per_unit,lower,lower_method,tier,proven,proven_method,"
        "proven_tier,stopped,total_seconds,simple,node,simple_seconds,node_seconds\n"
        f"net,net.json,{'0' * 64},12,11,2,ps,1,12,node,exact,12,node,exact,target,1.0,10,12,0.25,0.25\n"
    )


def test_json_reads_back() -> None:
    """The document's rows are the rows, and its summary is that of the tables."""
    document = json.loads(CertificateTable(mixed()).to_json())
    assert (document["format"], document["version"]) == ("mtpp-certificates", 1)
    assert [CertificateRow.from_document(one) for one in document["rows"]] == mixed()
    assert [(one["k"], one["models"]) for one in document["summary"]] == [(2, 2), (8, 1)]


@pytest.mark.parametrize("output_format", ["table", "markdown", "csv"])
@pytest.mark.parametrize("with_upper", [True, False])
def test_no_rows_are_a_table_too(output_format: str, with_upper: bool) -> None:
    """An interrupted run may have finished no cell."""
    text = certificates_text([], output_format, with_upper=with_upper)
    assert text.startswith("model,path" if output_format == "csv" else ("Certificates", "Lower bounds", "### "))


def test_cells_above_a_ratio() -> None:
    """Compared as integers; the ratio is written so that it reads as above."""
    rows = [
        row("a", 2, 1050, simple=1000),
        row("a", 4, 1051, simple=1000),
        row("b", 2, 1050 * 10**9 + 1, simple=1000 * 10**9),
        row("b", 4, 105 * 10**16 + 1, simple=10**18),
        row("c", 2, 5, simple=0),
        row("c", 4, 0, simple=0),
    ]
    assert unmet_ratio(rows, 1.05) == [
        "a k=4: ratio 1.0510 > 1.05",
        "b k=2: ratio 1.050000000001 > 1.05",
        "b k=4: ratio 1050000000000000001/1000000000000000000 > 1.05",
        "c k=2: no ratio is proven",
    ]
    assert unmet_ratio(rows, Fraction(2)) == ["c k=2: no ratio is proven"]
    assert unmet_ratio(rows[:1], 1.05) == []


def test_a_bound_of_the_solver_meets_no_requirement() -> None:
    """What is proven counts, however close the solver's bound is, equal included."""
    proven = LowerBound(80, "node", "exact")
    rows = [
        row("a", upper=10**8, simple=10**8 - 9, tier_="solver"),
        row("b", upper=100, simple=80, node=80, exact_mip=100, method="exact-mip", tier_="solver", proven_=proven),
    ]
    assert unmet_ratio(rows, 1.1) == [
        "a k=2: no ratio is proven",
        "b k=2: ratio 1.2500 > 1.1 (closed to solver tolerance)",
    ]
    assert unmet_ratio(rows[1:], 1.25) == []


def test_equal_numbers_of_tier_solver_are_not_optimal() -> None:
    """Neither in the table, nor in JSON and CSV, nor in a mean."""
    proven = LowerBound(80, "node", "exact")
    cell = row("b", upper=100, simple=80, node=80, exact_mip=100, method="exact-mip", tier_="solver", proven_=proven)
    lines = certificates_text([cell], "table").splitlines()
    assert "closed*" in lines[2]
    assert "1 of 1, 0 of them optimal, 1 closed to solver tolerance" in lines[4]
    assert next(line for line in lines if line.startswith("exact-mip  ")).split() == ["exact-mip", "1.0000"]
    (document,) = json.loads(CertificateTable([cell]).to_json())["rows"]
    assert (document["ratio"], document["optimal"]) == (1.0, False)
    assert document["proven"] == {"value": 80, "method": "node", "tier": "exact", "proof": {}, "ratio": 1.25}
    (line,) = csv.DictReader(io.StringIO(certificates_text([cell], "csv")))
    assert (line["optimal"], line["closed"], line["proven"]) == ("false", "true", "80")
    assert "optimal |" not in certificates_text([cell], "markdown")


def test_rows_of_exact_bounds_carry_no_second_proof() -> None:
    """What is proven is the bound itself."""
    (document,) = json.loads(CertificateTable([row(upper=9, simple=9)]).to_json())["rows"]
    assert "proven" not in document
    assert document["optimal"] is True
