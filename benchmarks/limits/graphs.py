"""Graphs that are hard on limits, written row by row: chains, layered, wide and dense ones of up to a million ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

SHAPES = ("chain", "layered", "wide", "dense")

DENSE_OPS = 2_500
_TENSORS_PER_DENSE_OP = 4
_READERS = 300
"""Of each tensor of a dense graph: three million pins in all."""

Row = tuple[int, Sequence[int]]
"""Producer and consumers of a tensor."""


def write_graph(shape: str, n: int, path: Path) -> None:
    """Write a graph of *n* ops of one of :data:`SHAPES` in the native format; the same on every run."""
    if shape == "layered":
        from mtpp.datasets.layered import layered_network
        from mtpp.formats.graphs.native import write_native

        path.write_text(write_native(layered_network(n, tensors=n + n // 2)), encoding="utf-8")
        return
    random = np.random.default_rng([SHAPES.index(shape), n])
    rows = {"chain": _chain, "wide": _wide, "dense": _dense}[shape](n, random)
    work = random.integers(1_000_000, 100_000_000, n).tolist()
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"format": "mtpp-graph", "version": 1, "name": "{shape}-{n}", "time_unit": "ps",\n"ops": [\n')
        file.write(",\n".join(f'{{"name": "o{v}", "work": {ticks}}}' for v, ticks in enumerate(work)))
        file.write('\n],\n"tensors": [\n')
        for t, (producer, readers) in enumerate(rows):
            names = ", ".join(f'"o{v}"' for v in readers)
            size = int(random.integers(1_000, 1_000_000))
            end = ",\n" if t else ""
            file.write(f'{end}{{"name": "t{t}", "producer": "o{producer}", "consumers": [{names}], "bytes": {size}}}')
        file.write("\n]}\n")


def _chain(n: int, random: np.random.Generator) -> Iterator[Row]:
    for v in range(n - 1):
        yield v, (v + 1,)


def _wide(n: int, random: np.random.Generator) -> Iterator[Row]:
    """Give the tensors of a source that all ops but the last read from, and of a last one that reads from all."""
    yield 0, range(1, n - 1)
    for v in range(1, n - 1):
        yield v, (n - 1,)


def _dense(n: int, random: np.random.Generator) -> Iterator[Row]:
    """Give several tensors of each op, each read by hundreds of the ops behind it."""
    for v in range(n - 1):
        for _ in range(_TENSORS_PER_DENSE_OP):
            behind = n - 1 - v
            chosen = random.choice(behind, min(behind, _READERS), replace=False)
            yield v, (v + 1 + np.sort(chosen)).tolist()


def write_training_model(layers: int, path: Path) -> None:
    """Write a transformer of so many layers to be trained."""
    from mtpp.datasets.transformer_training import transformer_training
    from mtpp.formats.training.native import write_training_model as written
    from mtpp.machine.presets import load_device

    path.write_text(written(transformer_training(layers=layers, system=load_device("a100"))), encoding="utf-8")
