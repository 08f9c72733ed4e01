"""All kinds of repeated blocks of a model: layers of an encoder and of a decoder; down, mid and up blocks of a U-Net.

A kind are the children of one container whose names differ in a number (``encoder.block.0``, ``encoder.block.1``), two
of them at least built alike: of the same kinds of ops in modules of the same names. Blocks within a block are parts of
it: the outermost kind counts. Calls of one module, as layers that share weights are, are blocks of their own
(:mod:`.module_calls`). A module in no list that is built like a block of a kind is a block too (``mid_block``).
Only where no two children of any list are alike, the blocks are those that engines count (:mod:`.blocks`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from mtpp.errors import InputError
from mtpp.formats.exporters.blocks import blocks_of_family, find_blocks, numbered
from mtpp.formats.exporters.module_calls import with_calls_apart
from mtpp.formats.exporters.request import Request

_ALIKE = 0.5
"""Share of all that two modules are built of which both have, from which on they are alike."""

_COMPARED = 40
"""Different children of a list that are compared in pairs."""

Build = frozenset[tuple[str, str]]
"""Ops of a module: the path of each within it, with stars for numbers, and its kind."""


@dataclass(frozen=True)
class BlockKind:
    """Blocks of one container.

    Attributes
    ----------
    path
        Of the container, or of the one block.
    blocks
        Ops of each block of more than one op, in the order of their numbers.
    listed
        Whether *path* is a container.
    called
        Whether the blocks are calls of modules that run several times.
    """

    path: str
    blocks: tuple[tuple[int, ...], ...]
    listed: bool = True
    called: bool = False

    def describe(self) -> str:
        """Return the kind in words: ``12 of encoder.layers``."""
        if self.called:
            return f"{len(self.blocks)} calls of {self.path or 'the model'}"
        return f"{len(self.blocks)} of {self.path or 'the model'}" if self.listed else self.path


@dataclass(frozen=True)
class BlockKinds:
    """All kinds of a model, in the order of their first ops.

    Attributes
    ----------
    entangled
        How many blocks need one another's results in a circle, so that no stage can be cut between them.
    """

    kinds: tuple[BlockKind, ...]
    entangled: int

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Ops of each block."""
        return [block for kind in self.kinds for block in kind.blocks]

    def describe(self) -> str:
        """Return the kinds in words."""
        told = f"blocks kept whole: {', '.join(kind.describe() for kind in self.kinds)}"
        circles = f"; {self.entangled} of them wait for one another and share a stage"
        return told + (circles if self.entangled else "")


def find_block_kinds(request: Request) -> BlockKinds:
    """Find the kinds of repeated blocks of a model.

    Raises
    ------
    InputError
        If it has none, or does not say which modules its ops came from.

    Notes
    -----
    O(n · depth of the modules + pins) time.
    """
    request.require_modules()
    names = request.graph.op_names
    paths, called = with_calls_apart(request.paths, [request.visits.get(name, {}) for name in names])
    known = {name: path for name, path in zip(names, paths, strict=True) if path is not None}
    request = replace(request, modules=known)
    builds = _builds(request)
    families = _outermost(_alike_families(request, builds))
    if not families:
        found = find_blocks(request)
        members: list[list[int]] = [[] for _ in range(found.count)]
        for v in request.order:
            if (block := found.block_of[v]) is not None:
                members[block].append(v)
        kinds = [BlockKind(found.family, tuple(map(tuple, members)))]
    else:
        single = _single_blocks(families, builds)
        kept = {family: ns for family, ns in families.items() if not any(_is_within(family, path) for path in single)}
        kinds = _kinds(request, kept, single)
    place = {v: position for position, v in enumerate(request.order)}
    kinds = [
        replace(kind, blocks=tuple(block for block in kind.blocks if len(block) > 1), called=kind.path in called)
        for kind in kinds
    ]
    kinds = sorted((kind for kind in kinds if kind.blocks), key=lambda kind: min(place[v] for v in kind.blocks[0]))
    return BlockKinds(tuple(kinds), _entangled(request, [block for kind in kinds for block in kind.blocks]))


