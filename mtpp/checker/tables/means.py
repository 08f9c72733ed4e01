"""The means of a table of certificates, added up again from its rows.

For each k they rest on the rows whose simple bound is above 0: ``geomean_ratio`` is the geometric mean of objective /
best bound; ``geomean_bounds`` that of objective / best of the bounds up to each one, in the order in which it lists
them, a bound that a row has not counting as none; ``over_simple`` that of each bound / the simple one, over the rows in
which it was tried, a bound without a value counting as the simple one. ``closed`` counts all rows whose ratio is 1, or
at most 1 + 10⁻⁶ by a MIP solver's bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from mtpp.checker.claim import BOTTLENECK, LATENCY
from mtpp.checker.report import Check, Tier, Verdict, fact
from mtpp.document_shape import Rule, array, choice, mapping, nullable, number, record, whole

_TOLERANCE = 1e-9
_SOLVER_TOLERANCE = 10**6

_over_simple: Rule = mapping(record({"geomean": number, "cells": whole(), "solved": whole()}))

check_summary: Rule = array(
    record(
        {"k": whole(1), "models": whole(), "geomean_ratio": nullable(number), "geomean_bounds": mapping(number)},
        {
            "cells": whole(),
            "closed": whole(),
            "over_simple": _over_simple,
            "best": mapping(whole()),
            "objective": choice(BOTTLENECK, LATENCY),
        },
    )
)
"""Rule of a table's summary."""


check_unfinished: Rule = record({"cut_short": whole(), "not_begun": whole()})
"""Rule of the number of cells that a run which ended early did not finish."""


def verify_unfinished(rows: list[dict[str, Any]], unfinished: dict[str, int] | None) -> list[Check]:
    """Count the rows that Ctrl-C cut short; cells that were not begun have no row, and are what the table records."""
    if unfinished is None:
        return []
    cut, said = sum(row["stopped"] == "interrupted" for row in rows), unfinished["cut_short"]
    if cut != said:
        return [Check("unfinished", False, f"the table says {said} cells cut short, {cut} of its rows are")]
    left = unfinished["not_begun"]
    return [Check("unfinished", True, f"{cut} cut short"), fact("not begun", f"{left} cells, as the table says")]


def unchecked_summary(summary: list[dict[str, Any]], why: str) -> list[Check]:
    """Return the rows on means that were not added up."""
    return [Check(f"means for k = {entry['k']}", None, why) for entry in summary]


def verify_summary(
    rows: list[dict[str, Any]],
    summary: list[dict[str, Any]],
    verdicts: Sequence[Verdict],
    singles: Sequence[Verdict] | None = None,
) -> list[Check]:
    """Add up the means of each k again; no rows if the table has no summary.

    Parameters
    ----------
    verdicts, singles
        On each of *rows*, and on the single bounds in it: a mean is no better than what it rests on. Without *singles*,
        both are the same.
    """
    if not summary:
        return []
    stated = Counter(entry["k"] for entry in summary)
    of_k: dict[int, list[tuple[dict[str, Any], Verdict, Verdict]]] = {k: [] for k in stated}
    for row, verdict, single in zip(rows, verdicts, verdicts if singles is None else singles, strict=True):
        if row["k"] in of_k:
            of_k[row["k"]].append((row, verdict, single))
    checks = []
    for entry in {entry["k"]: entry for entry in summary}.values():  # one is due for each k: more are refused below
        found = of_k[entry["k"]]
        checks += _verify_entry([row for row, *_ in found], entry, [one[1] for one in found], [one[2] for one in found])
    due = {row["k"] for row in rows}
    if due != set(stated) or max(stated.values()) > 1:
        counts = ", ".join(map(str, sorted(due)))
        checks.append(Check("summary", False, f"there has to be one entry for each k of the rows: {counts}"))
    return checks


_OF_SINGLES = ("geomean_bounds", "over_simple", "best")
"""Figures that rest on single bounds."""


