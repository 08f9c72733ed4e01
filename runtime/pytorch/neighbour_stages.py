"""Stages that talk to their neighbours only: each hands on all that later stages need, and gradients come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mtpp.formats.results.stage_records import MODEL_INPUT, Described
from mtpp.runtime.pytorch.layout import Layout
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.pipelining import loss_of
from mtpp.runtime.pytorch.stage_modules import SplitProgram, StageModule

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Relay:
    """Tensors at both ends of a stage, by name.

    Attributes
    ----------
    takes
        From the stage before; the first stage takes the inputs of the program.
    hands_on
        To the stage behind; the last one returns the results of the program.
    """

    takes: tuple[str, ...]
    hands_on: tuple[str, ...]


def relays(split: SplitProgram) -> list[Relay]:
    """Return what goes from neighbour to neighbour: a tensor passes through all stages between its ends."""
    results = [one.name for one in split.outputs]
    made = {one.name: MODEL_INPUT for one in split.inputs}
    last_use = dict.fromkeys(results, len(split.stages))
    for place, stage in enumerate(split.stages):
        made |= {one.name: place for one in stage.outputs}
        for one in stage.inputs:
            last_use[one.name] = max(last_use.get(one.name, 0), place)
    crossing = [
        tuple(name for name, since in made.items() if since < place <= last_use.get(name, MODEL_INPUT))
        for place in range(1, len(split.stages))
    ]
    ends = [tuple(one.name for one in split.inputs), *crossing, tuple(results)]
    return [Relay(*pair) for pair in pairwise(ends)]


def neighbour_stages(split: SplitProgram) -> list[Any]:
    """Return the stages as modules whose parameters and results are those of neighbours.

    Returns
    -------
    ``torch.nn.Module``: tensors in, a tuple of tensors out, of the last stage a tensor where it is one. What is handed
    on is a copy with its elements in order, and gradients of what comes in are brought into order too: PyTorch's
    pipelining sends and receives nothing else. ``example_inputs`` and ``example_outputs`` are
    on the device ``meta`` and say which of them have gradients.
    """
    make = _stage_class()
    ways = relays(split)
    stages = [
        make(stage, relay, place, last=place == len(ways) - 1)
        for place, (stage, relay) in enumerate(zip(split.stages, ways, strict=True))
    ]
    kinds = {one.name: one for one in (*split.inputs, *(one for stage in split.stages for one in stage.outputs))}
    need = _traced(stages, kinds)
    given = [_empty(kinds[name], gradient=False) for name in ways[0].takes]
    for one, needed in zip(stages, need, strict=True):
        one.example_inputs = tuple(given)
        given = [_empty(kinds[name], gradient=needed[name]) for name in one.relay.hands_on]
        one.example_outputs = tuple(given)
    return stages


def _empty(kind: Described, *, gradient: bool) -> torch.Tensor:
    library = pytorch()
    shape = [size or 0 for size in kind.shape]
    tensor: torch.Tensor = library.empty(
        shape, dtype=getattr(library, kind.dtype), device="meta", requires_grad=gradient
    )
    return tensor


def _traced(stages: Sequence[Any], kinds: Mapping[str, Described]) -> list[dict[str, bool]]:
    """Run all stages forward and back without computing anything.

    Returns
    -------
    Which of the tensors that each stage hands on have gradients. Strides of these gradients are noted down in the
    stages: kernels round otherwise where elements lie otherwise.
    """
    torch = pytorch()
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    needs: list[dict[str, bool]] = []
    with mode, torch.enable_grad():
        held = [
            {
                name: mode.from_tensor(value, static_shapes=True)
                for name, value in (*stage.named_parameters(), *stage.named_buffers())
            }
            for stage in stages
        ]
        device = next((one.device for own in held for one in own.values()), torch.device("cpu"))
        tensors = tuple(
            torch.empty(
                [size or 0 for size in kinds[name].shape], dtype=getattr(torch, kinds[name].dtype), device=device
            )
            for name in stages[0].relay.takes
        )
        for stage, own in zip(stages, held, strict=True):
            stage.traced = True
            made = torch.func.functional_call(stage, own, tensors)
            stage.traced = False
            tensors = made if isinstance(made, tuple) else (made,)
            needs.append({name: one.requires_grad for name, one in zip(stage.relay.hands_on, tensors, strict=True)})
            if stage is not stages[-1]:
                tensors = tuple(_noted(stage, *pair) for pair in zip(stage.relay.hands_on, tensors, strict=True))
        with suppress(Exception):  # an operator whose backward pass nobody can trace: gradients come in order
            loss = loss_of(tensors)
            if loss.requires_grad:
                loss.backward()
    return needs


def _noted(stage: Any, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Have a stage note down the strides of the gradient of a tensor that it hands on."""
    passed = tensor.view_as(tensor)
    if passed.requires_grad:
        passed.register_hook(lambda gradient: stage.gradient_strides.update({name: gradient.stride()}))
    return passed


