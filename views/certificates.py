"""Tables of certificates: a line per cell, means over graphs, and bounds without partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier
from mtpp.names import BOTTLENECK_OBJECTIVE
from mtpp.views.certificate_texts import (
    envelope_figure,
    goal_figures,
    model_labels,
    rows_by_graph,
    seconds_text,
    ticks_text,
)
from mtpp.views.renderer import view
from mtpp.views.table import NONE, Column, Figure, Table

if TYPE_CHECKING:
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.solvers.certify.summary import OverSimple, Summary
    from mtpp.views.terminal import Medium

TOLERANCE = "closed to solver tolerance"
_STARRED = "closed*"

_FIXED_COLUMNS = (
    "model", "path", "sha256", "ops", "tensors", "k", "time_unit", "ticks_per_unit", "upper", "upper_algorithm",
    "lower", "lower_method", "tier", "ratio", "optimal", "closed", "proven", "proven_method", "proven_tier", "stopped",
    "partition_seconds", "total_seconds",
)  # fmt: skip
_GOAL_COLUMNS = ("objective", "max_bottleneck", "max_latency", "replicas", "bottleneck", "latency")
"""Of tables under a goal: objective, limits in ticks, replicas, and both figures of the partition in ticks."""

_UPPER_COLUMNS = (
    *("upper", "upper_algorithm", "ratio", "optimal", "closed", "partition_seconds"),
    *("bottleneck", "latency"),
)

_COLUMNS = (
    Column("model", left=True),
    Column("ops", "{:,}".format),
    Column("k"),
    Column("upper"),
    Column("by", left=True),
    Column("lower"),
    Column("by", left=True),
    Column("tier", left=True),
    Column("ratio"),
    Column("seconds", seconds_text),
)
_UPPER_BY = 4
_RATIO = 8
_LEAST_SHOWN = 1e-4
"""What a ratio exceeds 1 by at least, to be written in four decimals."""

_STOPPED = {
    StopReason.TARGET: "at the ratio asked for",
    StopReason.SOLVER_TARGET: "at the ratio asked for by HiGHS's word",
    StopReason.FINISHED: "with no bound left to try",
    StopReason.TIME_LIMIT: "out of time",
    StopReason.MEMORY_LIMIT: "out of memory",
    StopReason.INTERRUPTED: "interrupted",
}
"""Why work at a cell ended, in words."""

_TIERS = {
    Tier.EXACT: "mtpp verify checks the proof",
    Tier.ENUMERATED: "mtpp verify runs the search again",
    Tier.SOLVER: "HiGHS's word, or a proof too long to be kept: nobody can check it",
}


@view
def certificates_text(
    rows: Sequence[CertificateRow],
    medium: Medium,
    *,
    as_fraction: bool = False,
    with_upper: bool = True,
    notes: Sequence[tuple[str, str]] = (),
) -> Iterable[Table | str]:
    """Return a table with a line per cell, and tables of means.

    Parameters
    ----------
    rows
        Model by model, each with its k in order.
    as_fraction
        Bounds as fractions of the best partition (at most 1) in place of approximation ratios (at least 1).
    with_upper
        Whether there are partitions: ``certify``. Without, bounds alone: ``bound``.
    notes
        More lines of a name and a text for people, below the tables: limits, what was left out.
    """
    if medium.form == "csv":
        return [_raw(rows, with_upper)]
    terminal = medium.form == "table"
    outcome = _outcome(rows, markdown=not terminal) if with_upper else bound_marks(rows, markdown=not terminal)
    title, figures = _title(rows, with_upper), [*goal_figures(rows), *outcome, *_rests_on(rows), *notes]
    means = means_tables(rows, as_fraction=as_fraction) if with_upper or len(rows) > 1 else []
    if terminal:
        return [*_on_terminal(title, rows, figures, medium.terminal.width, with_upper=with_upper), *means]
    table = Table(title, _COLUMNS, _cells(rows), figures) if with_upper else bounds_table(title, rows, figures)
    return [table] if medium.form == "html" else [table, *means]


def unmet_ratio(rows: Sequence[CertificateRow], ratio: Fraction | float) -> list[str]:
    """Return a line for each cell whose proven ratio is not at most *ratio*, compared exactly.

    Bounds of tier ``solver`` prove nothing.
    """
    asked = Fraction(repr(ratio)) if isinstance(ratio, float) else Fraction(ratio)
    labels = model_labels(rows)
    lines = []
    for row in rows:
        cell = f"{labels[row.path]} k={row.k}"
        lower = 0 if row.best_proof is None else row.best_proof.value
        if row.upper is None or (row.upper and not lower):
            lines.append(f"{cell}: no ratio is proven")
        elif row.upper > asked * lower:
            tolerance = f" ({TOLERANCE})" if row.closed and not row.optimal else ""
            lines.append(f"{cell}: ratio {_above(Fraction(row.upper, lower), asked)} > {float(asked):.12g}{tolerance}")
    return lines


def _above(ratio: Fraction, asked: Fraction) -> str:
    """Write a ratio with as many decimals as show that it is above *asked*."""
    for digits in (4, 6, 9, 12):
        text = f"{float(ratio):.{digits}f}"
        if Fraction(text) > asked:
            return text
    return f"{ratio.numerator}/{ratio.denominator}"


def _raw(rows: Sequence[CertificateRow], with_upper: bool) -> Table:
    """Return a line per cell, with every bound in ticks and the seconds that it took."""
    from mtpp.solvers.certify.summary import ladder

    every = _FIXED_COLUMNS if all(row.plain for row in rows) else (*_FIXED_COLUMNS, *_GOAL_COLUMNS)
    fixed = [name for name in every if with_upper or name not in _UPPER_COLUMNS]
    names = ladder(rows)
    header = [*fixed, *names, *(f"{name}_seconds" for name in names)]
    lines = [[_plain(row)[name] for name in fixed] + _bound_cells(row, names) for row in rows]
    return Table(columns=list(map(Column, header)), rows=lines)


def _plain(row: CertificateRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in (*_FIXED_COLUMNS, *_GOAL_COLUMNS) if hasattr(row, name)}
    values |= dict.fromkeys(("max_bottleneck", "max_latency")) | {row.goal.limited: row.goal.limit}
    values |= {"lower": row.lower.value, "lower_method": row.lower.method, "tier": row.lower.tier}
    proof = row.best_proof
    values |= {"proven": proof and proof.value, "proven_method": proof and proof.method}
    values["proven_tier"] = proof and proof.tier
    for name in ("partition_seconds", "total_seconds"):
        values[name] = round(values[name], 6)
    for name in ("optimal", "closed", "replicas"):
        values[name] = str(values[name]).lower()
    return values


def _bound_cells(row: CertificateRow, names: Sequence[str]) -> list[Any]:
    figures = [row.bounds.get(name) for name in names]
    return [*(one and one.value for one in figures), *(one and round(one.seconds, 6) for one in figures)]


def _outcome(rows: Sequence[CertificateRow], *, markdown: bool) -> Iterator[tuple[str, str]]:
    """Say how many cells are closed, what ended the others, and how long all took."""
    optimal = sum(row.optimal for row in rows)
    closed = sum(row.closed for row in rows)
    text = f"{closed:,} of {len(rows):,}, {optimal:,} of them optimal"
    if closed > optimal:
        mark = "" if markdown else " (*)"
        text += f", {closed - optimal:,} {TOLERANCE}{mark}: a ratio of at most 1 + 10⁻⁶ by HiGHS's word, not proven"
    yield "closed", text
    left = [row for row in rows if not row.closed]
    if left:
        labels = model_labels(rows)
        stops = Counter(row.stopped for row in left).most_common()
        text = ", ".join(f"{count:,} {_STOPPED.get(stop, stop)}" for stop, count in stops)
        proven = [row for row in left if row.ratio is not None]
        if proven:
            worst = max(proven, key=lambda row: row.ratio or 0.0)
            text += f"; largest ratio {_ratio(worst)}, {labels[worst.path]} at k = {worst.k}"
        if len(proven) < len(left):
            text += f"; no ratio in {len(left) - len(proven):,}, whose lower bound is 0"
        yield "open", text
    yield "seconds", f"{seconds_text(sum(row.total_seconds for row in rows))} in all cells together"


def _rests_on(rows: Sequence[CertificateRow]) -> Iterator[tuple[str, str]]:
    from mtpp.inference.model_file import assumptions_of_models, devices_of_models, sizes_of_models
    from mtpp.machine.device import Device

    tiers = {row.lower.tier for row in rows}
    named = [f"{tier}: {meaning}" for tier, meaning in _TIERS.items() if tier in tiers]
    if named:
        yield "tier", "; ".join(named)
    yield from envelope_figure(rows)
    claimed = [row for row in rows if not row.lower.is_proof and row.best_proof is not None]
    if claimed:
        yield "proven", _proven_text(rows, claimed)
    labels, digests = model_labels(rows), [row.costs_sha256 for row in rows if row.costs_sha256 is not None]
    devices = ((labels[row.path], Device.from_document(row.system), row) for row in rows)
    assumed = dict.fromkeys(devices_of_models(devices))
    assumed |= dict.fromkeys(f"costs measured (SHA-256 {digest[:8]}…)" for digest in digests)
    assumed |= dict.fromkeys(sizes_of_models(rows))
    assumed |= dict.fromkeys(assumptions_of_models((row.model, row.assumptions) for row in rows))
    if rows:
        yield "assumptions", "; ".join(assumed)


def _proven_text(rows: Sequence[CertificateRow], claimed: Sequence[CertificateRow]) -> str:
    """Say what is proven of the cells whose best bound is the solver's."""
    shares = {row.best_proof.value / row.lower.value: row for row in claimed if row.best_proof and row.lower.value}
    text = f"the best bound is HiGHS's in {len(claimed):,} of {len(rows):,}"
    if not shares:
        return text
    least = min(shares)
    row = shares[least]
    assert row.best_proof is not None
    proof = f"{ticks_text(row, row.best_proof.value)} by {row.best_proof.method}, tier {row.best_proof.tier}"
    if len(rows) == 1:
        return f"{proof}, {least:.4f} of the best bound"
    return f"{text}; what is proven is at least {least:.4f} of it"


