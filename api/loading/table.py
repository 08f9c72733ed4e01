"""Tables of certificates read back from their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.inference.certificate import approximation_ratio

if TYPE_CHECKING:
    from mtpp.api.cells.certificate_table import BoundTable, CertificateTable


def table_of(document: Mapping[str, Any]) -> CertificateTable | BoundTable:
    """Return the table of a document of ``mtpp-certificates``; of bounds alone where no row has a partition."""
    from mtpp.api.cells.certificate_table import BoundTable, CertificateTable
    from mtpp.api.cells.rows import sealed
    from mtpp.checker.table import check_table
    from mtpp.document_shape import pointer
    from mtpp.inference.certificate_table import CertificateRow

    check_table(document, ())
    rows = []
    for i, row in enumerate(document["rows"]):
        for problem, *place in _contradictions(row):
            raise InputError(str(problem), where=pointer("rows", i, *place))
        seconds = {name: float(value) for name, value in row["seconds"].items()}
        rows.append(sealed(CertificateRow.from_document({**row, "seconds": seconds})))
    with_upper = not rows or any(row.upper is not None for row in rows)
    return (CertificateTable if with_upper else BoundTable)(tuple(rows), stopped=None, loaded=document)


def _contradictions(row: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield what figures of a row contradict others; early tables call optimal what a bound of tier solver closes."""
    for name in ("partition", *row["bounds"], "total"):
        if name not in row["seconds"]:
            yield "missing key", "seconds", name
    for i, name in enumerate(row["solved"]):
        if name not in row["bounds"]:
            yield f"no bound is called {name!r}", "solved", i
    if "upper" not in row:
        return
    upper, lower, k = row["upper"], row["lower"], row["k"]
    if lower > upper:
        yield f"{lower} is above the bottleneck, {upper}", "lower"
    if _differs(row["ratio"], upper, lower):
        yield "is not upper / lower", "ratio"
    if row["optimal"] and lower < upper:
        yield f"true, but the lower bound, {lower}, is below the bottleneck, {upper}", "optimal"
    if not row["optimal"] and lower == upper and row["tier"] != "solver":
        yield "false, but a proof meets the bottleneck", "optimal"
    if "proven" in row and _differs(row["proven"]["ratio"], upper, row["proven"]["value"]):
        yield "is not upper / value", "proven", "ratio"
    if len(row["assignment"]) != row["ops"]:
        yield f"{row['ops']}, but {len(row['assignment'])} ops have a stage", "ops"
    for name, stage in row["assignment"].items():
        if not 0 <= stage < k:
            yield f"{stage} is not the number of a stage", "assignment", name


def _differs(stated: Any, upper: int, lower: int) -> bool:
    return (None if stated is None else float(stated)) != approximation_ratio(upper, lower)
