"""Ops that write in place: which others have to run beside them, and which before them.

Every tensor has a storage, which views share. A write makes a new version of it, which the result of the op that
writes stands for. A stage that gets a tensor from another one gets a copy, so an op may run anywhere as long as it
reads the version that it would have read in the whole program:

* An op that reads the version before a write must not run in a later stage than the write.
* An op that reads an older name of the storage after a write runs beside all that touched the storage before.
* Parameters, buffers and inputs of the program outlive an iteration: all ops that touch one that is written run
  together, and with them the op whose result it becomes at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.program import TensorRef

_AUGMENTED = frozenset(("__iand__", "__ilshift__", "__ior__", "__irshift__", "__ixor__"))
"""Operators of ``&=`` and the like on tensors, which write the left one."""

_RUNNING_STATISTICS = ("running_mean", "running_var")
_UPDATES_STATISTICS = frozenset(
    (
        *("batch_norm", "_batch_norm_impl_index", "cudnn_batch_norm", "instance_norm", "miopen_batch_norm"),
        *("native_batch_norm", "_native_batch_norm_legit"),
    )
)
_OBSERVED = ("running_min", "running_max", "scale", "zero_point")
_WRITTEN_OPERANDS = {
    "_batch_norm_with_update": _RUNNING_STATISTICS,
    **dict.fromkeys(
        ("batch_norm_gather_stats", "batch_norm_gather_stats_with_counts", "batch_norm_update_stats"),
        _RUNNING_STATISTICS,
    ),
    "_fused_moving_avg_obs_fq_helper": _OBSERVED,
    "fused_moving_avg_obs_fake_quant": _OBSERVED,
    "rrelu_with_noise": ("noise",),
    "rrelu_with_noise_": ("self", "noise"),
}
"""Operands that operators write whose names do not show it."""

_PAIRS_OF_RESULTS = {
    "dim_max": ("max", "max_values"),
    "dim_min": ("min", "min_indices"),
    "dim_values": ("values", "indices"),
    "values": ("values", "indices"),
    "values_stable": ("values", "indices"),
}
"""Operands that overloads write their two results to."""


def written(call: CallView) -> list[str]:
    """Return the names of the operands that a call writes."""
    operator = call.call.kind.rpartition(".")[2]
    names: Iterable[str] = ()
    if "." in call.kind and not call.call.outputs:  # none of PyTorch's own; it runs for what it writes
        names = call.call.operands
    elif operator in _AUGMENTED:
        names = ("self",)
    elif operator.startswith("_no_grad_"):
        names = ("tensor",)
    elif operator.endswith("_") and not operator.startswith("__") and operator != "requires_grad_":
        names = ("self", "input", "0")
    elif call.call.overload in _PAIRS_OF_RESULTS:
        names = _PAIRS_OF_RESULTS[call.call.overload]
    elif "out" in call.call.operands and not operator.endswith("_backward"):
        names = ("out",)
    found = []
    for name in dict.fromkeys((*names, *written_beside(operator, call.value))):
        value = call.call.operands.get(name)
        entries = value if isinstance(value, list) else [value]
        found += [one.name for one in entries if isinstance(one, TensorRef)]
    return found


def written_beside(operator: str, value: Callable[[str, Any], Any]) -> tuple[str, ...]:
    """Return the names of the operands that an operator writes without its name showing it, or its schema.

    Parameters
    ----------
    value
        Operand by name, with what it is by default.
    """
    if operator in _UPDATES_STATISTICS:
        on = value("training", value("train", value("use_input_stats", operator.endswith("legit"))))
        return _RUNNING_STATISTICS if on else ()
    return _WRITTEN_OPERANDS.get(operator, ())


def statistics_of_model(call: CallView) -> Iterable[str]:
    """Yield the tensors that a call keeps statistics of all inputs in: there is one for the model, however it is used.

    They are those of norms and of observers of ranges; of functional forms too, which return the new ones.
    """
    operator = call.call.kind.rpartition(".")[2]
    for name in (*_RUNNING_STATISTICS, *written_beside(operator, call.value)):
        value = call.call.operands.get(name)
        if isinstance(value, TensorRef) and name in (*_RUNNING_STATISTICS, *_OBSERVED):
            yield value.name


COUNTER = "num_batches_tracked"
"""Name that norms of PyTorch have for their number of batches, which is one for the model, too."""


def returned(call: CallView) -> list[str]:
    """Return the written operands that the results of a call are: none of those that it only changes beside them."""
    operator = call.call.kind.rpartition(".")[2]
    beside = operator in _UPDATES_STATISTICS or (operator in _WRITTEN_OPERANDS and not operator.endswith("_"))
    return [] if beside else written(call)


@dataclass
class _Storage:
    """What happened to a storage so far.

    Attributes
    ----------
    names
        Version of each tensor that shares it, when it was made.
    touched
        Ops so far that made, read or wrote one of them.
    readers
        Ops that read the current version.
    """

    permanent: bool
    version: int = 0
    touched: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    written: bool = False


@dataclass
class InPlace:
    """Storages of tensors, gone through in the order of the program.

    Attributes
    ----------
    together
        Groups of ops that have to be one.
    before
        Pairs of ops of which the second must not be in an earlier stage than the first.
    """

    together: list[list[int]] = field(default_factory=list)
    before: list[tuple[int, int]] = field(default_factory=list)
    _storages: list[_Storage] = field(default_factory=list)
    _of: dict[str, _Storage] = field(default_factory=dict)

    def enter(self, name: str) -> None:
        """Make a parameter, a buffer or an input of the program known."""
        self._define(name, _Storage(permanent=True))

    def make(self, op: int, name: str, shared_with: str | None = None) -> None:
        """Make the result of an op known, and the tensor whose storage it shares if it does."""
        storage = self._of.get(shared_with or "")
        if storage is None:
            storage = _Storage(permanent=False)
        if not storage.touched or storage.touched[-1] != op:
            storage.touched.append(op)
        self._define(name, storage)

    def _define(self, name: str, storage: _Storage) -> None:
        if not storage.names:
            self._storages.append(storage)
        storage.names[name] = storage.version
        self._of[name] = storage

    def read(self, op: int | None, name: str) -> None:
        """Have an op read a tensor; None: it is a result of the program."""
        storage = self._of.get(name)
        if storage is None:
            return
        if op is not None:
            storage.touched.append(op)
        if storage.names[name] != storage.version:
            self.together.append(list(storage.touched))
        elif op is not None:
            storage.readers.append(op)

    def write(self, op: int, name: str) -> None:
        """Have an op write a tensor that it read."""
        storage = self._of.get(name)
        if storage is None:
            return
        self.before += [(reader, op) for reader in storage.readers if reader != op]
        storage.readers.clear()
        storage.version += 1
        storage.written = True

    def rewrite(self, op: int | None, name: str) -> None:
        """Have something permanent become what an op made, at the end of the program; None: what is stored."""
        storage = self._of[name]
        storage.written = True
        if op is not None:
            storage.touched.append(op)

    def finish(self) -> None:
        """Have all ops run together that touch something permanent that is written."""
        self.together += [one.touched for one in self._storages if one.permanent and one.written]


def merged(count: int, edges: Iterable[tuple[int, int]], together: Sequence[Sequence[int]]) -> list[int]:
    """Return the group of each op, numbered in the order of their first ops.

    Groups are the least ones that keep *together* what has to be, and on whose edges there is no cycle: what lies on a
    way from a group back to it belongs to it.

    Notes
    -----
    O(ops + edges): strongly connected components, with each group as a cycle.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    cycles = [(a, b) for group in together for a, b in zip(group, [*group[1:], group[0]], strict=True)]
    pairs = np.array([*edges, *cycles], dtype=np.int32).reshape(-1, 2)  # what SciPy's graphs are indexed by
    ones = np.ones(len(pairs), dtype=np.int8)
    graph = csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=True, connection="strong")
    first: dict[int, int] = {}
    return [first.setdefault(int(label), len(first)) for label in labels]
