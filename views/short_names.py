"""Names shortened for narrow terminals, so that different names stay different."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence


def middle_out(name: str, limit: int) -> str:
    """Shorten a name to *limit* characters in its middle."""
    return name if len(name) <= limit else _cut(name, (limit - 1) // 2, limit)


def shortened_apart(names: Iterable[str], limit: int) -> dict[str, str]:
    """Return each name with a text of at most *limit* characters; different names have different texts if they can.

    Names lose their middles. Those that would look alike lose another part, or keep the part in which they differ
    between two gaps: ``bra…1…yer 0`` and ``bra…2…yer 0``.
    """
    found = {name: middle_out(name, limit) for name in names}
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in found.items():
        alike[text].append(name)
    for group in alike.values():
        if len(group) > 1:
            found |= zip(group, _apart(group, limit), strict=True)
    return found


def _apart(names: Sequence[str], limit: int) -> list[str]:
    """Return different texts of names that are alike at both ends, or their usual ones where there are none."""
    half = (limit - 1) // 2
    ways = [[_cut(name, kept, limit) for name in names] for kept in sorted(range(limit), key=lambda n: abs(n - half))]
    ways += [_around_difference(names, limit)]
    return next((texts for texts in ways if len(set(texts)) == len(texts)), ways[0])


def _cut(name: str, head: int, limit: int) -> str:
    """Return a name's first *head* characters, a gap, and as many of its last ones as fit."""
    return name if len(name) <= limit else f"{name[:head]}…{name[len(name) - (limit - 1 - head) :]}"


def _around_difference(names: Sequence[str], limit: int) -> list[str]:
    """Return names with gaps before and behind the part in which they differ."""
    begin = _alike(names)
    end = _alike([name[begin:][::-1] for name in names])
    texts = []
    for name in names:
        middle = name[begin : len(name) - end]
        room = max(limit - 2 - len(middle), 0)
        head, tail = min(room // 2, begin), min(room - room // 2, end)
        texts.append(f"{name[:head]}…{middle}…{name[len(name) - tail :]}"[:limit])
    return texts


def _alike(names: Sequence[str]) -> int:
    """Return the number of characters that all names begin with."""
    return next((i for i, column in enumerate(zip(*names, strict=False)) if len(set(column)) > 1), min(map(len, names)))
