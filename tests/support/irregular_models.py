"""Random training models that are irregular in every way a file allows, with random systems and options to plan them.

Layers list costs of different sizes of micro-batches, or of none; have different degrees of tensor parallelism and
numbers of configurations, some of which recompute; tensors cost extra by neighbour; and layers and edges stand in the
file in any order. What is drawn is small: oracles go through all plans.
"""

from __future__ import annotations

import random
from typing import Any

SECOND = 10**12

Document = dict[str, Any]


def irregular_model(draw: random.Random, *, most_layers: int = 4, degrees: tuple[int, ...] = (1,)) -> Document:
    """Draw an ``mtpp-training-model`` of up to so many layers, each with configurations for some of the degrees.

    Every layer has a configuration for the first degree.
    """
    count = draw.randint(1, most_layers)
    names = [f"v{v}" for v in range(count)]
    likely = draw.choice((0.2, 0.5, 0.8))
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count) if draw.random() < likely]
    edges = [{"source": names[a], "target": names[b], "bytes": draw.choice((0, 1, 8, 50))} for a, b in pairs]
    of = draw.choice((1, 2, 4))
    shares = draw.random() < 0.2
    layers = []
    for name in names:
        sources = [one["source"] for one in edges if one["target"] == name]
        targets = [one["target"] for one in edges if one["source"] == name]
        configurations = {}
        for t in degrees:
            if t == degrees[0] or draw.random() < 0.5:
                ways = draw.choice((1, 1, 2, 3)) if most_layers <= 4 else draw.choice((1, 1, 1, 2))
                configurations[str(t)] = [
                    _way(draw, c, of, sources, targets, shares=shares, every=t > 1) for c in range(ways)
                ]
        if all(one.get("recompute") for one in configurations[str(degrees[0])]):
            configurations[str(degrees[0])][0]["recompute"] = False
        layers.append({"name": name, "configurations": configurations})
    draw.shuffle(layers)
    draw.shuffle(edges)
    return {
        "format": "mtpp-training-model",
        "version": 1,
        "name": "irregular",
        "time_unit": "ps",
        "micro_batch_size": of,
        "layers": layers,
        "edges": edges,
    }


def _way(
    draw: random.Random, number: int, of: int, sources: list[str], targets: list[str], *, shares: bool, every: bool
) -> Document:
    """Draw a configuration, with costs of some sizes that need not be in proportion, or of none.

    Tensors cost extra for some neighbours, or for *every* one.
    """
    rate, start, kept = draw.randint(0, 12), draw.choice((0, 0, 3)), draw.choice((0, 10, 40))
    ratio = draw.choice((1, 2, 2, 3))
    sizes = [] if draw.random() < 0.25 else [size for size in (1, 2, 3, 4, 8) if draw.random() < 0.45]
    table = {
        str(size): {
            "forward": start + rate * size,
            "backward": ratio * (start + rate * size) + draw.choice((0, 0, 1)),
            "memory_bytes": kept * size,
        }
        for size in sizes
    }
    own = table.get(str(of))
    one = {
        "id": f"c{number}",
        "time": own["forward"] + own["backward"] if own else draw.randint(0, 60),
        "parameter_bytes": draw.choice((0, 3, 10, 100)),
        "memory_bytes_per_micro_batch": kept * of,
        "memory_bytes": draw.choice((0, 7, 50, 100)),
        "recompute": draw.random() < 0.25,
        "micro_batches": table,
    }
    if shares or every:
        one["sync_in"] = {name: draw.choice((0, 5, 60)) for name in sources if every or draw.random() < 0.6}
        one["sync_out"] = {name: draw.choice((0, 5, 60)) for name in targets if every or draw.random() < 0.6}
    return one


