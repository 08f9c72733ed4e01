"""Every plan of stages that form a graph, of a model whose layers may differ in all that a file says of them.

Written from ``docs/formats.md`` and ``docs/simulation.md``: it reads ``mtpp-training-model`` documents and shares
nothing with planner or verifier. For a handful of layers, devices and micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import permutations, product
from typing import Any, NamedTuple

SECOND = 10**12

Document = dict[str, Any]


class OracleWay(NamedTuple):
    """A way to run a group of layers: b, d, k, and what it costs with the configurations in *runs_as*."""

    b: int
    d: int
    k: int
    forward: int
    backward: int
    synchronisation: int
    fixed: int
    kept: int
    runs_as: tuple[Document, ...]


class OraclePlan(NamedTuple):
    """An iteration in ticks, with what each stage has: layers, its way and its micro-batches in flight."""

    iteration: int
    stages: list[tuple[tuple[str, ...], OracleWay, int]]


def allowed_sizes(model: Document, asked: Document) -> list[int]:
    """Return the sizes of micro-batches that are tried: those asked for, or that some layer lists and that divide."""
    batch, sizes = asked["mini_batch"], asked["sizes"]
    if sizes is None:
        ways = [one for layer in model["layers"] for one in layer["configurations"].get("1", ())]
        sizes = [size for one in ways for size in map(int, one.get("micro_batches", ())) if batch % size == 0]
        sizes = sizes or [size for size in (2**i for i in range(batch.bit_length())) if batch % size == 0]
    return sorted({size for size in sizes if batch // size >= min(asked["intervals"])})


def best_graph_plan(model: Document, asked: Document) -> OraclePlan | None:
    """Return the plan with the shortest iteration, None if there is none."""
    return _Plans(model, asked).best()


def least_graph_memory(model: Document, asked: Document) -> int | None:
    """Return the least bytes of a device with which there is a plan, None if no amount helps."""
    return _Plans(model, {**asked, "memory_bytes": 2**62}).leanest()


class _Plans:
    def __init__(self, model: Document, asked: Document) -> None:
        self.asked = asked
        self.names = [layer["name"] for layer in model["layers"]]
        self.layers = model["layers"]
        self.of = model["micro_batch_size"]
        self.edges = [
            (self.names.index(e["source"]), self.names.index(e["target"]), e["bytes"]) for e in model["edges"]
        ]
        self.choices = [
            [one for one in layer["configurations"].get("1", ()) if asked["recompute"] or not one.get("recompute")]
            for layer in model["layers"]
        ]
        self.sizes = allowed_sizes(model, asked)
        self.ways = lru_cache(maxsize=None)(self._ways)

    def best(self) -> OraclePlan | None:
        found: OraclePlan | None = None
        for groups, chosen, ends, transfers in self._pipelines():
            batch = self.asked["mini_batch"]
            if found is not None and any(
                batch // way.b * (way.forward + way.backward) + way.synchronisation >= found.iteration for way in chosen
            ):
                continue
            for counts in self._counts(chosen, ends):
                time = iteration_of(batch, chosen, counts, transfers)
                if time is not None and (found is None or time < found.iteration):
                    names = [tuple(self.names[v] for v in group) for group in groups]
                    found = OraclePlan(time, list(zip(names, chosen, counts, strict=True)))
        return found

    def leanest(self) -> int | None:
        least: int | None = None
        for _, chosen, ends, transfers in self._pipelines():
            for counts in self._counts(chosen, ends):
                needed = max(way.fixed + count * way.kept for way, count in zip(chosen, counts, strict=True))
                if (least is None or needed < least) and (
                    iteration_of(self.asked["mini_batch"], chosen, counts, transfers) is not None
                ):
                    least = needed
        return least

    def _pipelines(
        self,
    ) -> Iterator[tuple[list[tuple[int, ...]], tuple[OracleWay, ...], list[tuple[int, int]], list[OracleTransfer]]]:
        """Yield groups of layers in a topological order, a way for each, pairs of neighbours, and their transfers."""
        for groups in self._groupings():
            place = {v: s for s, group in enumerate(groups) for v in group}
            ends = sorted({(place[u], place[v]) for u, v, _ in self.edges if place[u] != place[v]})
            if self.asked["sequential"]:
                ends = sorted({*ends, *((s, s + 1) for s in range(len(groups) - 1))})
            for chosen in product(*(self.ways(group) for group in groups)):
                if sum(way.d for way in chosen) > self.asked["devices"]:
                    continue
                if not self.asked["per_stage"] and len({way.b for way in chosen}) > 1:
                    continue
                if any(max(chosen[a].b, chosen[b].b) % min(chosen[a].b, chosen[b].b) for a, b in ends):
                    continue
                yield groups, chosen, ends, self._transfers(groups, chosen, ends)

    def _groupings(self) -> Iterator[list[tuple[int, ...]]]:
        count = len(self.names)
        for label in product(range(count), repeat=count):
            if any(one > max(label[:i], default=-1) + 1 for i, one in enumerate(label)):
                continue
            stages = max(label) + 1
            if stages > self.asked["devices"]:
                continue
            for line in permutations(range(stages)):
                if all(line.index(label[u]) <= line.index(label[v]) for u, v, _ in self.edges):
                    yield [tuple(v for v in range(count) if label[v] == s) for s in line]
                    if not self.asked["sequential"]:
                        break

    def _trained(self, v: int, one: Document) -> int:
        """Return the bytes of gradients on one device."""
        return min(one["parameter_bytes"], self.layers[v].get("trainable_bytes", one["parameter_bytes"]))

    def _ways(self, group: tuple[int, ...]) -> list[OracleWay]:
        asked, found = self.asked, []
        for b, d in product(self.sizes, range(1, asked["devices"] + 1 if asked["data_parallel"] else 2)):
            if b % d:
                continue
            for runs_as in product(*(self.choices[v] for v in group)):
                costs = [self._costs(one, b // d) for one in runs_as]
                known = [one for one in costs if one is not None]
                if len(known) < len(costs):
                    continue
                forward, backward, kept = (sum(one[i] for one in known) for i in range(3))
                parameters = sum(self._trained(v, one) for v, one in zip(group, runs_as, strict=True))
                fixed = sum(one["memory_bytes"] for one in runs_as)
                synchronisation = -(-2 * (d - 1) * parameters * SECOND // (d * asked["bandwidth"]))
                for k in asked["intervals"]:
                    if k <= asked["mini_batch"] // b and fixed + k * kept <= asked["memory_bytes"]:
                        found.append(OracleWay(b, d, k, forward, backward, synchronisation, fixed, kept, runs_as))
        return found

    def _costs(self, one: Document, samples: int) -> tuple[int, int, int] | None:
        table = one.get("micro_batches")
        if table:
            row = table.get(str(samples))
            return row and (row["forward"], row["backward"], row["memory_bytes"])
        time, kept = one["time"] * samples, one["memory_bytes_per_micro_batch"] * samples
        return -(-time // (3 * self.of)), -(-2 * time // (3 * self.of)), -(-kept // self.of)

    def _transfers(
        self, groups: Sequence[tuple[int, ...]], chosen: Sequence[OracleWay], ends: Sequence[tuple[int, int]]
    ) -> list[OracleTransfer]:
        place = {v: s for s, group in enumerate(groups) for v in group}
        runs_as = {
            v: one for group, way in zip(groups, chosen, strict=True) for v, one in zip(group, way.runs_as, strict=True)
        }
        found = []
        for a, b in ends:
            there = back = 0
            for u, v, size in self.edges:
                if (place[u], place[v]) == (a, b):
                    more = runs_as[v].get("sync_in", {}).get(self.names[u], 0)
                    there += -(-(size + more) * chosen[a].b // self.of)
                    more = runs_as[u].get("sync_out", {}).get(self.names[v], 0)
                    back += -(-(size + more) * chosen[b].b // self.of)
            rate = self.asked["bandwidth"] * min(chosen[a].d, chosen[b].d)
            forward, backward = (self.asked["latency"] + -(-size * SECOND // rate) for size in (there, back))
            found.append(OracleTransfer(a, b, forward, backward))
        return found

    def _counts(self, chosen: Sequence[OracleWay], ends: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
        """Yield the micro-batches in flight that stages may have, chosen from the last one to the first."""
        counts = [0] * len(chosen)
        batch, memory = self.asked["mini_batch"], self.asked["memory_bytes"]

        def choose(x: int) -> Iterator[tuple[int, ...]]:
            if x < 0:
                yield tuple(counts)
                return
            way = chosen[x]
            needed = way.k * way.b
            for a, y in ends:
                if a == x:
                    ours, theirs, m = way.k * way.b, chosen[y].k * chosen[y].b, max(way.b, chosen[y].b)
                    step = 2 * m if m < min(ours, theirs) else m
                    needed = max(needed, counts[y] * chosen[y].b + max(0, ours - theirs) + step)
            fewest = min(-(-needed // way.b), batch // way.b)
            for count in range(fewest, (fewest if self.asked["least"] else batch // way.b) + 1):
                if way.fixed + count * way.kept <= memory and way.k <= count:
                    counts[x] = count
                    yield from choose(x - 1)

        return choose(len(chosen) - 1)


class OracleTransfer(NamedTuple):
    """Ticks of a micro-batch from a stage to another, and of its gradients back."""

    source: int
    target: int
    forward: int
    backward: int


@cache
def _order(count: int, in_flight: int, k: int) -> tuple[int, ...]:
    """Return the kFkB order of a stage: j is the forward pass of micro-batch j, −j its backward pass."""
    forward, backward = list(range(1, count + 1)), list(range(-1, -count - 1, -1))
    first = min(in_flight, count)
    order, forward = forward[:first], forward[first:]
    while forward:
        order, backward = order + backward[:k], backward[k:]
        order, forward = order + forward[:k], forward[k:]
    return (*order, *backward)


def iteration_of(
    batch: int, stages: Sequence[OracleWay], counts: Sequence[int], transfers: Sequence[OracleTransfer]
) -> int | None:
    """Return the iteration of stages by their orders of passes, None if passes wait for each other."""
    number = len(stages)
    orders = [_order(batch // way.b, count, way.k) for way, count in zip(stages, counts, strict=True)]
    arrived: dict[tuple[int, int, bool], list[int]] = {}
    into: list[tuple[list[int], list[int]]] = [([], []) for _ in stages]
    out: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = [([], []) for _ in stages]
    for one in transfers:
        arrived[one.source, one.target, True] = []
        arrived[one.target, one.source, False] = []
        into[one.target][0].append(one.source)
        into[one.source][1].append(one.target)
        out[one.source][0].append((one.target, one.forward))
        out[one.target][1].append((one.source, one.backward))
    free, at = [0] * number, [0] * number
    moved = True
    while moved:
        moved = False
        for s, order in enumerate(orders):
            way = stages[s]
            while at[s] < len(order):
                j = order[at[s]]
                forward = j > 0
                start = free[s]
                if not forward and -j not in order[: at[s]]:
                    return None
                for other in into[s][not forward]:
                    messages = arrived[other, s, forward]
                    needed = -(-abs(j) * way.b // stages[other].b)
                    if len(messages) < needed:
                        break
                    start = max(start, messages[needed - 1])
                else:
                    free[s] = start + (way.forward if forward else way.backward)
                    for other, takes in out[s][not forward]:
                        channel = arrived[s, other, forward]
                        channel.append(max(free[s], channel[-1] if channel else 0) + takes)
                    at[s] += 1
                    moved = True
                    continue
                break
    if any(place < len(order) for place, order in zip(at, orders, strict=True)):
        return None
    return max(end + way.synchronisation for end, way in zip(free, stages, strict=True))
