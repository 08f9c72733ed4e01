"""Gradients of a program op by op: its graph of gradients cut where a tensor goes from one op to another.

An op reads a tensor of another one through a cut: a tensor with the same memory that gradients stop at. What gradients
come to there is handed to the op that made the tensor, when its turn comes; so every op's backward pass runs by itself
and on the gradients that it would have in the whole program, and all keep what one step of training keeps.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.profiling.clocks import Clock

if TYPE_CHECKING:
    import torch

Key = tuple[str, int | None]
"""A tensor: the value that it is, or is in, and its place there."""

Span = tuple[Any, Any]
"""Two marks of a clock."""


class Tape:
    """Records what one run of a program keeps for the backward passes of its ops, and runs them.

    Attributes
    ----------
    parameter_gradients
        Parameters with the gradient that an op has for them; a step of training keeps them to its end.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._torch = pytorch()
        self._cuts: dict[int, dict[Key, tuple[torch.Tensor, Any]]] = defaultdict(dict)
        self._parameters: dict[int, dict[str, torch.Tensor]] = defaultdict(dict)
        self._edges: dict[int, dict[Key, Any]] = defaultdict(dict)
        self._gradients: dict[Key, list[torch.Tensor]] = defaultdict(list)
        self.parameter_gradients: list[tuple[torch.Tensor, torch.Tensor]] = []

    def read(self, op: int, key: Key, tensor: torch.Tensor, maker: int | None) -> torch.Tensor:
        """Return a tensor as an op that did not make it reads it.

        Parameters
        ----------
        maker
            The op that made it; None for a parameter, and for what is folded.
        """
        if not tensor.requires_grad or maker == op:
            return tensor
        if maker is None and tensor.is_leaf:
            self._parameters[op][key[0]] = tensor
            return tensor
        cuts = self._cuts[op]
        if key not in cuts:
            copy = _cut().apply(tensor.detach().requires_grad_())
            cuts[key] = copy, self._torch.autograd.graph.get_gradient_edge(copy)
        return cuts[key][0]

    def make(self, op: int, key: Key, tensor: torch.Tensor) -> None:
        """Take note of a tensor that an op made."""
        if tensor.requires_grad and tensor.grad_fn is not None:
            self._edges[op][key] = self._torch.autograd.graph.get_gradient_edge(tensor)

    def seed(self, key: Key, gradient: torch.Tensor) -> None:
        """Begin with the gradient of a tensor that the program returns."""
        self._gradients[key].append(gradient)

    def backward(self, op: int) -> Span | None:
        """Run the backward pass of an op, once those of all that read from it have run; None if it has none."""
        torch, clock = self._torch, self._clock
        edges = self._edges.pop(op, {})
        due = [(edge, self._gradients.pop(key)) for key, edge in edges.items() if key in self._gradients]
        cuts, parameters = self._cuts.pop(op, {}), self._parameters.pop(op, {})
        wanted = [*(edge for _, edge in cuts.values()), *parameters.values()]
        if not due or not wanted:
            return None
        clock.head_start()
        start = clock.mark()
        whole = [_added(gradients) for _, gradients in due]
        found = torch.autograd.grad([edge for edge, _ in due], wanted, whole, allow_unused=True)
        end = clock.mark()
        for key, gradient in zip(cuts, found, strict=False):
            if gradient is not None:
                self._gradients[key].append(gradient)
        of_parameters = zip(parameters.values(), found[len(cuts) :], strict=True)
        self.parameter_gradients += [(one, gradient) for one, gradient in of_parameters if gradient is not None]
        return start, end


@cache
def _cut() -> Any:
    """Return a function that gives its operand as a tensor of its own, which may be written in place.

    Gradients are taken where it stands; it is never run backward.
    """
    function = pytorch().autograd.Function

    class Cut(function):  # type: ignore[misc, valid-type]
        """The operand's memory without its history; a view could not be written."""

        @staticmethod
        def forward(context: Any, tensor: torch.Tensor) -> torch.Tensor:
            """Return the operand."""
            return tensor.data

    return Cut


def _added(gradients: list[torch.Tensor]) -> torch.Tensor:
    """Add gradients as PyTorch does: the first sum is a new tensor, which takes the others."""
    if len(gradients) == 1:
        return gradients[0]
    whole = gradients[0] + gradients[1]
    for one in gradients[2:]:
        whole = whole.add_(one)
    return whole
