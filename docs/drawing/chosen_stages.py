"""Drawings of the bounds by HiGHS: the set of ops that costs least of those that a bound takes for a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from docs.drawing.canvas import FLOW, Canvas, Point
from docs.drawing.example import Example
from docs.drawing.graph_picture import STEP, GraphPicture
from docs.drawing.stage_sets import all_sets, convex_sets, downsets

AREA = "#fde0c8"
DETOUR = Example("detour", 3)
POSITIONS = Example("positions", 3)
PAIR = Example("ladder", 2)
"""The ladder in two stages."""

Set = tuple[str, ...]


def average_work(example: Example) -> int:
    """Return the simple bound: the work that some stage has at least."""
    return max(max(example.work.values()), -(-sum(example.work.values()) // example.k))


def work_of(example: Example, some: Iterable[str]) -> int:
    """Return the work of a set of ops."""
    return sum(example.work[op] for op in some)


def cheapest(example: Example, sets: Iterable[Set], cost: Callable[[Set], float] | None = None) -> Set:
    """Return the set of those with the average work that costs least; by its whole cost unless told otherwise."""
    enough = [some for some in sets if work_of(example, some) >= average_work(example)]
    return min(enough, key=cost or example.cost)


def _one_set(example: Example, some: Set, words: str, *, cuts: bool = True, corner: Point = (0.0, 0.0)) -> Canvas:
    canvas = Canvas()
    graph = GraphPicture(canvas, example, corner)
    graph.area(some, AREA)
    graph.draw(cut=[one.name for one in example.cut(some)] if cuts else ())
    canvas.text((0, -50), words, anchor="start", bold=True, colour=FLOW)
    return canvas


def cost_words(example: Example, some: Set) -> str:
    """Return the sum that a set costs, work first."""
    cut = example.cut(some)
    parts = [str(work_of(example, some)), *(str(one.transfer) for one in cut)]
    return f"f({', '.join(some)}) = {' + '.join(parts)} = {example.cost(some)}"


def no_dag_picture() -> str:
    """Draw the cheapest set of any ops with the average work."""
    some = cheapest(DETOUR, all_sets(DETOUR))
    return _one_set(DETOUR, some, cost_words(DETOUR, some)).svg("The cheapest set of ops with the average work.")


def bottleneck_picture() -> str:
    """Draw the cheapest convex one."""
    some = cheapest(DETOUR, convex_sets(DETOUR))
    return _one_set(DETOUR, some, cost_words(DETOUR, some)).svg("The cheapest stage with the average work.")


def no_cut_io_picture() -> str:
    """Draw the convex set with the least work above the average."""
    some = cheapest(PAIR, convex_sets(PAIR), lambda one: work_of(PAIR, one))
    works = " + ".join(str(PAIR.work[op]) for op in some)
    words = (
        f"work of {', '.join(some)} = {works} = {work_of(PAIR, some)}, the least that is {average_work(PAIR)} or more"
    )
    return _one_set(PAIR, some, words, cuts=False).svg("The stage with the least work above the average.")


def cheapest_around(example: Example, op: str) -> Set:
    """Return the cheapest convex set around an op whose rest fits into the other stages, all below the optimum."""
    best = example.best
    bottleneck = max(example.cost([o for o in example.ops if best[o] == stage]) for stage in set(best.values()))
    room = (example.k - 1) * (bottleneck - 1)
    total = sum(example.work.values())
    around = (one for one in convex_sets(example) if op in one and total - work_of(example, one) <= room)
    return min(around, key=example.cost)


def node_convex_picture() -> str:
    """Draw the cheapest stage around the op for which that is most."""
    proof = PAIR.bound("node-convex")["lower_proof"]
    op = PAIR.ops[proof["anchor"][0]]
    some = cheapest_around(PAIR, op)
    return _one_set(PAIR, some, f"the cheapest stage with {op}: {cost_words(PAIR, some)}").svg(
        f"The cheapest stage around op {op}."
    )


def positions(example: Example) -> list[tuple[float, Set, Set, Set]]:
    """Return by position j the least bottleneck of three blocks, and the blocks: j − 1 stages, stage j, and the rest.

    Stage j has the average work; the others count with their average cost.
    """
    sets = downsets(example)
    found = []
    for j in range(1, example.k + 1):
        ways = []
        for first in sets:
            for second in sets:
                if not set(first) <= set(second) or (j == 1 and first) or (j == example.k and second != example.ops):
                    continue
                middle = tuple(op for op in second if op not in first)
                last = tuple(op for op in example.ops if op not in second)
                if not middle or work_of(example, middle) < average_work(example):
                    continue
                costs = [float(example.cost(middle))]
                costs += [example.cost(first) / (j - 1)] if first else []
                costs += [example.cost(last) / (example.k - j)] if last else []
                ways.append((max(costs), first, middle, last))
        found.append(min(ways))
    return found


def guess_picture() -> str:
    """Draw the best blocks for each position of the stage with the average work."""
    canvas = Canvas()
    for j, (least, first, middle, last) in enumerate(positions(POSITIONS), start=1):
        left = (j - 1) * 3.6 * STEP
        graph = GraphPicture(canvas, POSITIONS, (left, 0.0))
        for some, colour in ((first, "#e4e4e4"), (middle, AREA), (last, "#e4e4e4")):
            if some:
                graph.area(some, colour)
        graph.draw(cut=[one.name for one in POSITIONS.cut(middle)])
        canvas.text((left + 1.25 * STEP, -50), f"stage {j} is the heavy one: {least:g}", bold=True, colour=FLOW)
    return canvas.svg("The cheapest blocks for each position of the stage with the average work.")
