"""Names that no other thing has, where files let several things have one."""

from __future__ import annotations


def untaken(name: str, taken: set[str]) -> str:
    """Return *name*, with as many primes behind it as it takes to be none of *taken*, and add it to them."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name
