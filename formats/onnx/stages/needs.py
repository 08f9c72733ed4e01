"""Contents of each stage: its nodes, folded ones, stored tensors, small constants, and tensors of earlier stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from mtpp.errors import InputError
from mtpp.formats.onnx.node_view import kind_of
from mtpp.formats.onnx.scope import RANK, Scope
from mtpp.formats.onnx.stages.units import Unit
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.topology import describe
from mtpp.formats.onnx.values import Array

LARGEST_IDENTITY = 1 << 24
"""Elements of an identity matrix that is made because only the shape of its argument is known."""


@dataclass
class Needs:
    """What one stage is made of.

    Attributes
    ----------
    units
        Indices of its units and of the folded ones that it has a copy of.
    stored
        Names of dense and sparse initializers.
    values
        Constants that the reading knows: sizes, mostly, that the file computes from the shapes of activations.
    model_inputs
        Inputs of the whole model.
    received
        The stage that makes each tensor which comes from another one.
    """

    units: set[int] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    values: dict[str, Array] = field(default_factory=dict)
    model_inputs: set[str] = field(default_factory=set)
    received: dict[str, int] = field(default_factory=dict)

    def has(self, name: str, units: Sequence[Unit]) -> bool:
        """Say whether the stage itself holds or computes *name*."""
        return name in self.stored or name in self.values or any(name in units[i].outputs for i in self.units)


class Sources:
    """Where every tensor of the main graph comes from.

    Parameters
    ----------
    units
        In topological order.
    stored
        Names of initializers.
    inputs
        Names of the model's inputs.
    optionals
        Names of tensors that are optionals.
    beside
        Names of initializers that lie in another file.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        scope: Scope,
        stored: Collection[str],
        inputs: Collection[str],
        source: str,
        optionals: Collection[str] = (),
        beside: Collection[str] = (),
    ) -> None:
        self.units = units
        self.maker = {name: i for i, unit in enumerate(units) for name in unit.outputs}
        self._scope = scope
        self._stored = stored
        self._inputs = inputs
        self._source = source
        self._optionals = optionals
        self._beside = beside

    def is_constant(self, name: str) -> bool:
        """Say whether every stage can hold or compute *name* by itself."""
        return name in self._stored or (name in self.maker and self.units[self.maker[name]].stage is None)

    def needs_of(self, stage: int, members: Collection[int]) -> Needs:
        """Return what a stage needs to run the units *members*."""
        needs = Needs(units=set(members))
        waiting: list[tuple[str, Unit | None]] = [
            (name, self.units[i]) for i in sorted(members) for name in self.units[i].reads
        ]
        self._fill(needs, stage, waiting)
        return needs

    def add(self, needs: Needs, stage: int, name: str) -> None:
        """Let a stage hold or compute a constant that none of its units reads."""
        self._fill(needs, stage, [(name, None)])

    def _fill(self, needs: Needs, stage: int, waiting: list[tuple[str, Unit | None]]) -> None:
        done: set[str] = set()
        while waiting:
            name, reader = waiting.pop()
            if name in done:
                continue
            done.add(name)
            maker = self.maker.get(name)
            if name in self._beside and (value := self._looked_at(name)) is not None:
                needs.values[name] = value
            elif name in self._stored:
                needs.stored.add(name)
            elif maker is None:
                if name in self._inputs:
                    needs.model_inputs.add(name)
            elif self.units[maker].stage is not None:
                self._receive(needs, stage, name, reader)
            elif (value := self._value(name, self.units[maker])) is not None:
                needs.values[name] = value
            elif maker not in needs.units:
                needs.units.add(maker)
                waiting += [(read, self.units[maker]) for read in self.units[maker].reads]
        # A copied node makes all its outputs.
        made = {name for i in needs.units for name in self.units[i].outputs}
        for name in made & needs.values.keys():
            del needs.values[name]

    def _looked_at(self, name: str) -> Array | None:
        """Return the contents of an initializer that sizes depend on: ONNX Runtime wants them in the file itself."""
        known = self._scope.find(name)
        return None if known is None else known.certain_value

    def _receive(self, needs: Needs, stage: int, name: str, reader: Unit | None) -> None:
        made_by = self.units[self.maker[name]].stage
        assert made_by is not None
        if made_by > stage:
            raise InputError(
                f"it reads {name!r}, if only its shape, which stage {made_by} makes after this one",
                source=self._source,
                where=f"stage {stage}" + (f", {describe(reader.node)}" if reader is not None else ""),
                remedy="keep the two in one stage (mtpp partition --together)",
            )
        if made_by < stage:
            self._refuse_undeclared(name)
            needs.received[name] = made_by

    def _refuse_undeclared(self, name: str) -> None:
        """Raise for a tensor that no graph can declare as its input.

        Of an optional the reading knows what is in it, not that it is one; an input without a number of axes is none.
        """
        known = self._scope.find(name)
        if name in self._optionals:
            problem = f"tensor {name!r} is an optional, which cannot go from one stage to another"
        elif known is not None and RANK in known.open_axes:
            problem = f"only a run tells the number of axes of tensor {name!r}, which a stage has to declare"
        else:
            return
        raise InputError(
            problem,
            source=self._source,
            where="tensors between stages",
            remedy="keep the ops that it connects in one stage (mtpp partition --together)",
        )

    def _value(self, name: str, unit: Unit) -> Array | None:
        """Return the contents of a folded tensor if the stage is to hold them, None if it is to compute them.

        Whole numbers are held, and so is what comes from the shape of an activation, if they are certain. Other numbers
        are computed, by the same kernels as in the whole model.
        """
        known = self._scope.find(name)
        value = known.certain_value if known is not None else None
        if value is not None and value.dtype.kind in "iub":
            return value
        if kind_of(unit.node.domain, unit.node.op_type) == "EyeLike" and not self.is_constant(unit.node.input[0]):
            return self._identity(unit.node)
        return None

    def _identity(self, node: onnx.NodeProto) -> Array | None:
        known, argument = (self._scope.find(name) for name in (node.output[0], node.input[0]))
        kind = known.type if known is not None else None
        if not isinstance(kind, TensorType) or kind.rank != 2 or kind.count > LARGEST_IDENTITY or argument is None:
            return None
        offset = next((attribute.i for attribute in node.attribute if attribute.name == "k"), 0)
        dtype = helper.tensor_dtype_to_np_dtype(kind.dtype)
        rows, columns = kind.shape
        return np.eye(rows, columns, k=int(offset)).astype(dtype)


def readers_of(needs: Mapping[int, Needs]) -> dict[str, list[int]]:
    """Return the stages that receive each tensor, in order."""
    readers: dict[str, list[int]] = {}
    for stage in sorted(needs):
        for name in needs[stage].received:
            readers.setdefault(name, []).append(stage)
    return readers