def _builds(request: Request) -> dict[str, Build]:
    """Return how each module is built, the whole model apart."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path, kind in zip(request.paths, request.graph.op_kinds, strict=True):
        for dot, within in _prefixes(path or ""):
            found[dot].add((within, kind))
    return {path: frozenset(build) for path, build in found.items()}


def _prefixes(path: str) -> Iterator[tuple[str, str]]:
    """Yield each module around an op, and the rest of the path with stars for numbers."""
    parts = path.split(".") if path else []
    for i in range(1, len(parts) + 1):
        yield ".".join(parts[:i]), ".".join("*" if part.isdecimal() else part for part in parts[i:])


def _are_alike(one: Build, other: Build) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)


def _alike_families(request: Request, builds: Mapping[str, Build]) -> dict[str, list[int]]:
    """Return the lists two of whose children are alike, with the numbers of all."""
    families: dict[str, set[int]] = defaultdict(set)
    for path in filter(None, request.paths):
        for family, number in numbered(path):
            families[family].add(number)
    found = {}
    for family, numbers in families.items():
        children = [builds[_child(family, number)] for number in sorted(numbers)]
        different = list(dict.fromkeys(children))[:_COMPARED]
        equal = len(set(children)) < len(children)
        if equal or any(_are_alike(a, b) for a, b in combinations(different, 2)):
            found[family] = sorted(numbers)
    return found


def _child(family: str, number: int) -> str:
    return f"{family}.{number}" if family else str(number)


def _is_within(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


def _outermost(families: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return the lists that are in no block of another one."""
    return {
        family: numbers
        for family, numbers in families.items()
        if not any(outer != family and outer in families for outer, _ in numbered(f"{family}.0"))
    }


def _single_blocks(families: Mapping[str, list[int]], builds: Mapping[str, Build]) -> list[str]:
    """Return the modules in no list that are built like a block of one outside them."""
    blocks = {_child(family, number): family for family, numbers in families.items() for number in numbers}
    kinds: dict[Build, set[str]] = defaultdict(set)
    for path, family in blocks.items():
        if len({within for within, _ in builds[path]}) > 1:  # a block of modules, no norm
            kinds[builds[path]].add(family)
    found: list[str] = []
    for path in sorted(builds, key=lambda path: path.count(".")):
        around = [path[:i] for i, letter in enumerate(path) if letter == "."]
        if path in blocks or any(one in blocks or one in found for one in around):
            continue
        build = builds[path]
        for other, owners in kinds.items():
            if _are_alike(build, other) and any(not _is_within(family, path) for family in owners):
                found.append(path)
                break
    return found


def _kinds(request: Request, families: Mapping[str, list[int]], single: Sequence[str]) -> list[BlockKind]:
    """Return the kinds; ops of unknown modules that two of them may have are in none."""
    owner: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for family, numbers in families.items():
        for v, number in _members(request, family, numbers):
            owner[v].add((family, number))
    for path in single:
        for v, own in enumerate(request.paths):
            if own is not None and _is_within(own, path):
                owner[v].add((path, -1))
    members: dict[tuple[str, int], list[int]] = defaultdict(list)
    for v in request.order:
        if len(owner[v]) == 1:
            members[next(iter(owner[v]))].append(v)
    listed = [
        BlockKind(family, tuple(tuple(members[family, number]) for number in numbers))
        for family, numbers in families.items()
    ]
    return listed + [BlockKind(path, (tuple(members[path, -1]),), listed=False) for path in single]


def _members(request: Request, family: str, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the ops of blocks with their numbers, those of unknown modules where blocks run one after the other."""
    try:
        found = blocks_of_family(request, family, set(numbers)).block_of
    except InputError:
        found = [
            next((number for one, number in numbered(path) if one == family), None) if path else None
            for path in request.paths
        ]
    yield from ((v, number) for v, number in enumerate(found) if number is not None)


def _entangled(request: Request, blocks: Sequence[Sequence[int]]) -> int:
    """Return how many blocks are on a circle with another one once each is one op."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sources, targets = request.graph.edges
    rings = [(block[i - 1], block[i]) for block in blocks for i in range(len(block))]
    tails = np.concatenate([sources, np.array([u for u, _ in rings], dtype=np.int32)])
    heads = np.concatenate([targets, np.array([v for _, v in rings], dtype=np.int32)])
    n = request.graph.op_count
    matrix = coo_array((np.ones(len(tails), dtype=np.int8), (tails, heads)), shape=(n, n)).tocsr()
    _, component = connected_components(matrix, directed=True, connection="strong")
    counts = np.bincount([component[block[0]] for block in blocks] or [0], minlength=1)
    return int(counts[counts > 1].sum())
