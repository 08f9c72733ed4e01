"""The bound by position weights: worths of ops by stage, of which k stages cannot reach what any partition has.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Let w and C be as
in :mod:`mtpp.checker.merged`, and R = L + C: any stage S of a partition within L has w(S) + c(S) ≤ R, empty ones too.

**Windows.** Of each op v it is known that in any partition within L its stage s(v) is in lo(v) … hi(v), and not one of
some that are *ruled out*. All that leads to v, itself included, is in the stages 1 … s(v), and all that v leads to in
s(v) … k. So in the beginning, with W the sums of w, ⌈W/R⌉ of the first is a lo(v) (1 if that is 0), and k + 1 less
⌈W/R⌉ of the latter a hi(v) (k if that is more). The same holds of parameters, where the memory of stages is limited.
Stages never fall along edges: lo(v) is no less than lo of the ops that v reads from, hi(v) no more than hi of those
that read from v; and where lo(v) or hi(v) is ruled out, the next one is taken. A window without a stage shows that
there is no partition within L.

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

**Devices.** Where these differ and their order is fixed, stage j stands on device j, which may be left without ops: the
stages are as many as the devices, however many may be used. Let w_j, c_j and C_j be those of its class
(:mod:`mtpp.checker.bounds.scan_devices`), and R_j = L + C_j: then w_j(S) + c_j(S) ≤ R_j. Labellings of stage j are
within R_j by these, and all else holds as it stands but for the first windows. They go by several measures y: the
ticks of ops on each class, and their parameters. The stage of a device has x(S) ≤ X for its ticks, and for parameters
if its memory is limited. With r the largest y(u) / x(u) of any op, y(S) ≤ r·x(S), so at most ⌊r·X⌋, or any y if some
op has y and no x. Let Y_j be the least of these on device j. What leads to v is in the first s(v) stages, so its y is
no more than Y_1 + … + Y_s(v), and what v leads to has no more than Y_s(v) + … + Y_k. Equal devices are of one class.

**Cases.** After its steps, a case may be split by an op v and a stage j: one has hi(v) ≤ j, the other lo(v) > j. The
claim is true if in every case that is not split there is no partition within L.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from mtpp.checker.bounds.convex_weights import check_amount, check_slope
from mtpp.checker.bounds.frontier_scan import AFTER, ALL_LABELS, BEFORE, INSIDE, Scan, TooWide, Worths
from mtpp.checker.bounds.scan_devices import ScanDevices, ScanTerms, check_scan_proof
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.paths import Paths
from mtpp.document_shape import Path, Rule, any_array, array, choice, items, record, refuse, signed, whatever, whole

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
    tree: dict[str, Rule] = {"tree": whatever}
    check_scan_proof(claim, tree, {**tree, "order": choice("fixed")})
    _check_tree(claim.proof["tree"], claim.proof["stages"], (*claim.path, "tree"))
    stages = claim.k if claim.by_class is None else len(claim.class_of)
    devices = ScanDevices.of(claim, stages)
    if isinstance(devices, str):
        return False, f"{_METHOD}: {devices}"
    cases = _Cases(devices, Paths(devices.graph))
    fault = cases.fault()
    if fault is not None:
        return False, f"{_METHOD}: {fault}"
    on_devices = "" if claim.by_class is None else " on these devices"
    shown = f"{counted(cases.steps, 'step')} in {counted(cases.count, 'case')}"
    below = f"no {counted(stages, 'stage')}{on_devices} below {claim.value} ticks are worth enough"
    return True, f"{_METHOD}: {below}, by {shown}"


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
    count, steps
        Cases that are not split, and steps of all cases, as far as they have been checked.
    """

    devices: ScanDevices
    paths: Paths
    count: int = 0
    steps: int = 0

    @property
    def terms(self) -> list[ScanTerms]:
        """Terms of the device of each stage."""
        return [self.devices.classes[c] for c in self.devices.class_of]

    def fault(self) -> str | None:
        """Return what is wrong with the cases, None if none has a partition."""
        stack = [(self.devices.claim.proof["tree"], self._windows())]
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
            if op >= len(self.devices.graph.group_of):
                return f"there is no op {op}"
            group = self.devices.graph.group_of[op]
            early, late = windows, windows.copy()
            early.last[group] = min(early.last[group], stage)
            late.first[group] = max(late.first[group], stage + 1)
            stack += [(node_out, late), (node_in, early)]
        return None

    def _windows(self) -> _Windows:
        """Return the windows of the beginning."""
        terms = self.terms
        stages, groups = len(terms), range(len(self.devices.graph.work))
        first, last = [1 for _ in groups], [stages for _ in groups]
        measures: list[list[int]] = []
        for amounts in (amounts for one in self.devices.classes for amounts, _ in one.limits):
            if amounts not in measures:
                measures.append(amounts)
        for measure in measures:
            rooms = [min(_room(measure, *limit) for limit in one.limits) for one in self.devices.classes]
            within = [rooms[c] for c in self.devices.class_of]
            from_first, from_last = list(accumulate(within)), list(accumulate(reversed(within)))
            before, after = self.paths.sums(measure)
            for group in groups:
                first[group] = max(first[group], 1 + bisect_left(from_first, before[group]))
                last[group] = min(last[group], stages - bisect_left(from_last, after[group]))
        return _Windows(first, last, [set() for _ in groups])

    def _close(self, windows: _Windows) -> None:
        """Take what follows along edges, and leave out ends that are ruled out."""
        order = [place.op for place in self.devices.classes[0].frontier.places]
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
        groups = self.devices.groups_of([op for op, _ in step["weights"]], "has two rows of weights")
        if isinstance(groups, str):
            return groups
        weights = dict(zip(groups, (row for _, row in step["weights"]), strict=True))
        terms = self.terms
        worths = [self._worths(weights, windows, stage) for stage in range(1, len(terms) + 1)]

        def scan(j: int) -> Scan:
            return Scan(terms[j].frontier, worths[j], terms[j].room, step["slopes"][j], step["floors"][j])

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
        none = [0] * len(self.devices.class_of)
        found: list[Worths] = []
        for place in self.devices.classes[0].frontier.places:
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
        for place, found in zip(self.devices.classes[0].frontier.places, labels, strict=True):
            if found != ALL_LABELS:
                group = place.op
                if not found >> BEFORE & 1:
                    windows.first[group] = max(windows.first[group], stage)
                if not found >> AFTER & 1:
                    windows.last[group] = min(windows.last[group], stage)
                if not found >> INSIDE & 1:
                    windows.out[group].add(stage)


def _room(measured: Sequence[int], amounts: Sequence[int], most: int) -> int:
    """Return the most of a measure of groups with so much of other amounts, all of it where these limit nothing."""
    rows = [(y, own) for y, own in zip(measured, amounts, strict=True) if y > 0]
    if any(own == 0 for _, own in rows):
        return sum(measured)
    rate = max((Fraction(y, own) for y, own in rows), default=Fraction(0))
    return int(rate * most)