@cache
def _stage_class() -> Any:
    """Return the class of stages; PyTorch is imported only then."""
    library = pytorch()

    class GradientInOrder(library.autograd.Function):  # type: ignore[misc, name-defined]
        """Identity whose gradient has its elements in order."""

        @staticmethod
        def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
            return tensor.view_as(tensor)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient.contiguous()

    class GradientLaid(library.autograd.Function):  # type: ignore[misc, name-defined]
        """Identity whose gradient is laid out in memory with given strides."""

        @staticmethod
        def forward(ctx: Any, tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
            ctx.strides = strides
            return tensor.view_as(tensor)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
            return laid_out(gradient, ctx.strides), None

    class NeighbourStage(library.nn.Module):  # type: ignore[misc, name-defined]
        """A stage between its neighbours; see :func:`neighbour_stages`."""

        def __init__(self, stage: StageModule, relay: Relay, index: int, *, last: bool) -> None:
            super().__init__()
            self.stage = stage.module
            self.relay, self.stage_index, self.is_last = relay, index, last
            self.reads = [one.name for one in stage.inputs]
            self.makes = [one.name for one in stage.outputs]
            self.traced = self.halved = False
            self.gradient_strides: dict[str, tuple[int, ...]] = {}
            self.example_inputs: tuple[torch.Tensor, ...] = ()
            self.example_outputs: tuple[torch.Tensor, ...] = ()

        def forward(self, *tensors: torch.Tensor) -> Any:
            known = dict(zip(self.relay.takes, tensors, strict=True))
            if not self.traced:
                known = {name: GradientInOrder.apply(one) if one.requires_grad else one for name, one in known.items()}
            made = self.stage(*(known[name] for name in self.reads))
            known |= dict(zip(self.makes, made, strict=True))
            found = tuple(known[name] for name in self.relay.hands_on)
            if self.is_last:
                if self.halved:  # PyTorch's runtime detaches results after the first half: ops may have kept them
                    found = tuple(one.clone() if one.requires_grad else one for one in found)
                return found[0] if len(found) == 1 else found
            if self.traced:
                return found
            # PyTorch's runtime sends elements in order, and detaches what it sent: ops may have kept it.
            return tuple(
                self._laid(name, one).clone(memory_format=library.contiguous_format)
                for name, one in zip(self.relay.hands_on, found, strict=True)
            )

        def _laid(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
            """Return a tensor whose gradient will lie in memory as that in the whole program does."""
            strides = self.gradient_strides.get(name) if name in self.makes else None
            if strides is None or not tensor.requires_grad:
                return tensor
            laid: torch.Tensor = GradientLaid.apply(tensor, strides)
            return laid

    return NeighbourStage


def laid_out(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return a copy of a tensor with these strides, where they are those of a place in memory."""
    layout = Layout.of(tuple(tensor.shape), tuple(strides))
    if layout is None:
        return tensor.contiguous()
    shape = tensor.shape
    for axis in layout.repeated:
        tensor = tensor.narrow(axis, 0, 1)
    return tensor.new_empty_strided(layout.shape, layout.strides).copy_(tensor).expand(shape)


def ties(stages: Mapping[int, Any]) -> Iterator[list[tuple[int, str]]]:
    """Yield parameters that are one tensor in the program and in several stages: (stage, name in the program)."""
    places: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for index, stage in stages.items():
        for name, one in stage.stage.named_parameters(remove_duplicate=False):
            key = (one.untyped_storage().data_ptr(), one.storage_offset(), tuple(one.shape), one.stride())
            places.setdefault(key, []).append((index, name))
    yield from (found for found in places.values() if len({index for index, _ in found}) > 1)
