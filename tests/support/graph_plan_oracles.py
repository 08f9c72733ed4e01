"""Plain-Python oracle of GraphPipe's planning problem: every stage graph tried, each simulated by events.

It reads ``mtpp-training-model`` documents whose layers have one configuration, with costs of every size in whole
picoseconds, and follows the rules in ``docs/simulation.md``; it shares nothing with the planner but the simulator of
:mod:`pipeline_events`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

from pipeline_events import simulate_events

SECOND = 10**12


def best_iteration(model: dict[str, Any], asked: dict[str, Any]) -> int | None:
    """Return the shortest iteration of all plans in ticks, None if none fits.

    *asked* has ``devices``, ``memory_bytes``, ``bandwidth``, ``mini_batch``, ``sizes``, and may have ``latency``,
    ``least``, ``sequential``, ``per_stage`` and ``intervals``.
    """
    best = best_pipeline(model, asked)
    return None if best is None else best[0]


def best_pipeline(model: dict[str, Any], asked: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Return the shortest iteration and a pipeline that has it; its stages have ``layers`` and ``replicas`` besides."""
    best = None
    for document in _pipelines(model, asked):
        done = simulate_events(document)
        if done is not None and (best is None or done["iteration"] < best[0]):
            best = done["iteration"], document
    return best


