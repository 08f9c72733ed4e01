"""The bound by position weights: worths of ops by stage, of which k stages cannot reach what any partition has.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Let w and C be as
in :mod:`mtpp.checker.merged`, and R = L + C: any stage S of a partition within L has w(S) + c(S) ≤ R, empty ones too.

**Windows.** Of each op v it is known that in any partition within L its stage s(v) is in lo(v) … hi(v), and not one of
some that are *ruled out*. All that leads to v, itself included, is in the stages 1 … s(v), and all that v leads to in
s(v) … k. So in the beginning, with W the sums of w, ⌈W/R⌉ of the first is a lo(v) (1 if that is 0), and k + 1 less
⌈W/R⌉ of the latter a hi(v) (k if that is more). Stages never fall along edges: lo(v) is no less than lo of the ops that
v reads from, hi(v) no more than hi of those that read from v; and where lo(v) or hi(v) is ruled out, the next one is
taken. A window without a stage shows that there is no partition within L.

**Steps.** A step gives integers a(v, j), 0 for ops that have none, and for each stage a floor and a slope. For stage j
op v is before it if s(v) < j, which lo(v) < j allows; inside if s(v) = j; after it if s(v) > j, which hi(v) > j allows.
Let it be worth

    a(v, j) inside;  a(v, j) − a(v, j − 1) before;  0 after.

Over all stages, v is worth a(v, s) + Σ_{s < j ≤ k} (a(v, j) − a(v, j − 1)) = a(v, k), whatever s = s(v) may be. So with
M_j no less than the worth of any monotone labelling of stage j within R, a partition within L has

    Σ_v a(v, k) = Σ_j (worth of stage j) ≤ Σ_j M_j.

The same steps refute lower limits as well, whose windows are narrower: no M_j rises, and nothing else changes.

Let the slack σ be the right side less the left one. There is no such partition if σ < 0. Else each of its stages is
worth M_j − σ or more, so a label that no labelling of stage j within R worth that much gives to v is not what v has:
without *before* lo(v) is at least j, without *after* hi(v) is at most j, without *inside* j is ruled out.

M_j is the most by :mod:`mtpp.checker.bounds.frontier_scan`, or if no labelling is worth the stage's floor, the floor
less 1: what it would be is then not known. A stage whose floor is above M_j − σ is not asked for labels. All stages of
a step see the same windows, the next step those that follow. Any integers will do, and tensors may be forgotten.

**Cases.** After its steps, a case may be split by an op v and a stage j: one has hi(v) ≤ j, the other lo(v) > j. The
claim is true if in every case that is not split there is no partition within L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.checker.bounds.convex_weights import check_amount, check_slope, frontier_of, groups_of
from mtpp.checker.bounds.frontier_scan import AFTER, ALL_LABELS, BEFORE, INSIDE, Frontier, Scan, TooWide, Worths
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.graph import ceil_div
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.checker.paths import Paths
from mtpp.document_shape import Path, any_array, array, flag, items, record, refuse, signed, whatever, whole

_METHOD = "position-weights"

_MOST_KEPT = 4_000_000
"""States and entries of the scans of a step that are kept in memory; others are made twice."""


def check_position_weights(claim: BoundClaim) -> Verdict:
    """Re-check a bound by position weights.

    Notes
    -----
    The replay of the merges, and for each step a :class:`mtpp.checker.bounds.frontier_scan.Scan` of each stage, which
    comes twice where the scans of a step are large. Cases are followed without recursion.
    """
    required = {
        "cutoff": whole(1),
        "stages": whole(1),
        "streamed": flag,
        "scan": array(whole()),
        "forgotten": array(whole()),
        "tree": whatever,
    }
    record(required, {"merges": check_merges})(claim.proof, claim.path)
    _check_tree(claim.proof["tree"], claim.proof["stages"], (*claim.path, "tree"))
    graph = claim.merged_by_terms()
    if isinstance(graph, str):
        return False, f"{_METHOD}: {graph}"
    cases = _Cases.of(claim, graph)
    fault = cases if isinstance(cases, str) else cases.fault()
    if isinstance(cases, str) or fault is not None:
        return False, f"{_METHOD}: {fault}"
    shown = f"{counted(cases.steps, 'step')} in {counted(cases.count, 'case')}"
    return True, f"{_METHOD}: no {counted(claim.k, 'stage')} below {claim.value} ticks are worth enough, by {shown}"


def _check_tree(tree: Any, stages: int, path: Path) -> None:
    def row_of_stages(value: Any, path: Path) -> None:
        any_array(value, path)
        if len(value) != stages:
            refuse(f"expected one for each of {counted(stages, 'stage')}, found {len(value)}", path)

    def amounts(value: Any, path: Path) -> None:
        row_of_stages(value, path)
        array(check_amount)(value, path)

    def slopes(value: Any, path: Path) -> None:
        row_of_stages(value, path)
        array(check_slope)(value, path)

    def floors(value: Any, path: Path) -> None:
        row_of_stages(value, path)
        array(signed)(value, path)

    step = record({"weights": array(items(whole(), amounts)), "slopes": slopes, "floors": floors})
    node = record({"steps": array(step), "branch": whatever})
    branch = items(whole(), whole(1), whatever, whatever)
    stack = [(tree, path)]
    while stack:
        value, here = stack.pop()
        node(value, here)
        if value["branch"] is not None:
            below = (*here, "branch")
            branch(value["branch"], below)
            stack += [(value["branch"][3], (*below, 3)), (value["branch"][2], (*below, 2))]


@dataclass
class _Windows:
    """First and last stage of each group, and stages that are ruled out, in a case."""

    first: list[int]
    last: list[int]
    out: list[set[int]]

    @property
    def empty(self) -> bool:
        return any(first > last for first, last in zip(self.first, self.last, strict=True))

    def copy(self) -> _Windows:
        return _Windows(list(self.first), list(self.last), [set(stages) for stages in self.out])


@dataclass
class _Cases:
    """The cases of a proof.

    Attributes
    ----------
    room
        R.
    count, steps
        Cases that are not split, and steps of all cases, as far as they have been checked.
    """

    claim: BoundClaim
    graph: MergedGraph
    weight: list[int]
    room: int
    frontier: Frontier
    paths: Paths
    count: int = 0
    steps: int = 0

    @classmethod
    def of(cls, claim: BoundClaim, graph: MergedGraph) -> _Cases | str:
        """Read the order of a proof, or return what is wrong."""
        weights = stage_weights(graph, claim.system, streamed=claim.proof["streamed"])
        if weights is None:
            return WITHOUT_MEMORY
        weight, constant = weights
        frontier = frontier_of(claim, graph, weight)
        if isinstance(frontier, str):
            return frontier
        return cls(claim, graph, weight, claim.value - 1 + constant, frontier, Paths(graph))

    def fault(self) -> str | None:
        """Return what is wrong with the cases, None if none has a partition."""
        stack = [(self.claim.proof["tree"], self._windows())]
        while stack:
            node, windows = stack.pop()
            self._close(windows)
            slack = None
            for step in node["steps"]:
                if windows.empty:
                    break
                self.steps += 1
                found = self._step(step, windows)
                if isinstance(found, str):
                    return f"step {self.steps - 1}: {found}"
                slack = found
                if slack < 0:
                    break
                self._close(windows)
            if windows.empty or (slack is not None and slack < 0):
                self.count += 1
                continue
            if node["branch"] is None:
                room = "no weights" if slack is None else f"its weights leave a slack of {slack}"
                return f"case {self.count} is not refuted: {room}"
            op, stage, node_in, node_out = node["branch"]
            if op >= len(self.graph.group_of):
                return f"there is no op {op}"
            group = self.graph.group_of[op]
            early, late = windows, windows.copy()
            early.last[group] = min(early.last[group], stage)
            late.first[group] = max(late.first[group], stage + 1)
            stack += [(node_out, late), (node_in, early)]
        return None

    def _windows(self) -> _Windows:
        """Return the windows of the beginning."""
        stages, room = self.claim.k, self.room

        def needed(weight: int) -> int:
            if room == 0:
                return 1 if weight == 0 else stages + 1
            return max(1, ceil_div(weight, room))

        before, after = self.paths.sums(self.weight)
        first = [needed(weight) for weight in before]
        last = [stages + 1 - needed(weight) for weight in after]
        return _Windows(first, last, [set() for _ in first])

    def _close(self, windows: _Windows) -> None:
        """Take what follows along edges, and leave out ends that are ruled out."""
        order = [place.op for place in self.frontier.places]
        first, last, out = windows.first, windows.last, windows.out
        for group in order:
            first[group] = max([first[group], *(first[other] for other in self.paths.before[group])])
            while first[group] in out[group]:
                first[group] += 1
        for group in reversed(order):
            last[group] = min([last[group], *(last[other] for other in self.paths.after[group])])
            while last[group] in out[group]:
                last[group] -= 1

    def _step(self, step: dict[str, Any], windows: _Windows) -> int | str:
        """Narrow the windows by a step and return its slack, or what is wrong with it."""
        groups = groups_of(self.claim, self.graph, [op for op, _ in step["weights"]], "has two rows of weights")
        if isinstance(groups, str):
            return groups
        weights = dict(zip(groups, (row for _, row in step["weights"]), strict=True))
        worths = [self._worths(weights, windows, stage) for stage in range(1, self.claim.k + 1)]

        def scan(j: int) -> Scan:
            return Scan(self.frontier, worths[j], self.room, step["slopes"][j], step["floors"][j])

        slack: int = -sum(row[-1] for row in weights.values())
        kept: dict[int, Scan] = {}
        size = 0
        most: list[int] = []
        try:
            for j, floor in enumerate(step["floors"]):
                made = scan(j)
                found = made.most()
                most.append(floor - 1 if found is None else found)
                size += made.size
                if size <= _MOST_KEPT:
                    kept[j] = made
            slack += sum(most)
            if slack >= 0:
                for j, floor in enumerate(step["floors"]):
                    least = most[j] - slack
                    made = kept.pop(j) if j in kept else scan(j)
                    if floor <= least:
                        self._narrow(windows, j + 1, made.labels(least))
        except TooWide as wide:
            return f"scans with {wide} are not checked"
        return slack

    def _worths(self, weights: dict[int, Sequence[int]], windows: _Windows, stage: int) -> list[Worths]:
        """Return the worths of the ops at a stage, in the order of the scan."""
        none = [0] * self.claim.k
        found: list[Worths] = []
        for place in self.frontier.places:
            row, first, last = weights.get(place.op, none), windows.first[place.op], windows.last[place.op]
            before = inside = after = None
            if first < stage:
                before = row[stage - 1] - row[stage - 2]
            if first <= stage <= last and stage not in windows.out[place.op]:
                inside = row[stage - 1]
            if last > stage:
                after = 0
            found.append((before, inside, after))
        return found

    def _narrow(self, windows: _Windows, stage: int, labels: Sequence[int]) -> None:
        """Leave out what ops cannot be at a stage."""
        for place, found in zip(self.frontier.places, labels, strict=True):
            if found != ALL_LABELS:
                group = place.op
                if not found >> BEFORE & 1:
                    windows.first[group] = max(windows.first[group], stage)
                if not found >> AFTER & 1:
                    windows.last[group] = min(windows.last[group], stage)
                if not found >> INSIDE & 1:
                    windows.out[group].add(stage)