def _verify_entry(
    rows: list[dict[str, Any]], entry: dict[str, Any], verdicts: Sequence[Verdict], singles: Sequence[Verdict]
) -> list[Check]:
    k = entry["k"]
    counted = [row for row in rows if _value(row, "simple") > 0]
    with_upper = [row for row in counted if "upper" in row]
    due: dict[str, Any] = {
        "cells": len(rows),
        "models": len(counted),
        "closed": sum(map(_closed, rows)),
        "geomean_ratio": _geomean((row["upper"], row["lower"]) for row in with_upper),
        "geomean_bounds": _best_so_far(with_upper, list(entry["geomean_bounds"])),
        "over_simple": {
            method: {"geomean": _over(tried, method), "cells": len(tried), "solved": _solved(tried, method)}
            for method in dict.fromkeys(method for row in counted for method in row["bounds"] if method != "simple")
            if (tried := [row for row in counted if method in row["bounds"]])
        },
        "best": dict(Counter(row["lower_method"] for row in rows)),
    }
    figures = {key: value for key, value in entry.items() if key not in ("k", "objective")}
    faults = {key: fault for key, value in figures.items() if (fault := _difference(value, due[key], key))}
    objectives = {row.get("objective", BOTTLENECK) for row in rows}
    if objectives - {entry.get("objective", BOTTLENECK)}:
        faults["objective"] = "rows have another objective than their means"
    wrong = next((fault for key, fault in faults.items() if key not in _OF_SINGLES), None)
    single = next((fault for key, fault in faults.items() if key in _OF_SINGLES), None)
    return [
        _mean(f"means for k = {k}", wrong, f"over {len(counted)} of {len(rows)} rows", verdicts),
        _mean(f"single bounds for k = {k}", single, f"over {len(rows)} of {len(rows)} rows", singles),
    ]


def _mean(name: str, fault: str | None, text: str, verdicts: Sequence[Verdict]) -> Check:
    if fault is not None:
        return Check(name, False, fault)
    for verdict, passed in ((Verdict.FALSE, False), (Verdict.UNCHECKED, None)):
        count = verdicts.count(verdict)
        if count:
            which = f"{count} of them {'is' if count == 1 else 'are'} {verdict}"
            return Check(name, passed, f"{text}, and {which}")
    return Check(name, True, text)


def _value(row: dict[str, Any], method: str) -> int:
    value = row["bounds"].get(method)
    return 0 if value is None else int(value)


def _closed(row: dict[str, Any]) -> bool:
    if "upper" not in row:
        return False
    near = row["upper"] * _SOLVER_TOLERANCE <= row["lower"] * (_SOLVER_TOLERANCE + 1)
    return bool(row["upper"] == row["lower"] or (row["tier"] == Tier.SOLVER and near and row["lower"] > 0))


def _solved(rows: list[dict[str, Any]], method: str) -> int:
    return sum(method in row["solved"] for row in rows)


def _over(rows: list[dict[str, Any]], method: str) -> float | None:
    return _geomean((_value(row, method) or _value(row, "simple"), _value(row, "simple")) for row in rows)


def _best_so_far(rows: list[dict[str, Any]], order: list[str]) -> dict[str, float | None]:
    """Return the means in the order stated; those of the simple bound and of all bounds together have to be there."""
    if not rows:
        return {}
    tried = dict.fromkeys(method for row in rows for method in row["bounds"])
    means: dict[str, float | None] = dict.fromkeys(tried)
    best = [0] * len(rows)
    for method in order:
        best = [max(value, _value(row, method)) for value, row in zip(best, rows, strict=True)]
        if min(best) > 0:
            means[method] = _geomean((row["upper"], value) for row, value in zip(rows, best, strict=True))
    return means


def _geomean(ratios: Iterable[tuple[int, int]]) -> float | None:
    pairs = list(ratios)
    if any(b <= 0 for _, b in pairs):
        return None  # a bound of zero beside a simple one above it
    logarithms = [math.log(a) - math.log(b) if a > 0 else -math.inf for a, b in pairs]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def _difference(stated: Any, due: Any, what: str) -> str | None:
    """Say in what a figure, or one of many, differs from what it has to be."""
    if isinstance(due, dict):
        for key in {**due, **stated}:
            if key not in stated or key not in due:
                return f"{what} {'lacks' if key in due else 'should not have'} {key[:60]!r}"
            if fault := _difference(stated[key], due[key], f"{what} of {key[:60]}"):
                return fault
        return None
    if stated is None or due is None:
        same = stated is due
    elif isinstance(due, float):
        same = math.isclose(float(stated), due, rel_tol=_TOLERANCE)
    else:
        same = stated == due
    shown = stated if stated is None or isinstance(stated, int) else float(stated)
    return None if same else f"{what} is {shown!r} in the table, it is {due!r}"
