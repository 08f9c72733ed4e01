"""Tables of certificates for terminals, Markdown, CSV, HTML and JSON: a line per cell, and means over graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier
from mtpp.views.bounds import bound_marks, bounds_cells, bounds_tables
from mtpp.views.certificate_means import Means, means_tables
from mtpp.views.certificate_texts import NONE, model_labels, rows_by_graph, ticks_text
from mtpp.views.tables import (
    csv_text,
    figures_grid,
    markdown_result,
    markdown_text,
    markdown_title,
    rendered,
    result_terminal,
    safe_text,
    seconds_text,
)

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table
    from rich.text import Text

    from mtpp.inference.certificate_table import CertificateRow

TOLERANCE = "closed to solver tolerance"
_STARRED = "closed*"

_FIXED_COLUMNS = (
    "model", "path", "sha256", "ops", "tensors", "k", "time_unit", "ticks_per_unit", "upper", "upper_algorithm",
    "lower", "lower_method", "tier", "ratio", "optimal", "closed", "proven", "proven_method", "proven_tier", "stopped",
    "partition_seconds", "total_seconds",
)  # fmt: skip
_UPPER_COLUMNS = ("upper", "upper_algorithm", "ratio", "optimal", "closed", "partition_seconds")

_HEADER = ("model", "ops", "k", "upper", "by", "lower", "by", "tier", "ratio", "seconds")
_LEFT = ("model", "by", "tier")
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


def certificates_text(
    rows: Sequence[CertificateRow],
    output_format: str,
    *,
    as_fraction: bool = False,
    with_upper: bool = True,
    notes: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the table as ``table``, ``markdown`` or ``csv``.

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
    if output_format == "csv":
        return _csv(rows, with_upper)
    markdown = output_format == "markdown"
    outcome = _outcome(rows, markdown=markdown) if with_upper else bound_marks(rows, markdown=markdown)
    figures = [*outcome, *_rests_on(rows), *notes]
    means = means_tables(rows, as_fraction=as_fraction) if with_upper or len(rows) > 1 else []
    if markdown:
        return _markdown(rows, means, figures, with_upper)
    return _terminal(rows, means, figures, with_upper)


def certificates_html(
    rows: Sequence[CertificateRow], *, with_upper: bool = True, notes: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the table of cells and what is said of all of them; the means are left out."""
    from mtpp.views.html import html_text

    labels = model_labels(rows)
    if with_upper:
        header: Sequence[str] = _HEADER
        cells = [_cell_texts(row, labels[row.path]) for row in rows]
        figures = [*_outcome(rows, markdown=True), *_rests_on(rows), *notes]
    else:
        header, cells = bounds_cells(rows)
        figures = [*bound_marks(rows, markdown=True), *_rests_on(rows), *notes]
    left = [j for j, name in enumerate(header) if name in _LEFT]
    return html_text(_title(rows, with_upper), header, cells, figures, left=left)


def certificates_json(rows: Sequence[CertificateRow]) -> str:
    """Return the ``mtpp-certificates`` document, version 1, a line per row and k."""
    from mtpp.formats.io.json_text import dump_lines
    from mtpp.inference.certificate_table import table_document
    from mtpp.solvers.certify.summary import summarise

    document = table_document(rows, [summary.to_document() for summary in summarise(rows)])
    return dump_lines(document, ("rows", "summary")) + "\n"


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


def _csv(rows: Sequence[CertificateRow], with_upper: bool) -> str:
    """Return a line per cell, with every bound in ticks and the seconds that it took."""
    from mtpp.solvers.certify.summary import ladder

    fixed = [name for name in _FIXED_COLUMNS if with_upper or name not in _UPPER_COLUMNS]
    names = ladder(rows)
    header = [*fixed, *names, *(f"{name}_seconds" for name in names)]
    return csv_text(header, ([_plain(row)[name] for name in fixed] + _bound_cells(row, names) for row in rows))


def _plain(row: CertificateRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in _FIXED_COLUMNS if hasattr(row, name)}
    values |= {"lower": row.lower.value, "lower_method": row.lower.method, "tier": row.lower.tier}
    proof = row.best_proof
    values |= {"proven": proof and proof.value, "proven_method": proof and proof.method}
    values["proven_tier"] = proof and proof.tier
    for name in ("partition_seconds", "total_seconds"):
        values[name] = round(values[name], 6)
    for name in ("optimal", "closed"):
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
    from mtpp.inference.model_assumptions import assumptions_of_models
    from mtpp.inference.model_sizes import sizes_of_models
    from mtpp.inference.system import System

    tiers = {row.lower.tier for row in rows}
    named = [f"{tier}: {meaning}" for tier, meaning in _TIERS.items() if tier in tiers]
    if named:
        yield "tier", "; ".join(named)
    claimed = [row for row in rows if not row.lower.is_proof and row.best_proof is not None]
    if claimed:
        yield "proven", _proven_text(rows, claimed)
    assumed = dict.fromkeys(f"system {System.from_document(row.system).describe()}" for row in rows)
    for row in rows:
        if row.costs_sha256 is not None:
            assumed[f"costs measured (SHA-256 {row.costs_sha256[:8]}…)"] = None
    assumed |= dict.fromkeys(sizes_of_models(rows))
    assumed |= dict.fromkeys(assumptions_of_models((row.model, row.assumptions) for row in rows))
    if assumed:
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


