"""All labellings of small graphs, and bounds that rest on weights of ops judged by trying them all.

A labelling gives each op 0, 1 or 2: it is before a stage, in it, or after it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from flow_proofs import edges_of, name_of
from scipy.optimize import linprog

from mtpp.checker.merged import MergedGraph

Row = tuple[int | None, int | None, int | None]
"""Worth of each label of an op, None if it may not have it."""


@dataclass(frozen=True)
class Labellings:
    """The labellings in which no edge leads to an earlier label.

    Attributes
    ----------
    labels
        A row a labelling, a column an op.
    cost
        Weight of the ops with label 1, and transfers of the tensors that have members both of label 1 and of another.
    """

    labels: np.ndarray
    cost: np.ndarray

    @classmethod
    def of(cls, graph: MergedGraph, weight: Sequence[int], forgotten: Collection[int] = ()) -> Labellings:
        """Try all ways to label the ops."""
        labels = np.array(list(itertools.product(range(3), repeat=len(weight))))
        tensors = [row for t, row in enumerate(graph.tensors) if t not in forgotten]
        for _, producer, readers in tensors:
            for reader in readers:
                labels = labels[labels[:, producer] <= labels[:, reader]]
        inside = labels == 1
        cost = inside @ np.array(weight)
        for transfer, producer, readers in tensors:
            members = inside[:, [producer, *readers]]
            cost = cost + transfer * (members.any(axis=1) & ~members.all(axis=1))
        return cls(labels, cost)

    def allowed(self, worths: Sequence[Row], room: int) -> Labellings:
        """Leave out labellings above the room, and with a label that is not allowed."""
        kept = self.cost <= room
        for v, row in enumerate(worths):
            for label in range(3):
                if row[label] is None:
                    kept &= self.labels[:, v] != label
        return Labellings(self.labels[kept], self.cost[kept])

    def worth(self, worths: Sequence[Row]) -> np.ndarray:
        """Return what each labelling is worth in all."""
        total = np.zeros(len(self.cost), dtype=np.int64)
        for v, row in enumerate(worths):
            total = total + np.array([worth or 0 for worth in row])[self.labels[:, v]]
        return total

    def labels_worth(self, worths: Sequence[Row], least: int) -> list[set[int]]:
        """Return which labels each op has in labellings that are worth that much."""
        rows = self.labels[self.worth(worths) >= least]
        return [{int(label) for label in column} for column in rows.T]


def windows_of(
    graph: MergedGraph, weight: Sequence[int], k: int, room: int, memory: int | None = None
) -> list[set[int]]:
    """Return the stages, from 1 on, in which what leads to an op, and what it leads to, leaves room.

    Parameters
    ----------
    memory
        Bytes of parameters that a stage may hold; None: any.
    """
    edges = edges_of(graph)
    limits = [(weight, room)] + ([] if memory is None else [(graph.param_bytes, memory)])
    stages = [set(range(1, k + 1)) for _ in weight]
    for measure, _ in limits:
        most = min(_most(measure, amounts, limit) for amounts, limit in limits)
        for v in range(len(weight)):
            before = measure[v] + sum(measure[u] for u in nx.ancestors(edges, v))
            after = measure[v] + sum(measure[u] for u in nx.descendants(edges, v))
            stages[v] &= {j for j in range(1, k + 1) if before <= j * most and after <= (k + 1 - j) * most}
    return closed(edges, stages)


def _most(measure: Sequence[int], amounts: Sequence[int], limit: int) -> int:
    """Return the most of a measure in a set of which other amounts are limited, ops being taken in part."""
    used = [(Fraction(y, x) if x else None) for y, x in zip(measure, amounts, strict=True) if y]
    rates = [rate for rate in used if rate is not None]
    return sum(measure) if len(rates) < len(used) else int(max(rates, default=Fraction(0)) * limit)


def closed(edges: nx.DiGraph, stages: Sequence[set[int]]) -> list[set[int]]:
    """Leave out stages before the first of an op that leads to the op, or behind the last of one that it leads to."""
    found = [set(each) for each in stages]
    changed = True
    while changed and all(found):
        changed = False
        for u, v in edges.edges:
            early = {j for j in found[v] if j < min(found[u])}
            late = {j for j in found[u] if found[v] and j > max(found[v])}
            found[v] -= early
            found[u] -= late
            changed |= bool(early or late)
            if not (found[u] and found[v]):
                break
    return found


def worths_of(weights: dict[int, Sequence[int]], windows: Sequence[set[int]], stage: int) -> list[Row]:
    """Return the worths of the labels of ops at a stage, by weights of ops by stage and stages that they may be in."""
    rows: list[Row] = []
    for v, stages in enumerate(windows):
        amounts = dict(enumerate(weights.get(v, ()), start=1))
        grown = amounts.get(stage, 0) - amounts.get(stage - 1, 0)
        rows.append(
            (
                grown if min(stages) < stage else None,
                amounts.get(stage, 0) if stage in stages else None,
                0 if max(stages) > stage else None,
            )
        )
    return rows


@dataclass
class Weighing:
    """A graph with weights of ops and a room that no stage may exceed.

    Attributes
    ----------
    ways
        Labellings without regard to forgotten tensors.
    memory
        Bytes of parameters that a stage may hold; None: any.
    """

    graph: MergedGraph
    weight: Sequence[int]
    k: int
    room: int
    ways: Labellings
    memory: int | None = None

    @property
    def windows(self) -> list[set[int]]:
        """The stages in which each op may be, to begin with."""
        return windows_of(self.graph, self.weight, self.k, self.room, self.memory)

    def refuted(self, tree: dict[str, Any]) -> bool:
        """Tell whether a tree of steps shows that there is no partition."""
        return self._refuted(tree, self.windows)

    def _refuted(self, tree: dict[str, Any], windows: list[set[int]]) -> bool:
        for step in tree["steps"]:
            slack, windows = self.stepped(step, windows)
            if slack < 0:
                return True
        if not all(windows):
            return True
        if tree["branch"] is None:
            return False
        op, stage, inside, outside = tree["branch"]
        v = self.graph.group_of[op]
        return all(
            self._refuted(child, self.split(windows, v, stage, early=early))
            for child, early in ((inside, True), (outside, False))
        )

    def split(self, windows: Sequence[set[int]], v: int, stage: int, *, early: bool) -> list[set[int]]:
        """Return the windows with an op in the stages up to one, or in those after it."""
        found = [set(stages) for stages in windows]
        found[v] = {j for j in found[v] if (j <= stage) == early}
        return closed(edges_of(self.graph), found)

    def stepped(self, step: dict[str, Any], windows: list[set[int]]) -> tuple[int, list[set[int]]]:
        """Return the slack of a step and the windows that it leaves; a slack below 0 where there are no windows."""
        if not all(windows):
            return -1, windows
        weights = {self.graph.group_of[op]: row for op, row in step["weights"]}
        slack = -sum(row[-1] for row in weights.values())
        most, found = [], []
        for stage in range(1, self.k + 1):
            worths = worths_of(weights, windows, stage)
            ways = self.ways.allowed(worths, self.room)
            best = max(ways.worth(worths).tolist(), default=None)
            floor = step["floors"][stage - 1]
            most.append(floor - 1 if best is None or best < floor else best)
            found.append((ways, worths))
        slack += sum(most)
        if slack < 0:
            return slack, windows
        left = [set(stages) for stages in windows]
        for stage, (ways, worths) in enumerate(found, start=1):
            if step["floors"][stage - 1] <= most[stage - 1] - slack:
                for v, labels in enumerate(ways.labels_worth(worths, most[stage - 1] - slack)):
                    of_label = ({j for j in left[v] if j < stage}, left[v] & {stage}, {j for j in left[v] if j > stage})
                    left[v] = set().union(*(of_label[label] for label in labels))
        return slack, closed(edges_of(self.graph), left)

    def best_weights(self, windows: list[set[int]], scale: int) -> dict[int, list[int]]:
        """Return weights by stage that leave the least slack, in whole numbers around a scale."""
        n, k = len(self.weight), self.k
        ones = {v: [1] * k for v in range(n)}
        width = n * k + k
        rows = []
        for stage in range(1, k + 1):
            ways = self.ways.allowed(worths_of(ones, windows, stage), self.room)
            row = np.zeros((len(ways.cost), width))
            row[:, n * k + stage - 1] = -1
            for v, stages in enumerate(windows):
                inside, before = ways.labels[:, v] == 1, ways.labels[:, v] == 0
                row[:, v * k + stage - 1] = inside
                if 1 < stage <= max(stages):
                    row[:, v * k + stage - 1] += before
                    row[:, v * k + stage - 2] -= before
            rows.append(row)
        objective = np.zeros(width)
        objective[n * k :] = 1
        for v, stages in enumerate(windows):
            objective[v * k + max(stages) - 1] -= 1
        limits = [(-1, 1)] * (n * k) + [(-9 * n, 9 * n)] * k
        matrix = np.concatenate(rows)
        found = linprog(objective, matrix, np.zeros(len(matrix)), bounds=limits)
        return {v: [round(amount * scale) for amount in found.x[v * k : v * k + k]] for v in range(n)}


@dataclass
class Maker:
    """Makes proofs by weights by stage on small graphs.

    Attributes
    ----------
    most_cases
        Splits of cases at most.
    """

    weighing: Weighing
    pick: random.Random
    most_cases: int = 40

    def tree(self) -> dict[str, Any]:
        """Return a tree of steps that refutes if there are cases enough, and if there is no partition."""
        return self._node(self.weighing.windows)

    def _node(self, windows: list[set[int]]) -> dict[str, Any]:
        steps: list[Any] = []
        slack = 0
        while all(windows) and slack >= 0 and len(steps) < 4:
            before = windows
            steps.append(self._step(windows))
            slack, windows = self.weighing.stepped(steps[-1], windows)
            if windows == before:
                break
        branch = None
        open_ops = [v for v, stages in enumerate(windows) if len(stages) > 1]
        if slack >= 0 and all(windows) and open_ops and self.most_cases > 0:
            self.most_cases -= 1
            v = self.pick.choice(open_ops)
            stage = self.pick.choice(sorted(windows[v])[:-1])
            children = [self._node(self.weighing.split(windows, v, stage, early=early)) for early in (True, False)]
            branch = [name_of(self.weighing.graph, v, self.pick), stage, *children]
        return {"steps": steps, "branch": branch}

    def _step(self, windows: list[set[int]]) -> dict[str, Any]:
        w, pick = self.weighing, self.pick
        scale = pick.choice([12, 1000, 10**6])
        weights = w.best_weights(windows, scale)
        rows = [[name_of(w.graph, v, pick), row] for v, row in weights.items() if any(row)]
        step = {
            "weights": rows,
            "slopes": [
                [pick.choice([0, scale, 64 * scale // max(1, w.room)]), pick.choice([0, 6])] for _ in range(w.k)
            ],
            "floors": [-(10**12)] * w.k,
        }
        slack, _ = w.stepped(step, windows)
        if slack >= 0:
            for stage in range(1, w.k + 1):
                worths = worths_of(weights, windows, stage)
                best = max(w.ways.allowed(worths, w.room).worth(worths).tolist(), default=0)
                step["floors"][stage - 1] = best - slack - pick.choice([0, 0, 3])
        else:
            step["floors"] = [pick.choice([-n for n in (10**12, 8 * scale * len(rows))]) for _ in step["floors"]]
        return step
