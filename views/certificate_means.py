"""The summary tables below a table of certificates: geometric means per k of each bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtpp.views.table import NONE, Column, Table

if TYPE_CHECKING:
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.solvers.certify.summary import OverSimple, Summary


def means_tables(rows: Sequence[CertificateRow], *, as_fraction: bool) -> list[Table]:
    """Return the tables that say something: best bounds so far, each bound over the simple one, the best bounds.

    Archer et al. (2024), Tables 1 and 3 with *as_fraction*, else the draft of 2023, Table 3, for the first; the
    draft's Tables 2 and 5 for the second, whose bounds are alone as those where there are no partitions.
    """
    from mtpp.solvers.certify.summary import ladder, summarise

    summaries, names = summarise(rows), ladder(rows)
    graphs = len({row.path for row in rows})
    alone = all(row.upper is None for row in rows)
    tables = [_best_so_far(summaries, names, graphs, as_fraction), _over_simple(summaries, names, graphs, alone=alone)]
    if graphs > 1:
        tables.append(_best(summaries, names))
    return [table for table in tables if table is not None]


def _table(title: str, summaries: Sequence[Summary], rows: Sequence[Sequence[str]], caption: str) -> Table:
    columns = [Column("bound", left=True), *(Column(f"k = {summary.k}") for summary in summaries)]
    return Table(title, columns, rows, notes=[caption], in_blocks=True)


def _resting(summaries: Sequence[Summary], graphs: int) -> list[list[str]]:
    """Return a row with the number of graphs behind each column, where that is not all of them."""
    models = [summary.models for summary in summaries]
    return [] if all(count == graphs for count in models) else [["graphs", *map(str, models)]]


def _over(graphs: int) -> str:
    return "" if graphs == 1 else f", geometric means over {graphs:,} graphs"


def _left_out(summaries: Sequence[Summary]) -> str:
    left = sum(summary.cells - summary.models for summary in summaries)
    if not left:
        return ""
    return f"; {left:,} {'cell is' if left == 1 else 'cells are'} left out: no simple bound above 0"


def _unproven(summaries: Sequence[Summary]) -> str:
    cells = sum(summary.by_solver for summary in summaries)
    return f"; in {cells:,} {'cell' if cells == 1 else 'cells'} the best is HiGHS's word, not proven" if cells else ""


def _best_so_far(summaries: Sequence[Summary], names: Sequence[str], graphs: int, as_fraction: bool) -> Table | None:
    shown = [name for name in names if any(name in summary.best_so_far for summary in summaries)]
    if not shown:
        return None
    rows = [
        [name, *(_mean(summary.best_so_far.get(name), as_fraction, summary.proven_optimal) for summary in summaries)]
        for name in shown
    ]
    title = "Best lower bound so far / bottleneck" if as_fraction else "Bottleneck / best lower bound so far"
    caption = "best of the bounds down to each row; one that was not run in a cell, closed or out of time, adds nothing"
    caption += _unproven(summaries)
    return _table(title + _over(graphs), summaries, rows + _resting(summaries, graphs), caption + _left_out(summaries))


def _mean(ratio: float | None, as_fraction: bool, optimal: bool) -> str:
    """Write a mean of ratios; only where every cell is optimal it reads as 1."""
    if ratio is None:
        return NONE
    return "1" if ratio == 1 and optimal else f"{1 / ratio if as_fraction else ratio:.4f}"


def _over_simple(summaries: Sequence[Summary], names: Sequence[str], graphs: int, *, alone: bool) -> Table | None:
    shown = [name for name in names if any(name in summary.over_simple for summary in summaries)]
    if not shown:
        return None
    rows = [[name, *(_share(summary.over_simple.get(name), summary) for summary in summaries)] for name in shown]
    caption = f"each bound {'alone' if alone else 'in its turn'}, in whole ticks "
    caption += "(percent of runs completed)"
    if not alone:  # a bound of the ladder does not prove again what is known
        caption += "; one that proved nothing above those before it may count as 1"
    if any(one.cells < summary.models for summary in summaries for one in summary.over_simple.values()):
        caption += "; [n]: run on n graphs only"
    title = "Lower bound / simple lower bound" + _over(graphs)
    return _table(title, summaries, rows + _resting(summaries, graphs), caption + _left_out(summaries))


def _share(one: OverSimple | None, summary: Summary) -> str:
    if one is None:
        return NONE
    share = "100" if one.solved == one.cells else f"{min(100 * one.solved / one.cells, 99.9):.3g}"
    cells = "" if one.cells == summary.models else f" [{one.cells}]"
    return f"{one.mean:.3f} ({share}){cells}"


def _best(summaries: Sequence[Summary], names: Sequence[str]) -> Table:
    every = dict.fromkeys([*names, *(name for summary in summaries for name in summary.best)])
    rows = [
        [name, *(str(summary.best.get(name, 0)) for summary in summaries)]
        for name in every
        if any(name in summary.best for summary in summaries)
    ]
    closed = [["closed", *(f"{summary.closed} of {summary.cells}" for summary in summaries)]]
    with_upper = any(summary.ratio is not None for summary in summaries)
    return _table(
        "Cells whose best bound is this one",
        summaries,
        rows + (closed if with_upper else []),
        "the first that reached it, where several did; closed: optimal, or to solver tolerance",
    )