def _cell_texts(row: CertificateRow, label: str) -> list[str]:
    return [
        label,
        f"{row.ops:,}",
        str(row.k),
        ticks_text(row, row.upper),
        row.upper_algorithm or NONE,
        ticks_text(row, row.lower.value),
        row.lower.method,
        row.lower.tier,
        _ratio(row),
        seconds_text(row.total_seconds),
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


def _markdown(
    rows: Sequence[CertificateRow], means: Sequence[Means], figures: Sequence[tuple[str, str]], with_upper: bool
) -> str:
    labels = model_labels(rows)
    header: Sequence[str] = _HEADER
    if with_upper:
        cells = [_cell_texts(row, labels[row.path]) for row in rows]
    else:
        header, cells = bounds_cells(rows)
    parts = [markdown_result(_title(rows, with_upper), header, cells, figures)]
    parts += [f"{markdown_title(one.title)}{markdown_text(one.header, one.rows)}\n{one.caption}\n" for one in means]
    return "\n".join(parts)


def _title(rows: Sequence[CertificateRow], with_upper: bool) -> str:
    what = "Certificates" if with_upper else "Lower bounds"
    if not rows:
        return f"{what}: none"
    graphs = len({row.path for row in rows})
    counts = ", ".join(map(str, sorted({row.k for row in rows})))
    over = f"{rows[0].model}, {rows[0].ops:,} ops" if graphs == 1 else f"{graphs:,} graphs"
    return f"{what}: {over}, k = {counts}"


def _terminal(
    rows: Sequence[CertificateRow], means: Sequence[Means], figures: Sequence[tuple[str, str]], with_upper: bool
) -> str:

    terminal, endless = result_terminal(), result_terminal(endless=True)
    text = rendered(terminal, safe_text(_title(rows, with_upper), "bold"))
    text += rendered(endless, *(_cell_tables if with_upper else bounds_tables)(rows, terminal.width))
    text += rendered(terminal, "", figures_grid(figures))
    for one in means:
        text += rendered(terminal, "", safe_text(one.title, "bold"))
        text += rendered(endless, *one.tables(terminal.width)) + rendered(terminal, safe_text(one.caption, "dim"))
    return text


def _cell_tables(rows: Sequence[CertificateRow], width: int) -> Iterator[Table | Text]:
    """Yield a line per cell; where those are too wide, each model's name with a line per k below it."""
    labels = model_labels(rows)
    cells = [_cell_texts(row, labels[row.path]) for row in rows]
    for texts in cells:
        texts[_RATIO] = texts[_RATIO].replace(TOLERANCE, _STARRED)
    widths = [max(len(texts[j]) for texts in (_HEADER, *cells)) for j in range(len(_HEADER))]

    def fits(kept: Sequence[int], gap: int = 2) -> bool:
        return sum(widths[j] + gap for j in kept) - gap <= width

    kept = list(range(len(_HEADER)))
    if fits(kept):
        yield _lines(rows, cells, kept, widths, 2)
        return
    kept = kept[2:]
    if not fits(kept):
        kept.remove(_UPPER_BY)
    gap = 2 if fits(kept) else 1
    for path, own in rows_by_graph(rows).items():
        yield safe_text("")
        yield safe_text(f"{labels[path]}: {rows[own[0]].ops:,} ops")
        yield _lines([rows[i] for i in own], [cells[i] for i in own], kept, widths, gap)


def _lines(
    rows: Sequence[CertificateRow],
    cells: Sequence[Sequence[str]],
    kept: Sequence[int],
    widths: Sequence[int],
    gap: int,
) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for j in kept:
        justify: JustifyMethod = "left" if _HEADER[j] in _LEFT else "right"
        table.add_column(_HEADER[j], justify=justify, no_wrap=True, min_width=widths[j])
    for row, texts in zip(rows, cells, strict=True):
        style = "bold green" if row.closed else ""
        table.add_row(*(safe_text(texts[j], style if j == _RATIO else "") for j in kept))
    return table