def _cells(rows: Sequence[CertificateRow]) -> list[list[Any]]:
    labels = model_labels(rows)
    return [
        [
            *(labels[row.path], row.ops, row.k, ticks_text(row, row.upper), row.upper_algorithm or None),
            *(ticks_text(row, row.lower.value), row.lower.method, row.lower.tier, _ratio(row), row.total_seconds),
        ]
        for row in rows
    ]


def _ratio(row: CertificateRow) -> str:
    """Write the ratio so that only what is optimal reads as 1."""
    if row.ratio is None or row.upper is None:
        return NONE
    if row.optimal:
        return "optimal"
    if row.closed:
        return TOLERANCE
    excess = (row.upper - row.lower.value) / row.lower.value
    return f"{1 + excess:.4f}" if excess >= _LEAST_SHOWN else f"1 + {excess:.1e}"


def _title(rows: Sequence[CertificateRow], with_upper: bool) -> str:
    what = "Certificates" if with_upper else "Lower bounds"
    if not rows:
        return f"{what}: none"
    graphs = len({row.path for row in rows})
    counts = ", ".join(map(str, sorted({row.k for row in rows})))
    over = f"{rows[0].model}, {rows[0].ops:,} ops" if graphs == 1 else f"{graphs:,} graphs"
    return f"{what}: {over}, k = {counts}"


