"""The repeated blocks of a model (layers of a transformer), and how a partition falls on them.

Blocks are modules with a number: ``model.layers.0``, ``model.layers.1``, … Ops whose module is not known lie in a block
if they lie between two of its ops in the graph's own order. Between the last known op of one block and the first of the
next one, the next block begins where the fewest tensors cross; if there are several such places, it is left open. Ops
there that need nothing from ops of known modules (a mask, say) are in no block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from mtpp.errors import InputError
from mtpp.formats.exporters.request import Request

_MAIN_SHARE = 0.9
"""Share of all ops in numbered modules that those of one family must have for it to be *the* blocks of a model."""

_LISTED = 4


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a model.

    Attributes
    ----------
    family
        What stands before the numbers: ``model.layers``.
    count
        Number of blocks; they are 0 … count − 1.
    block_of
        Block of each op; None outside, and where it is open.
    open_between
        The number of the block before each op of which it is open whether it belongs to that one, to the next one or to
        none; None for ops before the first block.
    """

    family: str
    count: int
    block_of: list[int | None]
    open_between: dict[int, int | None]

    def name(self, block: int) -> str:
        """Return the path of a block."""
        return _path(self.family, block)


def find_blocks(request: Request) -> Blocks:
    """Find the repeated blocks of a model.

    Notes
    -----
    O(n · depth of the modules + pins) time.
    """
    request.require_modules()
    return blocks_of_family(request, *_main_family(request))


def blocks_of_family(request: Request, family: str, numbers: set[int]) -> Blocks:
    """Find the blocks of a family, which is called as what stands before the *numbers* of its blocks.

    Raises
    ------
    InputError
        If no op of some block is known, or the blocks do not run one after the other.
    """
    count = max(numbers) + 1
    missing = sorted(set(range(count)) - set(numbers))
    if missing:
        raise _fault(request, f"no op is known to belong to block {_path(family, missing[0])} of {count}")
    known = [_number(path, family) if path else None for path in request.paths]
    first, last = [len(known)] * count, [-1] * count
    for position, v in enumerate(request.order):
        if (block := known[v]) is not None:
            first[block] = min(first[block], position)
            last[block] = position
    for block in range(count - 1):
        if last[block] > first[block + 1]:
            late, early = (request.graph.op_names[request.order[p]] for p in (last[block], first[block + 1]))
            names = f"blocks {_path(family, block)} and {_path(family, block + 1)}"
            problem = (
                f"{names} do not run one after the other: {late!r} of the first comes after {early!r} of the second"
            )
            raise _fault(request, problem)
    return _filled(request, family, known, first, last)


def _fault(request: Request, problem: str) -> InputError:
    return InputError(problem, source=request.graph.name)


def _path(family: str, block: int) -> str:
    return f"{family}.{block}" if family else str(block)


def _main_family(request: Request) -> tuple[str, set[int]]:
    families: dict[str, set[int]] = defaultdict(set)
    ops: dict[str, int] = defaultdict(int)
    for path in filter(None, request.paths):
        for family, number in numbered(path):
            families[family].add(number)
            ops[family] += 1
    repeated = {family for family, numbers in families.items() if len(numbers) > 1}
    outer = [
        family
        for family in repeated
        if not any(inner != family and inner in repeated for inner, _ in numbered(f"{family}.0"))
    ]
    if not outer:
        raise _fault(
            request, "no repeated blocks: no two modules differ in a number alone, as layers.0 and layers.1 do"
        )
    outer.sort(key=lambda family: (-ops[family], family))
    if ops[outer[0]] < _MAIN_SHARE * sum(ops[family] for family in outer):
        several = ", ".join(f"{_path(family, 0)}-{max(families[family])}" for family in outer[:_LISTED])
        raise _fault(request, f"several kinds of repeated blocks, none of them most of the model: {several}")
    return outer[0], families[outer[0]]


