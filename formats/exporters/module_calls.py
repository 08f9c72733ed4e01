"""Calls of modules that run several times, told apart by their paths: layers that share weights are blocks each.

A child of a list gets the number that it would have if its calls were children, too: of ``layers.0`` and ``layers.1``
called in turn, ``layers.2`` is the second call of the first. A module in no list becomes a list of its calls,
``layer.0``, ``layer.1``, unless there are lists in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

_MIXED = -1
"""Number of earlier calls of an op whose nodes are of several calls."""


def with_calls_apart(
    paths: Sequence[str | None], visits: Sequence[Mapping[str, int]]
) -> tuple[list[str | None], frozenset[str]]:
    """Return the path of each op with calls of modules as modules of their own, and the lists that were made of calls.

    Parameters
    ----------
    paths
        Module of each op; None where it is not known.
    visits
        Earlier calls of the modules around each op, by path.

    Returns
    -------
    Paths, and the lists whose children are calls. An op of several calls is in none of them.

    Notes
    -----
    O(n · depth of the modules) time.
    """
    called = {path for one in visits for path in one}
    if not called:
        return list(paths), frozenset()
    children: dict[str, set[int]] = defaultdict(set)
    inside: dict[str, set[str]] = defaultdict(set)
    for path in dict.fromkeys(filter(None, paths)):
        for prefix, rest in _prefixes(path):
            inside[prefix].add(rest)
            family, _, last = prefix.rpartition(".")
            if last.isdecimal() and len(last) < 7:
                children[family].add(int(last))
    lists = {family for family, numbers in children.items() if len(numbers) > 1}
    again = {path.rpartition(".")[0] for path in called if path.rpartition(".")[2].isdecimal()} & children.keys()
    alone = {
        path
        for path in called
        if len(inside[path]) > 1 and not any(one.startswith(f"{path}.") or one == path for one in lists | again)
    }
    made: set[str] = set()

    def renamed(path: str, own: Mapping[str, int]) -> str:
        for prefix, rest in _prefixes(path):
            family, _, last = prefix.rpartition(".")
            visit = own.get(prefix, 0)
            if family in children and last.isdecimal():
                if family in again:
                    made.add(family)
                    number = visit * (max(children[family]) + 1) + int(last)
                    return family if visit == _MIXED else ".".join(filter(None, (family, str(number), rest)))
                if family in lists:
                    return path
            elif prefix in alone:
                made.add(prefix)
                return prefix if visit == _MIXED else ".".join(filter(None, (prefix, str(visit), rest)))
        return path

    found = [renamed(path, own) if path else path for path, own in zip(paths, visits, strict=True)]
    return found, frozenset(made)


def _prefixes(path: str) -> Iterator[tuple[str, str]]:
    """Yield each module around an op, the outermost first, and the rest of the path."""
    parts = path.split(".")
    for i in range(1, len(parts) + 1):
        yield ".".join(parts[:i]), ".".join(parts[i:])