def irregular_graph_case(seed: int, *, most_layers: int = 4) -> tuple[Document, Document]:
    """Draw a model and what a planner of stage graphs is asked about it.

    The second has ``devices``, ``memory_bytes``, ``bandwidth``, ``mini_batch``, ``latency``, ``least``, ``sequential``,
    ``per_stage``, ``intervals``, ``data_parallel``, ``recompute``, and ``sizes``, None for those of the model.
    """
    draw = random.Random(f"graph {seed}")
    model = irregular_model(draw, most_layers=most_layers, degrees=(1, 2) if draw.random() < 0.2 else (1,))
    batch = draw.choice((1, 2, 3, 4, 4, 4, 6, 8))
    divisors = [size for size in range(1, batch + 1) if batch % size == 0]
    asked = {
        "devices": draw.randint(1, 3),
        "memory_bytes": draw.choice((60, 150, 250, 400, 10**6, 10**6)),
        "bandwidth": draw.choice((SECOND, SECOND, SECOND // 100)),
        "mini_batch": batch,
        "latency": draw.choice((0, 0, 3)),
        "least": draw.random() < 0.2,
        "sequential": draw.random() < 0.3,
        "per_stage": draw.random() < 0.3,
        "intervals": draw.choice(((1,), (1,), (2,), (1, 2))),
        "data_parallel": draw.random() < 0.85,
        "recompute": draw.random() < 0.8,
        "sizes": sorted(draw.sample(divisors, draw.randint(1, len(divisors)))) if draw.random() < 0.5 else None,
    }
    return model, asked


def permuted(document: Document, seed: int) -> Document:
    """Return the same model with layers and edges in another order."""
    draw = random.Random(seed)
    layers, edges = list(document["layers"]), list(document["edges"])
    draw.shuffle(layers)
    draw.shuffle(edges)
    return {**document, "layers": layers, "edges": edges}


def irregular_line_case(seed: int, *, most_layers: int = 4) -> tuple[Document, Document]:
    """Draw a model and what a planner of pipelines by degrees is asked about it.

    The second has ``devices``, ``memory_bytes``, ``bandwidth``, ``micro_batches``, ``exact``, ``convention``,
    ``data_parallel``, ``tensor_parallel`` and ``recompute``.
    """
    draw = random.Random(f"line {seed}")
    degrees = draw.choice(((1,), (1, 2), (1, 2), (1, 2, 3), (2, 1), (2, 3)))
    asked = {
        "devices": draw.randint(1, 5),
        "memory_bytes": draw.choice((60, 150, 250, 400, 10**6, 10**6)),
        "bandwidth": draw.choice((SECOND, SECOND, SECOND // 100)),
        "micro_batches": draw.choice((1, 2, 3, 4, 6)),
        "exact": draw.random() < 0.3,
        "convention": draw.choice(("paper", "program")),
        "data_parallel": draw.random() < 0.85,
        "tensor_parallel": draw.random() < 0.85,
        "recompute": draw.random() < 0.8,
    }
    return irregular_model(draw, most_layers=most_layers, degrees=degrees), asked


def irregular_level_case(seed: int) -> tuple[Document, Document]:
    """Draw a model and what a planner for several levels of devices is asked about it.

    The second has ``levels``, innermost first, each a number of devices and the bytes a second of its links,
    ``memory_bytes``, ``micro_batches``, ``exact``, ``data_parallel`` and ``recompute``.
    """
    draw = random.Random(f"levels {seed}")
    shape = draw.choice(((2,), (4,), (2, 2), (1, 3), (3, 1), (2, 3), (3, 2), (2, 2, 1), (1, 2, 2), (2, 1, 2)))
    asked = {
        "levels": [[count, SECOND // draw.choice((1, 1, 2, 10, 100))] for count in shape],
        "memory_bytes": draw.choice((60, 150, 250, 400, 10**6, 10**6)),
        "micro_batches": draw.choice((1, 2, 3, 4, 6)),
        "exact": draw.random() < 0.3,
        "data_parallel": draw.random() < 0.85,
        "recompute": draw.random() < 0.8,
    }
    degrees = draw.choice(((1,), (1, 2), (1, 2), (2, 1)))
    return irregular_model(draw, most_layers={1: 4, 2: 3, 3: 2}[len(shape)], degrees=degrees), asked


def irregular_split_case(seed: int) -> tuple[Document, Document]:
    """Draw a graph or a model of layers, and what a planner of split points and schedules is asked about it.

    The second has ``devices``, ``micro_batches``, ``bandwidth``, ``memory`` and ``speed`` (of each device, or None),
    ``loops``, ``loop_batch``, ``prefetch`` (None for any), ``latency`` and ``order``.
    """
    draw = random.Random(f"split {seed}")
    model = irregular_model(draw, most_layers=5) if draw.random() < 0.4 else _graph(draw)
    devices = draw.choice((1, 2, 2, 3))
    asked = {
        "devices": devices,
        "micro_batches": draw.randint(1, 3),
        "bandwidth": SECOND,
        "memory": None,
        "speed": [draw.choice((1, 2, 3)) for _ in range(devices)] if draw.random() < 0.2 else None,
        "loops": draw.choice(((1,), (1, 2), (2,), (1, 2, 3))),
        "loop_batch": draw.choice(("divisors", "divisors", "any")),
        "prefetch": sorted((draw.randint(0, 2) for _ in range(devices)), reverse=True) if draw.random() < 0.2 else None,
        "latency": draw.choice((0, 0, 3)),
        "order": draw.choice(("file", "search")),
    }
    if draw.random() < 0.5:
        most = draw.choice((30, 80, 150, 300, 600))
        asked["memory"] = [most if draw.random() < 0.7 else draw.choice((most, most // 2, 2 * most))] * devices
        if draw.random() < 0.3:
            asked["memory"] = [draw.choice((most, most // 2, 2 * most)) for _ in range(devices)]
    return model, asked


def _graph(draw: random.Random) -> Document:
    """Draw an ``mtpp-graph`` whose ops and tensors stand in any order."""
    count = draw.randint(1, 5)
    names = [f"o{v}" for v in range(count)]
    ops = []
    for name in names:
        op = {"name": name, "work": draw.choice((0, 1, 3, 5, 13))}
        for key, values in (("backward", (0, 2, 13)), ("param_bytes", (0, 3, 20)), ("kept_bytes", (0, 5, 20))):
            if draw.random() < 0.4:
                op[key] = draw.choice(values)
        ops.append(op)
    tensors = []
    for v in range(count - 1):
        for part in range(draw.choice((1, 1, 1, 2, 0))):
            readers = [w for w in range(v + 1, count) if draw.random() < 0.5]
            one = {"name": f"t{v}.{part}", "producer": names[v], "consumers": [names[w] for w in readers]}
            one["bytes"] = draw.choice((0, 3, 10, 40))
            if draw.random() < 0.5:
                one["transfer"] = draw.choice((0, 1, 5, 20))
            draw.shuffle(one["consumers"])
            tensors.append(one)
    draw.shuffle(ops)
    draw.shuffle(tensors)
    return {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ps", "ops": ops, "tensors": tensors}
