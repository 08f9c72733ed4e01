"""State that a model keeps between requests: inputs of its graph that come out of it again, such as a key/value cache.

A stage that reads a state holds it, once for each sequence that is served at a time. The state is no live input there:
it counts as what the stage keeps, whether the stage runs or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.weights import NO_WEIGHTS, Weight, Weights


class State(NamedTuple):
    """One state, as a reader hands it over.

    Attributes
    ----------
    input, output
        Names of the input of the graph that brings it and of the tensor that takes it out; one name where it is
        written in place.
    bytes
        Of one sequence.
    readers
        Names of ops.
    """

    name: str
    input: str
    output: str
    bytes: int
    readers: Sequence[str]


@dataclass(frozen=True, eq=False)
class States:
    """States of a graph in the order of the file.

    Attributes
    ----------
    held
        Their names, bytes and readers.
    inputs, outputs
        Names of the inputs that bring them, and of the tensors that take them out.
    """

    held: Weights
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def build(cls, rows: Sequence[State], op_names: Sequence[str]) -> States:
        """Check rows and lay them out.

        Raises
        ------
        InputError
            As :meth:`Weights.build`, and on an empty name of an input or output and one that two states have; *where*
            is a JSON pointer (``/states/3/input``).
        """
        if not rows:
            return NO_STATES
        for key in ("input", "output"):
            seen: set[str] = set()
            for i, row in enumerate(rows):
                name = getattr(row, key)
                if not name or name in seen:
                    problem = f"another state has the {key} {name!r}" if name else "empty name"
                    raise InputError(problem, where=f"/states/{i}/{key}")
                seen.add(name)
        held = Weights.build([Weight(row.name, row.bytes, row.readers) for row in rows], op_names, "states")
        return cls(held, tuple(row.input for row in rows), tuple(row.output for row in rows))

    def rows(self, op_names: Sequence[str]) -> list[State]:
        """Return one row a state, with the names of its readers."""
        rows = zip(self.held.rows(op_names), self.inputs, self.outputs, strict=True)
        return [State(row.name, source, target, row.bytes, row.readers) for row, source, target in rows]

    def by_name(self, op_names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return ``{"input", "output", "bytes", "readers"}`` of each state by its name."""
        found = {}
        for row in self.rows(op_names):
            found[row.name] = {"input": row.input, "output": row.output, "bytes": row.bytes, "readers": [*row.readers]}
        return found

    def of_sequences(self, count: int) -> Weights:
        """Return what stages hold of each state for that many sequences at a time.

        Raises
        ------
        InputError
            If all of them reach 2^61 bytes.
        """
        total = sum(self.held.bytes.tolist()) * count
        if total >= _LARGEST:
            raise InputError(f"{count:,} sequences keep states of 2^61 bytes or more", parameter="sequences")
        held = self.held
        if count == 1 or not held.names:
            return held
        return Weights.of(held.names, (held.bytes * np.int64(count)).tolist(), held.reader_lists())


_LARGEST = 2**61

NO_STATES = States(NO_WEIGHTS, (), ())
"""Of a graph that keeps nothing between requests."""


def live_inputs(inputs: Weights, states: States) -> Weights:
    """Return the inputs that are no states."""
    kept = set(states.inputs)
    if kept.isdisjoint(inputs.names):
        return inputs
    columns = zip(inputs.names, inputs.bytes.tolist(), inputs.reader_lists(), strict=True)
    rows = [(name, size, readers) for name, size, readers in columns if name not in kept]
    return Weights.of([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
