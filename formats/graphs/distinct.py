"""Names that no other thing has, where files let several things have one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


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
