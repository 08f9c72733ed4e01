"""Every value of every kind of document is checked, or in the list of those that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import Any

import pytest
from every_document import COMMANDS, documented, passes
from recorded_values import RECORDED, is_recorded, kind_of, listed_as_table
from seeds import ALL_SEEDS
from tampering import Path as Place
from tampering import altered

import mtpp
from mtpp.errors import InputError

NAMES = (
    *("auto", "downset", "anneal", "slice", "given", "piper", "equi", "pipedream-2bw", "graphpipe", "pfeife"),
    *("simple", "node", "crossings", "work", "layer", "chains", "exhaustive", "paths", "loads", "family", "schedule"),
    *("shares", "exact", "enumerated", "solver", "finished", "optimal", "budget", "target", "infeasible", "gpipe"),
    *("1f1b", "interleaved", "bfs", "zero-bubble", "neighbours", "direct", "divisors", "any", "least", "file"),
    *("search", "beam", "fastest", "smallest", "paper", "program", "reserve", "order", "heuristic", "ps", "ms", "1"),
    *("magic", "", "1/2", "2", "0F0", "a", "b", "p", "q", "0" * 64),
)
"""Values of names, those of all kinds, and some that no name has."""


_FEW = 3
_SOME_NAMES = 20


def values(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every value without parts, with its place; empty objects and arrays too."""
    if value and isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from values(item, (*place, key))
    else:
        yield place, value


def others(value: Any) -> list[Any]:
    """Return values that could stand in place of another."""
    if value is None:
        return [1, 0, "x", "gpipe", [], [1], [0, 0], True, 10**6]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [*NAMES, value + "x"]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value + 7, 0, value + 10**6]
    if isinstance(value, float):
        return [value + 1, value * 1.000001 + 1e-12, 0.0]
    return [{"n": 2}, {"a": "plain"}] if value == {} else [["a"], [0], [1], [["a", "b"]], [["0F0", "0B0"]]]


def unheld(kind: str, pick: Random | None) -> set[Place]:
    """Return the places whose value can be another one and is not listed; with *pick*, of one other value each.

    Of places that differ in an index alone, all but the first few are given one other value in any case. Of the names,
    each place is given some, and all of them where campaigns are run whole.
    """
    case = documented(kind)
    assert passes(case.document, case.model)
    found: set[Place] = set()
    alike: Counter[Place] = Counter()
    for place, value in values(case.document):
        if is_recorded(kind_of(case.document), place):
            continue
        due = [other for other in others(value) if other != value]
        row = tuple("*" if isinstance(key, int) else key for key in place)
        alike[row] += 1
        some = pick or (Random(str(place)) if alike[row] > _FEW else None)
        if some is None and len(due) > _SOME_NAMES and not ALL_SEEDS:
            due = Random(f"{kind} {place}").sample(due, _SOME_NAMES)
        for other in due if some is None else [some.choice(due)]:
            if passes(altered(case.document, place, other), case.model):
                found.add(place)
    return found


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_value_is_checked_or_listed(kind: str) -> None:
    """A value is changed into one other, picked at random."""
    assert unheld(kind, Random(kind)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMMANDS)
def test_every_value_is_held_against_all_others(kind: str) -> None:
    """The same with many names, and several numbers."""
    assert unheld(kind, None) == set()


@pytest.mark.slow
def test_the_list_has_no_place_that_is_checked() -> None:
    """Every entry is needed: some value that stands there can be another one."""
    free: dict[str, set[str]] = {kind: set() for kind in RECORDED}
    for name in COMMANDS:
        case = documented(name)
        kind = kind_of(case.document)
        for place, value in values(case.document):
            entry = is_recorded(kind, place)
            if entry is None or entry.place in free[kind]:
                continue
            if any(passes(altered(case.document, place, other), case.model) for other in others(value)):
                free[kind].add(entry.place)
    rare = ("*proof*", "*/metadata/*", "*assumptions*", "*/together/*", "*notes*")
    unneeded = {
        (kind, one.place)
        for kind, entries in RECORDED.items()
        for one in entries
        if one.place not in free[kind] and not any(fnmatch(f"/{one.place}", pattern) for pattern in rare)
    }
    assert unneeded == set()


def test_the_page_on_trust_prints_the_list() -> None:
    """As it stands in the code."""
    page = Path(__file__).parents[3] / "docs" / "trust.md"
    assert listed_as_table() in page.read_text()


@pytest.mark.parametrize(
    "name", ["training-sweep", "comparison", "simulation", "stages", "pass-schedule", "verification"]
)
def test_documents_without_claims_are_refused(name: str) -> None:
    """What makes no claim is not called verified."""
    with pytest.raises(InputError) as caught:
        mtpp.verify({"format": f"mtpp-{name}", "version": 1})
    assert caught.value.where == "/format"
    assert "makes no claim that can be checked" in caught.value.problem


def test_places_are_found_by_patterns() -> None:
    """A star is one key, two are any number."""
    assert is_recorded("mtpp-plan", ("system", "name")) is not None
    assert is_recorded("mtpp-plan", ("lower_bound", "proof", "flow", 0, 1)) is not None
    assert is_recorded("mtpp-plan", ("lower_bound", "proof", "digest")) is None
    assert is_recorded("mtpp-plan", ("lower_bound", "value")) is None
    assert is_recorded("mtpp-certificates", ("rows", 3, "seconds", "total")) is not None
