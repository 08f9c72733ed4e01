"""Builder of networks: ops that follow from the shapes of their inputs, with roofline times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device

ELEMENT_BYTES = 4
"""Tensors are float32."""


@dataclass
class RooflineNetwork:
    """Ops in the order of their making; op v makes tensor v, of ``rows[v]`` × ``columns[v]`` elements.

    Work is the roofline time on *system* in picoseconds: the FLOPs at peak, or what is read and written (inputs,
    parameters, output) at the memory's bandwidth, whichever takes longer. Tensors carry bytes, so that the link's
    bandwidth remains the system's.
    """

    system: Device
    ops: list[Op] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    readers: list[list[str]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of ops so far."""
        return len(self.ops)

    def bytes_of(self, op: int) -> int:
        """Return the size of the op's output."""
        return self.rows[op] * self.columns[op] * ELEMENT_BYTES

    def add(
        self,
        kind: str,
        inputs: Sequence[int],
        *,
        rows: int,
        columns: int,
        flops: int,
        params: int = 0,
        params_read: int | None = None,
    ) -> int:
        """Add an op and return its number.

        Parameters
        ----------
        inputs
            Ops whose outputs it reads, all different.
        params, params_read
            Elements of parameters that it holds, and how many of them one run reads [default: all].
        """
        name = f"{kind.lower()}_{self.size}"
        elements = rows * columns + (params if params_read is None else params_read)
        traffic = elements * ELEMENT_BYTES + sum(self.bytes_of(u) for u in inputs)
        self.ops.append(Op(name, self.system.modelled_work_ps(flops, traffic), kind, params * ELEMENT_BYTES))
        self.rows.append(rows)
        self.columns.append(columns)
        self.readers.append([])
        for u in inputs:
            self.readers[u].append(name)
        return self.size - 1

    def linear(self, x: int, columns: int, *, rows: int = 0, kind: str = "MatMul", taps: int = 1) -> int:
        """Add the product of x with a matrix of parameters, at *taps* places for a convolution."""
        rows = rows or self.rows[x]
        weights = self.columns[x] * columns * taps
        return self.add(kind, [x], rows=rows, columns=columns, flops=2 * rows * weights, params=weights)

    def elementwise(self, kind: str, inputs: Sequence[int], cost: int = 1) -> int:
        """Add an op of *cost* FLOPs per element, shaped like its first input."""
        rows, columns = self.rows[inputs[0]], self.columns[inputs[0]]
        return self.add(kind, inputs, rows=rows, columns=columns, flops=cost * rows * columns)

    def to_graph(self, name: str, metadata: Mapping[str, Any], more_tensors: Sequence[Tensor] = ()) -> CostGraph:
        """Return the network as a graph in picoseconds, whose metadata names the system as well."""
        outputs = [Tensor(f"t{v}", op.name, tuple(self.readers[v]), self.bytes_of(v)) for v, op in enumerate(self.ops)]
        return CostGraph.build(
            name=name,
            time_unit="ps",
            ops=self.ops,
            tensors=[*outputs, *more_tensors],
            metadata={**metadata, "system": self.system.name},
        )
