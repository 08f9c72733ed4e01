"""Regions of ``torch.vmap``: between their ends tensors have an axis that their types do not show.

A program exported without decompositions calls functions of PyTorch at the ends of a region and where a tensor gains or
loses the axis. Between them each tensor that depends on a batched one has as many copies as the batch is large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mtpp.formats.torch_export.program import Call, TensorRef
from mtpp.formats.torch_export.tensor_type import TensorType

_FUNCTIONS = "torch._functorch.predispatch."
_BEGIN, _END = f"{_FUNCTIONS}_vmap_increment_nesting", f"{_FUNCTIONS}_vmap_decrement_nesting"
_GAIN, _LOSE = f"{_FUNCTIONS}_add_batch_dim", f"{_FUNCTIONS}_remove_batch_dim"


@dataclass
class BatchedRegions:
    """Regions of a program, whose types are completed on the way. Make one with :func:`batched_regions`.

    Attributes
    ----------
    of_call
        Number of the outermost region that a node of the program is in, by the node's name.
    """

    of_call: dict[str, int] = field(default_factory=dict)
    _levels: dict[str, dict[int, int]] = field(default_factory=dict)

    def copies(self, call: Call) -> int:
        """Return how many times a call runs: the sizes of all batches among its operands, multiplied."""
        return _product(self._levels_of(call))

    def _levels_of(self, call: Call) -> dict[int, int]:
        """Return the size of each batch that an operand belongs to, by its level."""
        found: dict[int, int] = {}
        for name in call.tensors():
            found |= self._levels.get(name, {})
        return found

    def enter(self, calls: Sequence[Call], types: dict[str, TensorType]) -> None:
        """Go over nodes in order; give tensors in regions their copies."""
        for call in calls:
            levels = self._levels_of(call)
            for graph in call.graphs:
                # Every input counts as batched if one is: which operand it is depends on the operator.
                self._levels |= {name: levels for name in graph.inputs if name is not None and levels}
                self.enter(graph.calls, types)
            operand = call.operands.get("0")
            if call.kind == _GAIN and isinstance(operand, TensorRef):
                levels |= {int(call.operands["2"]): types[operand.name].shape[int(call.operands["1"])]}
            if call.kind == _LOSE:
                levels.pop(int(call.operands["1"]), None)
            if not levels:
                continue
            for name in call.outputs:
                if name is not None:
                    self._levels[name] = levels
                    types[name] = replace(types[name], copies=_product(levels))


def _product(levels: dict[int, int]) -> int:
    result = 1
    for size in levels.values():
        result *= size
    return result


def batched_regions(calls: Sequence[Call], types: dict[str, TensorType]) -> BatchedRegions:
    """Return the regions of a program; its types are completed.

    Notes
    -----
    O(size of the program).
    """
    regions = BatchedRegions()
    if any(call.kind.startswith(_FUNCTIONS) for call in calls):
        depth = number = 0
        for call in calls:
            if call.kind == _BEGIN:
                depth += 1
                number += depth == 1
            elif call.kind == _END:
                depth -= 1
            elif depth > 0:
                regions.of_call[call.name] = number
        regions.enter(calls, types)
    return regions
