"""Groups of ops that a stage file cannot be cut between, in the metadata of a graph: by the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.wording import counted

KEY = "kept_together"

SIZES_OF_DATA = "sizes that depend on data"
OPTIONALS = "optionals"
ALIASES = "tensors written in place"
REGIONS = "regions of torch.vmap"
RANKS = "numbers of axes that depend on data"
SHAPES = "shapes read in bodies of control flow"

_EFFECT = "no stage can be cut there"
_EFFECTS = {REGIONS: "split takes the program once its run_decompositions() has taken them apart"}
"""Of reasons that keep a model from being split at all."""


def kept_together(groups: Mapping[str, Iterable[Sequence[str]]]) -> dict[str, Any]:
    """Return the entry of a graph's metadata for groups of op names by reason; groups of one op are left out."""
    found = {reason: _joined(some) for reason, some in groups.items()}
    found = {reason: some for reason, some in found.items() if some}
    return {KEY: found} if found else {}


def told_merged(groups: Mapping[str, Sequence[int]]) -> list[str]:
    """Return, for people, how many ops of a model are one op of the graph: the size of each group, by the reason."""
    return [
        f"{counted(sum(sizes), 'op')} around {reason} merged into {len(sizes):,}: {_EFFECTS.get(reason, _EFFECT)}"
        for reason, sizes in groups.items()
        if sizes
    ]


def groups_of(metadata: Mapping[str, Any]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the groups that metadata name, by reason; none where they are of another shape."""
    entry = metadata.get(KEY)
    if not isinstance(entry, dict):
        return {}
    return {
        str(reason): tuple(tuple(map(str, group)) for group in some if isinstance(group, list))
        for reason, some in entry.items()
        if isinstance(some, list)
    }


def _joined(groups: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return groups with those that share an op made one, in the order of their first ops; O(names)."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    for group in groups:
        for name in group[1:]:
            leader[find(name)] = find(group[0])
    members: dict[str, list[str]] = {}
    for name in leader:
        members.setdefault(find(name), []).append(name)
    return [some for some in members.values() if len(some) > 1]
