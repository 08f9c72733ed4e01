"""A second simulator of stage graphs, by a clock and a queue of events; and random stage graphs.

It is written from the rules in ``docs/simulation.md`` (*Rules*), and shares nothing with the one under test.
"""

from __future__ import annotations

import heapq
import random
from typing import Any


def simulate_events(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return iteration and figures of the stages of an ``mtpp-stage-graph``, None if passes wait for each other."""
    stages, batch = document["stages"], document["mini_batch"]
    orders = [order_of(stage, batch) for stage in stages]
    edges = [(one["source"], one["target"]) for one in document["transfers"]]
    takes = {(one["source"], one["target"], "F"): one["forward"] for one in document["transfers"]}
    takes |= {(one["target"], one["source"], "B"): one["backward"] for one in document["transfers"]}
    readers = {
        (s, kind): [b if kind == "F" else a for a, b in edges if (a if kind == "F" else b) == s]
        for s in range(len(stages))
        for kind in "FB"
    }
    arrived: set[tuple[int, int, str, int]] = set()  # from, to, kind, micro-batch
    ended: set[tuple[int, str, int]] = set()
    place = [0] * len(stages)
    running = [False] * len(stages)
    queues: dict[tuple[int, int, str], list[int]] = {one: [] for one in takes}
    moving: set[tuple[int, int, str]] = set()
    starts: dict[tuple[int, str, int], int] = {}
    ends: dict[tuple[int, str, int], int] = {}
    events: list[tuple[int, int, tuple[Any, ...]]] = []
    number = now = 0

    def later(time: int, *what: Any) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (time, number, what))

    def ready(s: int, kind: str, j: int) -> bool:
        if kind == "B" and (s, "F", j) not in ended:
            return False
        last_sample = j * stages[s]["micro_batch"]
        for a, b in edges:
            sender = a if kind == "F" else b
            if (b if kind == "F" else a) != s:
                continue
            size = stages[sender]["micro_batch"]
            needed = (i for i in range(1, batch // size + 1) if (i - 1) * size + 1 <= last_sample)
            if any((sender, s, kind, i) not in arrived for i in needed):
                return False
        return True

    def begin() -> None:
        for s, order in enumerate(orders):
            if not running[s] and place[s] < len(order) and ready(s, *order[place[s]]):
                kind, j = order[place[s]]
                running[s] = True
                starts[s, kind, j] = now
                later(now + stages[s]["forward" if kind == "F" else "backward"], "pass", s, kind, j)
        for channel, queue in queues.items():
            if queue and channel not in moving:
                moving.add(channel)
                later(now + takes[channel], "message", channel, queue.pop(0))

    begin()
    while events:
        now, _, what = heapq.heappop(events)
        if what[0] == "pass":
            _, s, kind, j = what
            running[s] = False
            place[s] += 1
            ended.add((s, kind, j))
            ends[s, kind, j] = now
            for other in readers[s, kind]:
                queues[s, other, kind].append(j)
        else:
            _, channel, j = what
            moving.discard(channel)
            arrived.add((*channel, j))
        begin()
    if any(at < len(order) for at, order in zip(place, orders, strict=True)):
        return None
    figures = []
    for s, order in enumerate(orders):
        kept = peak = 0
        for kind, _ in order:
            kept += 1 if kind == "F" else -1
            peak = max(peak, kept)
        figures.append(
            {
                "first_forward_start": min(t for (a, kind, _), t in starts.items() if (a, kind) == (s, "F")),
                "first_backward_start": min(t for (a, kind, _), t in starts.items() if (a, kind) == (s, "B")),
                "last_forward_end": max(t for (a, kind, _), t in ends.items() if (a, kind) == (s, "F")),
                "last_backward_end": max(t for (a, kind, _), t in ends.items() if (a, kind) == (s, "B")),
                "busy": sum(stages[s]["forward" if kind == "F" else "backward"] for kind, _ in order),
                "peak_in_flight": peak,
            }
        )
    last = [max(t for (a, *_), t in ends.items() if a == s) for s in range(len(stages))]
    synchronised = [end + stage.get("synchronisation", 0) for end, stage in zip(last, stages, strict=True)]
    return {"iteration": max(synchronised), "stages": figures}


def order_of(stage: dict[str, Any], batch: int) -> list[tuple[str, int]]:
    """Return the passes of a stage in their order."""
    if "order" in stage:
        return [(word[0], int(word[1:])) for word in stage["order"].split()]
    count, k = batch // stage["micro_batch"], stage.get("k", 1)
    forward, backward = list(range(1, count + 1)), list(range(1, count + 1))
    order = [("F", forward.pop(0)) for _ in range(min(stage["in_flight"], count))]
    while forward:
        order += [("B", backward.pop(0)) for _ in range(min(k, len(backward)))]
        order += [("F", forward.pop(0)) for _ in range(min(k, len(forward)))]
    return order + [("B", j) for j in backward]


def random_stage_graph(seed: int, *, shuffled: bool = False) -> dict[str, Any]:
    """Draw a stage graph of up to six stages; with *shuffled*, orders are any, so that many never end."""
    draw = random.Random(seed)
    batch = draw.choice((4, 8, 12, 16))
    sizes = [size for size in (1, 2, 3, 4, 6, 8) if batch % size == 0]
    stages = []
    for _ in range(draw.randint(1, 6)):
        size = draw.choice(sizes)
        stage = {"micro_batch": size, "forward": draw.randint(0, 9), "backward": draw.randint(0, 19)}
        stage["synchronisation"] = draw.choice((0, 0, 5))
        count = batch // size
        if shuffled:
            words = [f"{kind}{j}" for kind in "FB" for j in range(1, count + 1)]
            if draw.random() < 0.8:
                words = [f"F{j}" for j in _shuffled(draw, count)] + [f"B{j}" for j in _shuffled(draw, count)]
            else:
                draw.shuffle(words)
            stages.append({**stage, "order": " ".join(words)})
        else:
            stages.append({**stage, "in_flight": draw.randint(1, count + 1), "k": draw.choice((1, 1, 1, 2, 3))})
    transfers = [
        {"source": a, "target": b, "forward": draw.choice((0, 0, 1, 3)), "backward": draw.choice((0, 0, 1, 3))}
        for a in range(len(stages))
        for b in range(a + 1, len(stages))
        if draw.random() < 0.4
    ]
    return {
        "format": "mtpp-stage-graph",
        "version": 1,
        "time_unit": "ps",
        "mini_batch": batch,
        "stages": stages,
        "transfers": transfers,
    }


def _shuffled(draw: random.Random, count: int) -> list[int]:
    numbers = list(range(1, count + 1))
    if draw.random() < 0.3:
        draw.shuffle(numbers)
    return numbers
