"""Names for ops and nodes, unique and the same whenever the same file is read, and the modules around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence


def unique_names(labels: Iterable[tuple[str, str, int]]) -> list[str]:
    """Return one name per op from (name in the file, kind, position in the file).

    A name that is there and free stays. An empty one becomes ``Kind_position``; one that is taken gets the lowest
    number that makes it unique, ``name_2``.
    """
    entries = list(labels)
    taken: set[str] = set()
    names: list[str | None] = []
    for label, _, _ in entries:
        free = bool(label) and label not in taken
        names.append(label if free else None)
        if free:
            taken.add(label)
    counts: dict[str, int] = {}
    result: list[str] = []
    for name, (label, kind, position) in zip(names, entries, strict=True):
        if name is None:
            stem = label or f"{kind}_{position}"
            name = stem
            while name in taken:
                counts[stem] = counts.get(stem, 1) + 1
                name = f"{stem}_{counts[stem]}"
            taken.add(name)
        result.append(name)
    return result


def common_module(paths: Sequence[str | None]) -> str | None:
    """Return the innermost module around all of *paths*, None if there are none, or if one is not known."""
    known = [path for path in paths if path is not None]
    if not known or len(known) < len(paths):
        return None
    shared = []
    for parts in zip(*(path.split(".") if path else [] for path in known), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def untaken(name: str, taken: set[str]) -> str:
    """Return *name*, with as many primes behind it as it takes to be none of *taken*, and add it to them."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def distinct_names(names: Mapping[int, str]) -> dict[int, str]:
    """Return a name for each id that no other has: its own where only one bears it, else with the id behind."""
    bearers = Counter(names.values())
    taken = {name for name, count in bearers.items() if count == 1}
    return {
        identity: name if bearers[name] == 1 else untaken(f"{name} #{identity}", taken)
        for identity, name in names.items()
    }
