"""Memory of layers at any context and number of sequences, added up from the columns of a document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.checker.capacity.shape import PREFILL
from mtpp.checker.graph import TickGraph


@dataclass(frozen=True)
class Load:
    """Tokens of a sequence, sequences held, and sequences in a step."""

    context: int
    sequences: int
    batch: int


@dataclass(frozen=True)
class LayerColumns:
    """Columns of the layers of a chain, at one degree of tensor parallelism in one phase."""

    row: Mapping[str, Any]

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.row["weights"])

    def caches(self, context: int) -> list[int]:
        """Return the bytes that each layer keeps of one sequence; an encoder reads as many tokens.

        Elements of a type take a number of bits by 32 of them, and all of a layer are rounded up to bytes.
        """
        bits, sizes = self.row["bits_of_32_elements"], []
        for per_token, window, per_source_token, states in self.row["caches"]:
            tokens = context if window is None else min(context, window)
            sizes.append(-(-(per_token * tokens + per_source_token * context) * bits // 256) + states)
        return sizes

    def passing(self, load: Load) -> list[int]:
        """Return the bytes of each tensor of working memory in a step."""
        tokens = load.context if self.row["phase"] == PREFILL else 1
        return [load.batch * (tokens * per_token + rest) for per_token, rest, _, _ in self.row["passing"]]

    def at(self, load: Load) -> LayerSizes:
        """Return the sizes at a load."""
        shared = [(size, readers) for size, readers in self.row["shared"]]
        ends = [(maker, readers) for _, _, maker, readers in self.row["passing"]]
        kept = [load.sequences * size for size in self.caches(load.context)]
        own = [a + b for a, b in zip(self.row["weights"], kept, strict=True)]
        return LayerSizes(own, shared, list(zip(self.passing(load), ends, strict=True)))

    def difference(self, graph: TickGraph, load: Load) -> str | None:
        """Return the first thing in which a graph differs from the columns at a load; None where nothing does."""
        n = graph.op_count
        if self.count != n:
            return f"{self.count} layers, the graph has {n}"
        if graph.order != list(range(n)):
            return "its ops are not in the order of the pipeline"
        states: defaultdict[int, int] = defaultdict(int)
        for _, size, readers in graph.states:
            if len(readers) != 1:
                return "several layers read one cache"
            states[readers[0]] += size
        tensors = zip(graph.tensor_bytes, graph.producer, graph.consumers, strict=True)
        live = [(size or 0, maker, tuple(sorted(readers))) for size, maker, readers in tensors]
        live += [(size, -1, tuple(sorted(readers))) for _, size, readers in graph.live_inputs]
        ends = [(maker, tuple(readers)) for _, _, maker, readers in self.row["passing"]]
        stated = [(size, *end) for size, end in zip(self.passing(load), ends, strict=True)]
        shared = [(size, tuple(readers)) for size, readers in self.row["shared"]]
        for name, mine, own in (
            ("weights", self.row["weights"], graph.own_bytes),
            ("caches", self.caches(load.context), [states[v] for v in range(n)]),
            ("shared weights", sorted(shared), sorted((size, tuple(sorted(r))) for _, size, r in graph.weights)),
            ("working memory", _without_empty(stated), _without_empty(live)),
            ("results", [], sorted(graph.results)),
        ):
            if mine != own:
                return f"the {name} of the layers differ from those of the graph"
        return None


def _without_empty(rows: Sequence[tuple[int, int, tuple[int, ...]]]) -> list[tuple[int, int, tuple[int, ...]]]:
    return sorted(row for row in rows if row[0])


@dataclass(frozen=True)
class LayerSizes:
    """Bytes of layers at a load.

    Attributes
    ----------
    own
        Weights and caches of each.
    shared
        Weights that several read.
    live
        Tensors of working memory, each with its maker, -1 for tensors inside a layer, and its readers.
    """

    own: Sequence[int]
    shared: Sequence[tuple[int, Sequence[int]]]
    live: Sequence[tuple[int, tuple[int, Sequence[int]]]]

    def kept(self, start: int, stop: int) -> int:
        """Return the bytes of weights and caches of a stage of the layers from *start* to before *stop*."""
        shared = sum(size for size, readers in self.shared if any(start <= v < stop for v in readers))
        return sum(self.own[start:stop]) + shared

    def peak(self, start: int, stop: int) -> int:
        """Return the most bytes live at once while the layers of a stage run in order.

        A tensor made in the stage is live until its last reader there, or to the end if a later stage reads it; one
        from outside from its first reader in the stage to the last.
        """
        change = [0] * (stop - start + 1)
        for size, (maker, readers) in self.live:
            inside = [v for v in readers if start <= v < stop]
            if start <= maker < stop:
                begin = maker
                end = stop - 1 if len(inside) < len(readers) else max([maker, *inside])
            elif inside:
                begin, end = inside[0], inside[-1]
            else:
                continue
            change[begin - start] += size
            change[end - start + 1] -= size
        most = live = 0
        for step in change:
            live += step
            most = max(most, live)
        return most
