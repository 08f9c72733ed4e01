"""Every split and looped schedule of a graph or a model of layers, along one order of its ops or all of them.

Written from ``docs/training.md``: it reads documents and shares nothing with the planner but the replay of
:mod:`looped_oracles`. For a handful of ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, permutations, product
from math import ceil
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
        ratio, state = Fraction(self.asked.get("backward_ratio", 2)), Fraction(self.asked.get("state", 4))
        work, held, trained = one["work"], one.get("param_bytes", 0), self._trained
        name = one["name"]
        kept = 0
        for t in self.tensors:
            if t.producer == name and (trained is None or any(trained[v][1] for v in (name, *t.consumers))):
                kept += t.size
        share, updated = Fraction(1), held
        if trained is not None:
            share, updated = trained[name][0], one.get("trainable_bytes", held)
        fixed = ceil(state * updated) + held - updated
        backward = one.get("backward", ceil(ratio * share * work))
        return OracleOp(work, backward, fixed, one.get("kept_bytes", kept))

    @cached_property
    def _trained(self) -> dict[str, tuple[Fraction, bool]] | None:
        """Part of a backward pass that each op runs, and whether it has one; None where the graph says nothing."""
        ops = {one["name"]: one for one in self.model["ops"]}
        if not any(key in one for one in ops.values() for key in ("trainable_bytes", "backward_share")):
            return None
        found: dict[str, tuple[Fraction, bool]] = {}
        for name in next(self.orders()):
            one = ops[name]
            held = one.get("param_bytes", 0)
            updated = one.get("trainable_bytes", held)
            before = any(found[t.producer][1] for t in self.tensors if name in t.consumers)
            share = Fraction(before)
            if held:
                share = Fraction(int(before) + int(updated > 0), 2)
            share = Fraction(one.get("backward_share", share))
            found[name] = share, share > 0 or updated > 0
        return found

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
        part = 1 / (1 + Fraction(self.asked.get("backward_ratio", 2)))
        forward, backward = (
            (listed["forward"], listed["backward"])
            if listed
            else (ceil(one["time"] * part), ceil(one["time"] * (1 - part)))
        )
        return OracleOp(forward, backward, one["memory_bytes"], one["memory_bytes_per_micro_batch"])

    def _plans(self, ops: int) -> Iterator[tuple[list[Row], list[int]]]:
        devices, total = self.asked["devices"], self.asked["micro_batches"]
        if self.asked.get("schedule"):
            rows = self.asked["rows"]
            stages = 1 + max(stage for row in rows for stage, _, _ in row)
            for split in _splits(ops, stages):
                yield rows, split
            return
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
        devices = self.asked["devices"]
        speed = [Fraction(one) for one in self.asked["speed"] or [1] * devices]
        stages = [order[a:b] for a, b in pairwise(split)]
        forward, backward = (
            [sum(ceil(costs[name][k] / speed[s % devices]) for name in stage) for s, stage in enumerate(stages)]
            for k in (0, 1)
        )
        handovers: dict[tuple[int, int], int] = {}
        if self.asked.get("transport") == "direct":
            for source, target, one in self._straight(order, split):
                handovers[source, target] = handovers.get((source, target), self.asked["latency"]) + one.ticks
            return handed_over(rows, forward, backward, handovers)
        for s, p in enumerate(split[1:-1]):
            crossing = [t.ticks for t in self._crossing(order, p)]
            handovers[s, s + 1] = sum(crossing) + self.asked["latency"] if crossing else 0
        found = handed_over(rows, forward, backward, handovers)
        if all(kind in "FB" for row in rows for _, kind, _ in row):
            assert found == replayed(rows, forward, backward, list(handovers.values()))
        return found

    def _straight(self, order: Sequence[str], split: Sequence[int]) -> Iterator[tuple[int, int, OracleTensor]]:
        """Go through tensors that go from one stage straight to another."""
        place = {name: s for s, (a, b) in enumerate(pairwise(split)) for name in order[a:b]}
        for one in self.tensors:
            for target in {place[name] for name in one.consumers} - {place[one.producer]}:
                yield place[one.producer], target, one

    def _crossing(self, order: Sequence[str], position: int) -> list[OracleTensor]:
        before = set(order[:position])
        return [t for t in self.tensors if t.producer in before and any(one not in before for one in t.consumers)]

    def _fits(
        self, order: Sequence[str], costs: dict[str, OracleOp], rows: Sequence[Row], split: Sequence[int]
    ) -> bool:
        limits = self.asked["memory"]
        return limits is None or all(
            need <= limit for need, limit in zip(self.needed(order, costs, rows, split), limits, strict=True)
        )

    def needed(
        self, order: Sequence[str], costs: dict[str, OracleOp], rows: Sequence[Row], split: Sequence[int]
    ) -> list[int]:
        """Return the bytes that each device needs."""
        stages = [order[a:b] for a, b in pairwise(split)]
        received = [0] * len(stages)
        if self.asked.get("transport") == "direct":
            for source, target, one in self._straight(order, split):
                received[source] += one.size
                received[target] += one.size
        else:
            crossing = [sum(t.size for t in self._crossing(order, p)) for p in split]
            received = [a + b for a, b in pairwise(crossing)]
        everything = self.asked.get("buffers") == "torch-pipelining"
        found = []
        for d, row in enumerate(rows):
            need = held = most = 0
            flying = {}
            for s in range(d, len(stages), self.asked["devices"]):
                need += sum(costs[name].fixed for name in stages[s])
                need += self.asked["micro_batches"] * received[s] if everything else 0
                flying[s] = sum(costs[name].kept for name in stages[s]) + (0 if everything else received[s])
            for stage, kind, _ in row:
                held += {"F": flying[stage], "I": 0}.get(kind, -flying[stage])
                most = max(most, held)
            found.append(need + most)
        return found


def handed_over(
    rows: Sequence[Row], forward: Sequence[int], backward: Sequence[int], handovers: Mapping[tuple[int, int], int]
) -> int | None:
    """Return the iteration of passes in rows, None if some of them wait for each other.

    *handovers* are the ticks from stage to stage; a pass waits for all that its stage is handed, even in no time.
    Backward passes may come in halves, I for inputs, the larger one, and W for weights.
    """
    devices = len(rows)
    ended: set[tuple[int, str, int]] = set()
    arrived: dict[tuple[int, int, int], int] = {}
    channel: dict[tuple[int, int], int] = {}
    free, at = [0] * devices, [0] * devices
    moved = True
    while moved:
        moved = False
        for d, row in enumerate(rows):
            while at[d] < len(row):
                stage, kind, m = row[at[d]]
                start = free[d]
                if kind == "W":
                    if (stage, "I", m) not in ended:
                        break
                else:
                    sources = [a if kind == "F" else b for a, b in handovers if (b if kind == "F" else a) == stage]
                    needed = [(source, stage, m) for source in sources]
                    if any(one not in arrived for one in needed) or (kind != "F" and (stage, "F", m) not in ended):
                        break
                    start = max([start, *(arrived[one] for one in needed)])
                whole = backward[stage]
                takes = {"F": forward[stage], "B": whole, "I": whole - whole // 2, "W": whole // 2}[kind]
                free[d] = start + takes
                ended.add((stage, kind, m))
                at[d] += 1
                moved = True
                for a, b in sorted(handovers) if kind != "W" else ():
                    source, target = (a, b) if kind == "F" else (b, a)
                    if source == stage:
                        key = d, target % devices
                        channel[key] = max(free[d], channel.get(key, 0)) + handovers[a, b]
                        arrived[stage, target, m] = channel[key]
    return max(free) if all(at[d] == len(row) for d, row in enumerate(rows)) else None


def _splits(ops: int, stages: int) -> Iterator[list[int]]:
    for cut in combinations(range(1, ops), stages - 1):
        yield [0, *cut, ops]
