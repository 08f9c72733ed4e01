"""Bounds that a row of a table lists one by one: the best one is the best of them, and each rests on a proof.

The simple bound is derived from the graph. The best bound has rows of its own. Of any other one the row may hold the
proof; without it nobody can tell what that bound comes to, though it is known what it cannot: no bound is above the
best one, nor above the bottleneck of a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.checker.checks import check_bound
from mtpp.checker.claim import BOTTLENECK
from mtpp.checker.devices.replicas import REPLICAS
from mtpp.checker.facts import counted
from mtpp.checker.report import BOUND_CHECK, Check, Report, Search, Tier, Verdict, fact, listed, worst
from mtpp.checker.tables.row_claims import SIMPLE, RowClaims
from mtpp.document_shape import Path, Rule, anything, choice, mapping, record, refuse

NAME = "bounds tried"
"""Name of the row of the report."""

PROVEN_BOUND = "proven lower bound"
"""Row on the best bound that can be checked, where the best one cannot."""

proofs: Rule = mapping(record({"tier": choice(Tier.EXACT, Tier.ENUMERATED), "proof": anything}))
"""Rule of the proofs of single bounds, by method; their content is not looked at."""


def refuse_stray_proofs(row: dict[str, Any], path: Path) -> None:
    """Raise InputError if a row has a proof of a bound that it does not list."""
    for method in row.get("proofs", {}):
        if row["bounds"].get(method) is None:
            refuse("is the proof of a bound that the row does not have", (*path, "proofs", method))


def others(row: Mapping[str, Any]) -> dict[str, int]:
    """Return the single bounds of a row but the best one, by method."""
    return {
        method: value
        for method, value in row["bounds"].items()
        if value is not None and (method, value) != (row["lower_method"], row["lower"])
    }


def without_proof(row: dict[str, Any]) -> set[str]:
    """Return the bounds of a row that nobody can check: its proof is not there, or it has none."""
    known = {*row.get("proofs", {}), *([row["proven"]["method"]] if "proven" in row else [])}
    known |= {SIMPLE} if _simple_alone(row) else set()
    unproven = {row["lower_method"]} if row["tier"] == Tier.SOLVER else set()
    return unproven | {method for method in others(row) if method not in known}


def _simple_alone(row: Mapping[str, Any]) -> bool:
    """Tell whether the simple bound is derived from the graph alone: it is of bottlenecks, a device a stage."""
    return row.get("objective", BOTTLENECK) == BOTTLENECK and REPLICAS not in row


def contradiction(row: Mapping[str, Any], reached: int | None) -> str | None:
    """Say in what single bounds contradict each other, or a bottleneck; None if they do not."""
    bounds = row["bounds"]
    for method, value in bounds.items():
        if value is not None and reached is not None and value > reached:
            return f"{method}: {value} ticks are above the {row.get('objective', BOTTLENECK)} {reached}"
    for method, stated in [(row["lower_method"], row["lower"])] + [
        (one["method"], one["value"]) for one in (row.get("proven"),) if one is not None
    ]:
        if bounds.get(method) != stated:
            listed_as = "not among the bounds tried" if bounds.get(method) is None else f"listed as {bounds[method]}"
            return f"{method}: {stated} ticks are {listed_as}"
    for method, value in others(row).items():
        if value > row["lower"]:
            return f"{method}: {value} ticks are above {row['lower']}, which is called the best bound"
    stray = next((method for method in row["solved"] if method not in bounds), None)
    return None if stray is None else f"{stray[:60]!r} is said to be solved, and was not tried"


def check_single_bounds(
    claims: RowClaims,
    path: Path,
    reached: int | None,
    checks: Sequence[Check],
    search: Search | None,
) -> Check:
    """Check the bounds that a row lists.

    Parameters
    ----------
    claims
        The row with its graph.
    path
        Of the row in its table.
    reached
        Objective of the row's partition, if there is one.
    checks
        Rows on the best bound.
    """
    row = claims.row
    fault = contradiction(row, reached)
    if fault is not None:
        return Check(NAME, False, fault)
    open_: list[str] = []
    found = others(row)
    for method, value in found.items():
        verdict, detail = _verdict(claims, method, value, path, checks, search)
        if verdict is False:
            return Check(NAME, False, detail)
        if verdict is None:
            open_.append(method)
    if open_:
        rest = len(found) - len(open_)
        others_hold = f"; {counted(rest, 'other')} checked" if rest else ""
        return Check(NAME, None, f"{listed(open_)} without a proof that can be checked{others_hold}")
    if not found:
        return fact(NAME, "the best one alone")
    return Check(NAME, True, f"{counted(len(found), 'other')} besides the best one, each checked by its proof")


def _verdict(
    claims: RowClaims,
    method: str,
    value: int,
    path: Path,
    checks: Sequence[Check],
    search: Search | None,
) -> tuple[bool | None, str]:
    row = claims.row
    if method == SIMPLE and _simple_alone(row):
        return claims.check_simple(value)
    proven = row.get("proven")
    if proven is not None and (method, value) == (proven["method"], proven["value"]):
        return _passed(checks, PROVEN_BOUND), f"{method}: its proof is false"
    stated = row.get("proofs", {}).get(method)
    if stated is None:
        return None, ""
    place = (*path, "proofs", method, "proof")
    claim = claims.claim(method, value, stated["proof"], place, NAME)
    if isinstance(claim, Check):
        return False, claim.detail
    check, _ = check_bound(claim, method, Tier(stated["tier"]), None, search, NAME)
    return check.passed, check.detail


def _passed(checks: Iterable[Check], name: str) -> bool | None:
    return next((check.passed for check in checks if check.name == name), None)


def on_singles(report: Report) -> Verdict:
    """Return the verdict on the single bounds of a row: all that its means of bounds rest on."""
    return worst(check.verdict for check in report.checks if check.name in (NAME, BOUND_CHECK))


def on_the_rest(report: Report) -> Verdict:
    """Return the verdict on all else in a row."""
    return worst(check.verdict for check in report.checks if check.name != NAME)
