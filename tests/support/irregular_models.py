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
