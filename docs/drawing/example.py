"""Small graphs of the pages, read from their files, with the bounds that the command proves of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mtpp
from docs.drawing.canvas import Point

FOLDER = Path(__file__).resolve().parent.parent / "bounds"


@dataclass(frozen=True)
class DrawnTensor:
    """A tensor: its producer and consumers by name, and its transfer in ticks."""

    name: str
    producer: str
    consumers: tuple[str, ...]
    transfer: int

    @property
    def touching(self) -> tuple[str, ...]:
        """Producer and consumers."""
        return self.producer, *self.consumers


@dataclass(frozen=True)
class Example:
    """A graph in ``docs/bounds``, cut into at most k stages.

    Attributes
    ----------
    name
        Of the file, without its ending.
    """

    name: str
    k: int

    @property
    def path(self) -> Path:
        """Its file."""
        return FOLDER / f"{self.name}.json"

    @cached_property
    def model(self) -> Any:
        """The graph as read."""
        return mtpp.read(str(self.path))

    @cached_property
    def ops(self) -> tuple[str, ...]:
        """Names in file order."""
        return tuple(self.model.graph.op_names)

    @cached_property
    def work(self) -> dict[str, int]:
        """Ticks by op."""
        return dict(zip(self.ops, self.model.instance(self.k).work.tolist(), strict=True))

    @cached_property
    def tensors(self) -> tuple[DrawnTensor, ...]:
        """Tensors in file order."""
        graph = self.model.graph
        found = []
        for t, transfer in enumerate(self.model.instance(self.k).transfer.tolist()):
            readers = graph.consumers[graph.consumer_offsets[t] : graph.consumer_offsets[t + 1]]
            producer = self.ops[graph.tensor_producer[t]]
            found.append(DrawnTensor(graph.tensor_names[t], producer, tuple(self.ops[v] for v in readers), transfer))
        return tuple(found)

    @cached_property
    def places(self) -> dict[str, Point]:
        """Where each op is drawn, in units of the distance between two of them."""
        return {name: (x, y) for name, (x, y) in self.model.graph.metadata["places"].items()}

    def bound(self, name: str) -> dict[str, Any]:
        """Return the row that ``mtpp bound --bounds NAME --format json`` prints, with ``lower`` and ``lower_proof``."""
        (row,) = mtpp.bound(str(self.path), self.k, bounds=[name]).document()["rows"]
        if row["lower_method"] != name:
            raise ValueError(f"{self.name}: {row['lower_method']} is above {name}")
        return dict(row)

    @cached_property
    def best(self) -> dict[str, int]:
        """A partition that no other one beats, by op."""
        plan = mtpp.partition(str(self.path), self.k)
        if not plan.optimal:
            raise ValueError(f"{self.name}: no partition was proven to be the best")
        return plan.assignment

    def cut(self, stage: Sequence[str]) -> list[DrawnTensor]:
        """Return the tensors that a set of ops cuts."""
        inside = set(stage)
        return [one for one in self.tensors if 0 < len(inside & set(one.touching)) < len(set(one.touching))]

    def cost(self, stage: Sequence[str]) -> int:
        """Return f(S): work, and the transfers of the tensors that are cut."""
        return sum(self.work[op] for op in stage) + sum(one.transfer for one in self.cut(stage))


LADDER = Example("ladder", 3)