def _on_terminal(
    title: str, rows: Sequence[CertificateRow], figures: Sequence[Figure], width: int, *, with_upper: bool
) -> list[Table | str]:
    """Return a line per cell; where those are too wide, and of bounds, each model's name with its table below it."""
    by_model = {path: [rows[i] for i in places] for path, places in rows_by_graph(rows).items()}
    if with_upper:
        columns = [replace(one, form=_starred) if one.name == "ratio" else one for one in _COLUMNS]
        whole = Table(title, columns, _cells(rows), figures, styles=_closed_styles(rows, _RATIO))
        widths = [max(map(len, column)) for column in zip(whole.header, *whole.cells, strict=True)]

        def fits(kept: Sequence[int], gap: int = 2) -> bool:
            return sum(widths[j] + gap for j in kept) - gap <= width

        kept = list(range(len(columns)))
        if fits(kept):
            return [whole]
        kept = kept[2:]
        if not fits(kept):
            kept.remove(_UPPER_BY)
        gap, columns = 2 if fits(kept) else 1, [replace(columns[j], width=widths[j]) for j in kept]
        lines = {path: [[cells[j] for j in kept] for cells in _cells(own)] for path, own in by_model.items()}
        ratio = kept.index(_RATIO)
        tables = {
            path: Table("", columns, lines[path], styles=_closed_styles(own, ratio), gap=gap)
            for path, own in by_model.items()
        }
    else:
        tables = {path: bounds_of_model(own) for path, own in by_model.items()}
    if not with_upper and len(tables) == 1:
        return [replace(table, title=title, figures=figures) for table in tables.values()]
    labels = model_labels(rows)
    *before, last = [Table(title), *tables.values()]
    named = [f"{labels[path]}: {own[0].ops:,} ops" for path, own in by_model.items()]
    tables_above = [*before, replace(last, figures=figures)]
    return [part for pair in zip_longest(tables_above, named) for part in pair if part is not None]