def leanest_pipeline(model: dict[str, Any], asked: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Return the least bytes on the fullest device of a pipeline, whatever devices have, and one that needs no more."""
    best = None
    for document in _pipelines(model, {**asked, "memory_bytes": 2**62}):
        needed = max(stage["memory_bytes"] for stage in document["stages"])
        if (best is None or needed < best[0]) and simulate_events(document) is not None:
            best = needed, document
    return best


def _pipelines(model: dict[str, Any], asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names = [layer["name"] for layer in model["layers"]]
    edges = [(names.index(e["source"]), names.index(e["target"]), e["bytes"]) for e in model["edges"]]
    costs = [layer["configurations"]["1"][0] for layer in model["layers"]]
    for label in _labels(len(names)):
        stages = max(label) + 1
        for line in permutations(range(stages)) if asked.get("sequential") else [tuple(range(stages))]:
            groups = [[v for v in range(len(names)) if label[v] == s] for s in line]
            place = {v: s for s, group in enumerate(groups) for v in group}
            ends = {(place[u], place[v]) for u, v, _ in edges if place[u] != place[v]}
            if asked.get("sequential"):
                if any(a > b for a, b in ends):
                    continue
                ends |= {(s, s + 1) for s in range(stages - 1)}
            order = _topological(stages, ends)
            if order is None:
                continue
            ways = product(asked["sizes"], range(1, asked["devices"] + 1), asked.get("intervals", (1,)))
            usable = [(b, d, k) for b, d, k in ways if b % d == 0 and str(b // d) in costs[0]["micro_batches"]]
            for chosen in product(usable, repeat=stages):
                if sum(d for _, d, _ in chosen) > asked["devices"]:
                    continue
                if not asked.get("per_stage") and len({b for b, _, _ in chosen}) > 1:
                    continue
                if any(max(chosen[a][0], chosen[b][0]) % min(chosen[a][0], chosen[b][0]) for a, b in ends):
                    continue
                yield from _in_flight(model, asked, groups, chosen, order, ends, place, edges, costs)


def _in_flight(
    model: dict[str, Any],
    asked: dict[str, Any],
    groups: Sequence[Sequence[int]],
    chosen: Sequence[tuple[int, int, int]],
    order: Sequence[int],
    ends: set[tuple[int, int]],
    place: dict[int, int],
    edges: Sequence[tuple[int, int, int]],
    costs: Sequence[dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    batch, rate, times_of = asked["mini_batch"], asked["bandwidth"], model["micro_batch_size"]
    stages = []
    for group, (b, d, k) in zip(groups, chosen, strict=True):
        tables = [costs[v]["micro_batches"][str(b // d)] for v in group]
        parameters = sum(costs[v]["parameter_bytes"] for v in group)
        stages.append(
            {
                "micro_batch": b,
                "forward": sum(table["forward"] for table in tables),
                "backward": sum(table["backward"] for table in tables),
                "synchronisation": -(-2 * (d - 1) * parameters * SECOND // (d * rate)),
                "k": k,
                "layers": [model["layers"][v]["name"] for v in group],
                "replicas": d,
            }
        )
    transfers = []
    for a, b in sorted(ends):
        ticks = []
        for sender in (a, b):
            size = chosen[sender][0]
            sent = [
                count + _shared(model, costs, u, v, forward=sender == a)
                for u, v, count in edges
                if (place[u], place[v]) == (a, b)
            ]
            moved = sum(-(-count * size // times_of) for count in sent)
            width = min(chosen[a][1], chosen[b][1])
            ticks.append(asked.get("latency", 0) + -(-moved * SECOND // (rate * width)))
        transfers.append({"source": a, "target": b, "forward": ticks[0], "backward": ticks[1]})
    document = {"mini_batch": batch, "stages": stages, "transfers": transfers}
    counts, held = [0] * len(stages), [0] * len(stages)

    def choose(left: Sequence[int]) -> Iterator[dict[str, Any]]:
        if not left:
            filled = [
                {**stage, "in_flight": count, "memory_bytes": memory}
                for stage, count, memory in zip(stages, counts, held, strict=True)
            ]
            yield {**document, "stages": filled}
            return
        *rest, x = left
        b, d, k = chosen[x]
        needed = k * b
        for source, y in ends:
            if source == x:
                theirs, _, other = chosen[y]
                m = max(b, theirs)
                more = 2 if m < min(k * b, other * theirs) else 1
                needed = max(needed, counts[y] * theirs + max(0, k * b - other * theirs) + m * more)
        fewest = min(-(-needed // b), batch // b)
        kept = sum(costs[v]["micro_batches"][str(b // d)]["memory_bytes"] for v in groups[x])
        fixed = sum(costs[v]["memory_bytes"] for v in groups[x])
        for count in range(fewest, (fewest if asked.get("least") else batch // b) + 1):
            if count >= k and fixed + count * kept <= asked["memory_bytes"]:
                counts[x], held[x] = count, fixed + count * kept
                yield from choose(rest)

    yield from choose(order)


def _shared(model: dict[str, Any], costs: Sequence[dict[str, Any]], u: int, v: int, *, forward: bool) -> int:
    """Return the bytes that an edge moves besides its own, there or back."""
    key, layer, other = ("sync_in", v, u) if forward else ("sync_out", u, v)
    return int(costs[layer].get(key, {}).get(model["layers"][other]["name"], 0))


def _labels(count: int) -> Iterator[tuple[int, ...]]:
    """Go through all partitions of some items, as numbers of groups in the order in which they appear."""
    for label in product(range(count), repeat=count):
        if all(one <= max(label[:i], default=-1) + 1 for i, one in enumerate(label)):
            yield label


def _topological(count: int, ends: set[tuple[int, int]]) -> list[int] | None:
    order: list[int] = []
    while len(order) < count:
        ready = [s for s in range(count) if s not in order and all(a in order for a, b in ends if b == s)]
        if not ready:
            return None
        order.append(ready[0])
    return order


def random_graph_case(
    seed: int, *, most_layers: int = 4, configurations: int = 1
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a model of two to four layers, or up to more, and devices that are often short of memory.

    Of two *configurations*, the second keeps less and takes longer, unlike what :func:`best_iteration` reads.
    """
    draw = random.Random(seed)
    sizes = (1, 2, 4)
    layers = []
    count = draw.randint(2, most_layers)
    for v in range(count):
        rate, start, kept = draw.randint(1, 9), draw.randint(0, 9), draw.choice((0, 10, 40))
        backward = draw.choice((1, 2))
        table = {
            str(s): {
                "forward": start + rate * s,
                "backward": backward * (start + rate * s),
                "memory_bytes": kept * s,
            }
            for s in sizes
        }
        one = {
            "id": "plain",
            "time": table["2"]["forward"] + table["2"]["backward"],
            "parameter_bytes": draw.choice((0, 3, 10)),
            "memory_bytes_per_micro_batch": kept * 2,
            "memory_bytes": draw.choice((0, 50, 100)),
            "micro_batches": table,
        }
        choices = [one]
        if configurations == 2:
            choices.append(_frugal(one))
        layers.append({"name": f"v{v}", "configurations": {"1": choices}})
    edges = [
        {"source": f"v{a}", "target": f"v{b}", "bytes": draw.choice((0, 4, 30))}
        for a in range(count)
        for b in range(a + 1, count)
        if draw.random() < 0.5
    ]
    model = {
        "format": "mtpp-training-model",
        "version": 1,
        "name": f"random {seed}",
        "time_unit": "ps",
        "micro_batch_size": 2,
        "layers": layers,
        "edges": edges,
    }
    asked = {
        "devices": draw.randint(1, 3),
        "memory_bytes": draw.choice((150, 250, 400, 10**6)),
        "bandwidth": SECOND,
        "mini_batch": 4,
        "sizes": sizes,
        "latency": draw.choice((0, 0, 3)),
        "least": draw.random() < 0.2,
        "sequential": draw.random() < 0.3,
        "per_stage": draw.random() < 0.3,
        "intervals": draw.choice(((1,), (1,), (1, 2))),
    }
    return model, asked


def _frugal(one: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration that keeps half as much as another, and passes forward twice."""
    table = {
        size: {**costs, "backward": costs["backward"] + costs["forward"], "memory_bytes": costs["memory_bytes"] // 2}
        for size, costs in one["micro_batches"].items()
    }
    return {
        **one,
        "id": "frugal",
        "time": table["2"]["forward"] + table["2"]["backward"],
        "memory_bytes_per_micro_batch": table["2"]["memory_bytes"],
        "recompute": True,
        "micro_batches": table,
    }
