"""Every split and looped schedule of a graph or a model of layers, along one order of its ops or all of them.

Written from ``docs/training.md``: it reads documents and shares nothing with the planner but the replay of
:mod:`looped_oracles`. Tensors pass from neighbour to neighbour. For a handful of ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, permutations, product
from typing import Any, NamedTuple

from looped_oracles import Row, family_rows, replayed, warm_ups

SECOND = 10**12

Document = dict[str, Any]


class OracleOp(NamedTuple):
    """Ticks of both passes of a micro-batch at speed 1, and bytes: fixed, and kept for a micro-batch."""

    forward: int
    backward: int
    fixed: int
    kept: int


class OracleTensor(NamedTuple):
    """A tensor by names of ops."""

    producer: str
    consumers: tuple[str, ...]
    ticks: int
    size: int


class SplitOracle:
    """All plans of a case of :func:`irregular_models.irregular_split_case`."""

    def __init__(self, model: Document, asked: Document) -> None:
        self.asked = asked
        self.layers = model["format"] == "mtpp-training-model"
        self.model = model
        rate = asked["bandwidth"]
        if self.layers:
            self.names = [one["name"] for one in model["layers"]]
            self.tensors = [
                OracleTensor(e["source"], (e["target"],), -(-e["bytes"] * SECOND // rate), e["bytes"])
                for e in model["edges"]
            ]
        else:
            self.names = [one["name"] for one in model["ops"]]
            self.tensors = [
                OracleTensor(
                    one["producer"],
                    tuple(one["consumers"]),
                    one["transfer"] if "transfer" in one else -(-one["bytes"] * SECOND // rate),
                    one["bytes"],
                )
                for one in model["tensors"]
            ]

    def costs(self, choice: str | None) -> dict[str, OracleOp]:
        """Return the costs of all ops; layers run as one of their configurations by the rule of that name."""
        if not self.layers:
            return {one["name"]: self._op(one) for one in self.model["ops"]}
        return {one["name"]: self._layer(self._chosen(one, choice)) for one in self.model["layers"]}

    def every_mix(self) -> Iterator[dict[str, OracleOp]]:
        """Go through all configurations of all layers."""
        if not self.layers:
            yield self.costs(None)
            return
        ways = [[self._layer(one) for one in layer["configurations"]["1"]] for layer in self.model["layers"]]
        for mix in product(*ways):
            yield dict(zip(self.names, mix, strict=True))

    def orders(self) -> Iterator[tuple[str, ...]]:
        """Go through all topological orders."""
        for order in permutations(self.names):
            at = {name: i for i, name in enumerate(order)}
            if all(at[one.producer] < at[reader] for one in self.tensors for reader in one.consumers):
                yield order

    def best(self, order: Sequence[str], costs: dict[str, OracleOp]) -> int | None:
        """Return the shortest iteration along an order that fits into memory, None if nothing does."""
        best = None
        for rows, split in self._plans(len(order)):
            if self._fits(order, costs, rows, split):
                time = self.time(order, costs, rows, split)
                if time is not None and (best is None or time < best):
                    best = time
        return best

    def best_split(self, order: Sequence[str], costs: dict[str, OracleOp], rows: Sequence[Row], stages: int) -> int:
        """Return the shortest iteration of all splits under one schedule, whether they fit or not."""
        times = (self.time(order, costs, rows, split) for split in _splits(len(order), stages))
        return min(time for time in times if time is not None)

    def fits_somehow(self) -> bool:
        """Tell whether any plan fits, along any order that is allowed and with any configurations."""
        return any(
            self._fits(order, costs, rows, split)
            for costs in self.every_mix()
            for order in self.orders()
            for rows, split in self._plans(len(order))
        )

    def _op(self, one: Document) -> OracleOp:
        work = one["work"]
        made = sum(t.size for t in self.tensors if t.producer == one["name"])
        return OracleOp(work, one.get("backward", 2 * work), 4 * one.get("param_bytes", 0), one.get("kept_bytes", made))

    def _chosen(self, layer: Document, choice: str | None) -> Document:
        ways = layer["configurations"]["1"]
        memory = None if self.asked["memory"] is None else max(self.asked["memory"])

        def kept(one: Document) -> int:
            return int(one["memory_bytes_per_micro_batch"])

        if choice == "least-kept":
            return min(ways, key=lambda one: (kept(one), one["memory_bytes"], one["time"]))
        if choice == "smallest":
            return min(ways, key=lambda one: (kept(one) + one["memory_bytes"], kept(one), one["time"]))
        fitting = [one for one in ways if memory is None or kept(one) + one["memory_bytes"] <= memory]
        return min(fitting or ways, key=lambda one: (one["time"], kept(one), one["memory_bytes"]))

    def _layer(self, one: Document) -> OracleOp:
        listed = one.get("micro_batches", {}).get(str(self.model["micro_batch_size"]))
        forward, backward = (
            (listed["forward"], listed["backward"]) if listed else (-(-one["time"] // 3), -(-2 * one["time"] // 3))
        )
        return OracleOp(forward, backward, one["memory_bytes"], one["memory_bytes_per_micro_batch"])

    def _plans(self, ops: int) -> Iterator[tuple[list[Row], list[int]]]:
        devices, total = self.asked["devices"], self.asked["micro_batches"]
        for loops in sorted(set(self.asked["loops"])):
            if loops * devices > ops:
                continue
            any_batch = self.asked["loop_batch"] == "any"
            batches = [b for b in range(min(devices, total), total + 1) if any_batch or total % b == 0]
            for batch in [total] if loops == 1 else batches:
                most = loops * total
                least = [min((loops - 1) * min(batch, total) + devices - d, most) for d in range(devices)]
                if self.asked["prefetch"] is None:
                    every = list(warm_ups(least, most))
                else:
                    every = [tuple(min(a + b, most) for a, b in zip(least, self.asked["prefetch"], strict=True))]
                for warm_up in every:
                    rows = family_rows(devices, total, loops, batch, warm_up)
                    for split in _splits(ops, loops * devices):
                        yield rows, split

    def time(
        self, order: Sequence[str], costs: dict[str, OracleOp], rows: Sequence[Row], split: Sequence[int]
    ) -> int | None:
        """Return the iteration of a split under a schedule, None if its passes wait for each other."""
        devices, speed = self.asked["devices"], self.asked["speed"] or [1] * self.asked["devices"]
        stages = [order[a:b] for a, b in pairwise(split)]
        forward, backward = (
            [sum(-(-costs[name][k] // speed[s % devices]) for name in stage) for s, stage in enumerate(stages)]
            for k in (0, 1)
        )
        handover = []
        for p in split[1:-1]:
            crossing = [t.ticks for t in self._crossing(order, p)]
            handover.append(sum(crossing) + self.asked["latency"] if crossing else 0)
        return replayed(rows, forward, backward, handover)

    def _crossing(self, order: Sequence[str], position: int) -> list[OracleTensor]:
        before = set(order[:position])
        return [t for t in self.tensors if t.producer in before and any(one not in before for one in t.consumers)]

    def _fits(
        self, order: Sequence[str], costs: dict[str, OracleOp], rows: Sequence[Row], split: Sequence[int]
    ) -> bool:
        limits, devices = self.asked["memory"], self.asked["devices"]
        if limits is None:
            return True
        crossing = [sum(t.size for t in self._crossing(order, p)) for p in split]
        stages = [order[a:b] for a, b in pairwise(split)]
        for d, row in enumerate(rows):
            need = held = most = 0
            flying = {}
            for s in range(d, len(stages), devices):
                need += sum(costs[name].fixed for name in stages[s])
                flying[s] = sum(costs[name].kept for name in stages[s]) + crossing[s] + crossing[s + 1]
            for stage, kind, _ in row:
                held += flying[stage] if kind == "F" else -flying[stage]
                most = max(most, held)
            if need + most > limits[d]:
                return False
        return True


def _splits(ops: int, stages: int) -> Iterator[list[int]]:
    for cut in combinations(range(1, ops), stages - 1):
        yield [0, *cut, ops]