def _closed_styles(rows: Sequence[CertificateRow], column: int) -> dict[tuple[int, int], str]:
    return {(i, column): "bold green" for i, row in enumerate(rows) if row.closed}


def _starred(ratio: str) -> str:
    return ratio.replace(TOLERANCE, _STARRED)


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
    of = next((one.objective for one in summaries if one.objective != BOTTLENECK_OBJECTIVE), BOTTLENECK_OBJECTIVE)
    title = f"Best lower bound so far / {of}" if as_fraction else f"{of.capitalize()} / best lower bound so far"
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


def bound_marks(rows: Sequence[CertificateRow], *, markdown: bool) -> Iterator[tuple[str, str]]:
    """Say what the marks beside bounds mean, of those that there are."""
    if not markdown and len({row.path for row in rows}) < len(rows):
        yield "*", "the best bound"
    if any(not figure.solved and figure.value is not None for row in rows for figure in row.bounds.values()):
        yield "≥", "not finished: the bound itself may be higher"


def bounds_table(title: str, rows: Sequence[CertificateRow], figures: Sequence[Figure]) -> Table:
    """Return a line per cell with every bound."""
    from mtpp.solvers.certify.summary import ladder

    names, labels = ladder(rows), model_labels(rows)
    columns = [Column("model", left=True), Column("ops", "{:,}".format), Column("k"), *map(Column, names)]
    columns += [Column("best"), Column("by", left=True), Column("tier", left=True), Column("seconds", seconds_text)]
    lines = [
        [
            *(labels[row.path], row.ops, row.k),
            *(_value(row, name) for name in names),
            *(ticks_text(row, row.lower.value), row.lower.method, row.lower.tier, row.total_seconds),
        ]
        for row in rows
    ]
    return Table(title, columns, lines, figures)


def bounds_of_model(rows: Sequence[CertificateRow]) -> Table:
    """Return the bounds of one model: a line each, and a column for each of several k."""
    return _one(rows[0]) if len(rows) == 1 else _many(rows)


def _value(row: CertificateRow, name: str) -> str:
    """Write a bound; where more time might have raised it, as what it is at least."""
    figure = row.bounds.get(name)
    if figure is None or figure.value is None:
        return NONE
    return ("" if figure.solved else "≥ ") + ticks_text(row, figure.value)


def _one(row: CertificateRow) -> Table:
    from mtpp.solvers.bounds.registry import BOUNDS

    lines, styles = [], {}
    for i, (name, figure) in enumerate(row.bounds.items()):
        best = name == row.lower.method
        share = f"{figure.value / row.lower.value:.4f}" if figure.value is not None and row.lower.value else None
        tier = row.lower.tier if best else BOUNDS[name].tier if name in BOUNDS else None
        solved = "yes" if figure.solved else "no"
        lines.append([name, _value(row, name), "best" if best else share, tier, figure.seconds, solved])
        if best:
            styles[i] = "bold green"
    columns = [
        Column("bound", left=True),
        *map(Column, ("lower bound", "of best")),
        Column("tier", left=True),
        Column("seconds", seconds_text),
        Column("solved", left=True),
    ]
    return Table("", columns, lines, styles=styles)


def _many(rows: Sequence[CertificateRow]) -> Table:
    from mtpp.solvers.certify.summary import ladder

    names = ladder(rows)
    lines = zip([*names, "best", "tier", "seconds"], *(_column(row, names) for row in rows), strict=True)
    columns = [Column("bound", left=True), *(Column(f"k = {row.k} ") for row in rows)]
    styles = {
        (i, j): "bold green"
        for j, row in enumerate(rows, 1)
        for i, name in enumerate([*names, "best"])
        if name in (row.lower.method, "best")
    }
    return Table("", columns, list(lines), styles=styles, in_blocks=True)


def _column(row: CertificateRow, names: Sequence[str]) -> list[str]:
    """Return a column: the bounds, the best one, and what is said of the cell."""
    bounds = [_value(row, name) + ("*" if name == row.lower.method else " ") for name in names]
    said = [ticks_text(row, row.lower.value), row.lower.tier, seconds_text(row.total_seconds)]
    return [*bounds, *(f"{text} " for text in said)]