def numbered(path: str) -> Iterator[tuple[str, int]]:
    """Yield (what is before a number, the number) for every number in a path."""
    parts = path.split(".")
    for i, part in enumerate(parts):
        if part.isdecimal() and len(part) < 7:
            yield ".".join(parts[:i]), int(part)


def _number(path: str, family: str) -> int | None:
    return next((number for found, number in numbered(path) if found == family), None)


def _filled(request: Request, family: str, known: list[int | None], first: list[int], last: list[int]) -> Blocks:
    order, paths, count = request.order, request.paths, len(first)
    block_of = list(known)
    open_between: dict[int, int | None] = {}
    lives, rootless = _lives(request), _rootless(request)

    def fill(begin: int, end: int, block: int | None, passed: Collection[int] = ()) -> None:
        for v in order[begin:end]:
            if paths[v] is None and block is not None and v not in passed:
                block_of[v] = block

    outside = [position for position, v in enumerate(order) if paths[v] is not None and known[v] is None]
    for block in range(count):
        fill(first[block], last[block], block)
    head = max((position + 1 for position in outside if position < first[0]), default=0)
    tail = min((position for position in outside if position > last[-1]), default=len(order))
    inner = [(b, b + 1, last[b] + 1, first[b + 1]) for b in range(count - 1)]
    for before, after, begin, end in [(None, 0, head, first[0]), *inner, (count - 1, None, last[-1] + 1, tail)]:
        # Where nothing is known beyond, no tensor crosses the end itself: that says nothing.
        unbounded = (begin == 0 and after == 0) or (end == len(order) and before == count - 1)
        choice = range(begin + (unbounded and after == 0), end + (not unbounded or after == 0))
        places = _narrowest(lives, choice, _since(before, first)) or [begin, end]
        fill(begin, places[0], before, rootless)
        fill(places[-1], end, after, rootless)
        for v in order[begin:end] if unbounded else order[places[0] : places[-1]]:
            if paths[v] is None and block_of[v] is None:
                open_between[v] = before
    return Blocks(family, count, block_of, open_between)


def _since(before: int | None, first: list[int]) -> int:
    """Return from which position on tensors count in the gap after a block: its residual does, a mask does not."""
    if before is None or (before == 0 and len(first) > 2):
        return 0
    return first[max(before - 1, 0)]


def _lives(request: Request) -> list[list[int]]:
    """Return, for each position of the graph's own order, the positions of the last readers of what is made there."""
    graph = request.graph
    position = np.empty(graph.op_count, dtype=np.int64)
    position[graph.order] = np.arange(graph.op_count)
    lives: list[list[int]] = [[] for _ in range(graph.op_count)]
    for t in range(graph.tensor_count):
        readers = graph.tensor_consumers(t)
        if len(readers):
            lives[position[graph.tensor_producer[t]]].append(int(position[readers].max()))
    return lives


def _narrowest(lives: list[list[int]], choice: range, since: int) -> list[int]:
    """Return the places of *choice*, cuts before a position, that the fewest of the tensors made from *since* on cross.

    What was made before lives for many blocks (a mask), and where it ends tells nothing.
    """
    change = dict.fromkeys(range(since, choice.stop + 1), 0)
    for made in range(since, max(since, choice.stop - 1)):
        for last in lives[made]:
            change[made + 1] += 1
            change[min(last, choice.stop - 1) + 1] -= 1
    crossing, found = 0, {}
    for place, difference in change.items():
        crossing += difference
        if place in choice:
            found[place] = crossing
    return [place for place, count in found.items() if count == min(found.values())]


def _rootless(request: Request) -> set[int]:
    """Return the ops of unknown modules that no op of a known one comes before: they may belong anywhere."""
    producers: list[list[int]] = [[] for _ in request.order]
    for source, target in zip(*(ends.tolist() for ends in request.graph.edges), strict=True):
        producers[target].append(source)
    found: set[int] = set()
    for v in request.order:
        if request.paths[v] is None and all(source in found for source in producers[v]):
            found.add(v)
    return found
