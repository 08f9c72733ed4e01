"""Backward passes in halves: gradients of what a stage receives first, those of its parameters later.

PyTorch's runtime finds the parameters of the second half behind the first one. It loses, without a word, the gradients
of parameters on whose way to the results no tensor from another stage with gradients comes in, such as those of a first
trained layer behind frozen ones; and it fails where parameters take turns that are read several times. Stages of either
kind run the whole backward pass in one of the halves: in the first one if another stage waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mtpp.runtime.pytorch.library import pytorch


def halve_backward(stages: Mapping[int, Any]) -> None:
    """Have stages run backward passes in halves."""
    for stage in stages.values():
        stage.halved = True


def run_halves(wrapped: Any, stage: Any) -> None:
    """Have PyTorch's wrapper of a stage run whole backward passes in one half where it would get halves wrong.

    Parameters
    ----------
    wrapped
        ``torch.distributed.pipelining.PipelineStage`` around *stage*.
    """
    if not stage.halved or wrapped.is_first or not (loses_gradients(stage) or shares_parameters(stage)):
        return
    other = wrapped.backward_maybe_with_nosync

    def backward(kind: str, given: dict[str, Any], last_backward: bool = False) -> Any:
        if kind == "input":
            return _first_half(wrapped.submod, **given)
        if kind == "weight":
            for ends, gradients in given["param_groups"]:
                _whole(wrapped.submod, ends, gradients, [])
            return (), None
        return other(kind, given, last_backward=last_backward)

    wrapped.backward_maybe_with_nosync = backward


def _first_half(module: Any, stage_output: Any, output_grads: Any, input_values: Any) -> tuple[Any, list[Any]]:
    """Return the gradients of what a stage received, and what the second half has to do."""
    torch = pytorch()
    ends, gradients = [], []
    for place, one in enumerate(stage_output):
        if one.requires_grad:
            ends.append(torch.autograd.graph.get_gradient_edge(one))
            gradients.append(torch.ones_like(one) if output_grads is None else output_grads[place])
    wanted = [place for place, one in enumerate(input_values) if isinstance(one, torch.Tensor) and one.requires_grad]
    passed: list[Any] = [None] * len(input_values)
    if not wanted:
        return tuple(passed), [(ends, gradients)]
    for place, gradient in zip(
        wanted, _whole(module, ends, gradients, [input_values[place] for place in wanted]), strict=True
    ):
        passed[place] = gradient
    return tuple(passed), []


def _whole(module: Any, ends: list[Any], gradients: list[Any], received: list[Any]) -> list[Any]:
    """Add the gradients of parameters up, and return those of what was received."""
    trained = [one for one in module.parameters() if one.requires_grad]
    if not ends or not (trained or received):
        return [None] * len(received)
    found = pytorch().autograd.grad(ends, [*received, *trained], gradients, allow_unused=True)
    for one, gradient in zip(trained, found[len(received) :], strict=True):
        if gradient is not None:
            one.grad = gradient if one.grad is None else one.grad + gradient
    return list(found[: len(received)])


def loses_gradients(stage: Any) -> bool:
    """Say whether a trained parameter of a stage comes to a result and meets no tensor with gradients on its way.

    Only ways that gradients take count: none goes through ``detach``, whole numbers or ``torch.no_grad``. A stage that
    cannot be traced counts as one that does.
    """
    own = _trained(stage)
    if not own:
        return False
    passing = _with_gradients(stage)
    if passing is None:
        return True
    met: set[Any] = set()
    alone: set[Any] = set()
    for node in stage.stage.graph.nodes:
        inputs = node.all_input_nodes
        if node.op == "output":
            return any(one in alone for one in inputs)
        if node.op == "get_attr":
            if any(name == str(node.target) or name.startswith(f"{node.target}.") for name in own):
                alone.add(node)
        elif node not in passing:
            continue
        elif node.op == "placeholder" or any(one in met for one in inputs):
            met.add(node)
        elif any(one in alone for one in inputs):
            alone.add(node)
    return False


def _with_gradients(stage: Any) -> set[Any] | None:
    """Return the nodes of a stage that make tensors with gradients; None if it cannot be run without values."""
    torch = pytorch()
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    found: set[Any] = set()
    interpreter = torch.fx.Interpreter(stage.stage)
    run_node, fetch = interpreter.run_node, interpreter.fetch_attr

    def noted(node: Any) -> Any:
        made = run_node(node)
        listed = made if isinstance(made, tuple | list) else [made]
        if any(isinstance(one, torch.Tensor) and one.requires_grad for one in listed):
            found.add(node)
        return made

    def held(target: str) -> Any:
        value = fetch(target)
        return mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value

    interpreter.run_node, interpreter.fetch_attr = noted, held
    given = dict(zip(stage.relay.takes, stage.example_inputs, strict=True))
    device = next((one.device for one in stage.parameters()), torch.device("cpu"))

    def entering(name: str) -> Any:
        like = given[name]
        one = torch.empty(like.shape, dtype=like.dtype, device=device, requires_grad=like.requires_grad)
        return one.clone()  # what begins a graph of gradients may not be written in place

    try:
        with mode, torch.enable_grad():
            interpreter.run(*(entering(str(node.target)) for node in stage.stage.graph.find_nodes(op="placeholder")))
    except Exception:  # whatever operators raise that need values
        return None
    return found


def shares_parameters(stage: Any) -> bool:
    """Say whether several steps of a stage read a parameter that is trained, under one name or several."""
    own = _trained(stage)
    reads = Counter[int]()
    for prefix, module in stage.stage.named_modules():
        for node in module.graph.find_nodes(op="get_attr") if hasattr(module, "graph") else ():
            name = f"{prefix}.{node.target}".removeprefix(".")
            if name in own:
                reads[own[name]] += len(node.users)
    return max(reads.values(), default=0) > 1


def _trained(stage: Any) -> dict[str, int]:
    """Return the trained parameters of a stage: names, and numbers that tell tensors apart."""
    return {name: id(one) for name, one in stage.stage.named_parameters(remove_duplicate=False) if one.requires_grad}
