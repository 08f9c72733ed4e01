"""Gradients that training computes in each op of an exported program, from the parameters that require them.

A tensor has gradients if it follows from a parameter that does, by ops through which gradients pass; an op has a
backward pass if gradients of results of the program come to what it makes. Inputs of a program have none.
"""

from __future__ import annotations

from collections.abc import Iterable

from mtpp.formats.modelled.op_record import OpTraining
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.movement import CREATION_LIKE
from mtpp.formats.torch_export.in_place import returned, written
from mtpp.formats.torch_export.program import Call, Program
from mtpp.formats.torch_export.signature import PARAMETER
from mtpp.formats.torch_export.walk import RANDOM, Walk

_STOPPING = CREATION_LIKE | RANDOM - {"bernoulli"} | {"detach", "detach_copy"}
"""Operators whose results have no gradients, whatever they read."""


def set_training(program: Program, walk: Walk) -> None:
    """Say of each op of a finished walk which gradients training computes in it; nothing where the program does not.

    Notes
    -----
    O(size of the program). Tensors that share a storage that is written in place count as one: so an op may be said to
    have a backward pass that only an older version of its result has.
    """
    if program.trainable is None:
        return
    passes = _Passes(program, walk, program.trainable)
    passes.forth()
    passes.back()
    for record, call in zip(walk.record.ops, walk.calls, strict=True):
        record.training = passes.training(call)


class _Passes:
    """Gradients in a program: the tensors that have one, and their ways.

    Tensors go by the name of their storage where that is written in place.
    """

    def __init__(self, program: Program, walk: Walk, trainable: Iterable[str]) -> None:
        self._program, self._walk = program, walk
        self._views = [walk.view(call) for call in program.calls]
        self._has: set[str] = set(trainable)
        self._comes: set[str] = set()
        self._weights = self._named(one.name for one in program.inputs if one.kind == PARAMETER)
        self._trainable = self._named(trainable)
        self._running: set[str] = set()
        self._storage = self._storages()

    def _storages(self) -> dict[str, str]:
        """Return the storage of each tensor that shares one which is written."""
        source: dict[str, str] = {}
        changed: set[str] = set()
        for view in self._views:
            for name, shared in zip(view.call.outputs, self._walk.shared(view), strict=True):
                if name is not None and shared is not None:
                    source[name] = source.get(shared, shared)
            changed |= {source.get(name, name) for name in written(view)}
        return {name: root for name, root in source.items() if root in changed}

    def _named(self, parameters: Iterable[str]) -> set[str]:
        """Return the names in the model of tensors that are stored, of tied ones the first."""
        return {self._walk.constants[name].name for name in parameters}

    def _at(self, name: str) -> str:
        return self._storage.get(name, name)

    def _floating(self, name: str) -> bool:
        return self._program.types[name].floating

    def forth(self) -> None:
        """Find the tensors that have gradients."""
        for view in self._views:
            call, read = view.call, list(view.call.tensors())
            if not call.gradients or view.kind in _STOPPING:
                continue
            if any(self._at(name) in self._has for name in read):
                made = [*(name for name in call.outputs if name is not None), *returned(view)]
                self._has |= {self._at(name) for name in made if self._floating(name)}

    def back(self) -> None:
        """Find the calls that gradients of results come to."""
        program = self._program
        self._comes |= {self._at(name) for name in program.outputs if self._floating(name)} & self._has
        for view in reversed(self._views):
            if self._passes(view):
                self._running.add(view.call.name)
                self._comes |= {self._at(name) for name in view.call.tensors()} & self._has

    def _passes(self, view: CallView) -> bool:
        if not view.call.gradients or view.kind in _STOPPING:
            return False
        made = [*(name for name in view.call.outputs if name is not None), *returned(view)]
        return any(self._at(name) in self._comes for name in made)

    def training(self, call: Call) -> OpTraining:
        """Return the gradients that an op computes."""
        found, constants = OpTraining(), self._walk.constants
        runs = call.name in self._running
        for name in call.tensors():
            constant = constants.get(name)
            if constant is None:
                if runs and self._at(name) in self._has:
                    found.inputs.add(name)
                continue
            stored = {key: size for key, size in constant.stored.items() if key in self._weights}
            found.weights |= stored
            if runs and self._at(name) in self._has:
                found.trained |= {key: size for key, size in stored.items() if key in self._trainable}
        return found
