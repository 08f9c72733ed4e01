"""Steps of an exported program: calls in order, each with its op, and graphs that only set a mode inlined.

The op of a step is the one whose nodes the reader of graphs names so (:mod:`mtpp.formats.torch_export`): ``NODE``, and
``CALL/NODE`` for a node of a graph that a call runs under ``torch.no_grad`` and the like. What picks one of several
results belongs to the op that made them; what is folded has no op. What PyTorch adds when it loads a functional program
is left out: copies of results into the buffers and inputs that the module wrote.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.runtime.pytorch.library import pytorch

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

_HIGHER_ORDER = "higher_order"
_GRAD, _AUTOCAST, _HINTS = "wrap_with_set_grad_enabled", "wrap_with_autocast", "hints_wrap"
_MODES = frozenset((_GRAD, _AUTOCAST, _HINTS, "tag_activation_checkpoint", "wrap"))


class Value(NamedTuple):
    """Reference to the result of a step, an input, a parameter or a buffer, by name."""

    name: str


Mode = Callable[[bool], AbstractContextManager[Any]]
"""Makes the context that a step runs in; it is told whether gradients are wanted."""


@dataclass(frozen=True)
class Step:
    """A call.

    Attributes
    ----------
    args, kwargs
        Operands, with a :class:`Value` for each that is made before.
    op
        Position of the op in the graph, None for what belongs to none.
    timed
        Whether its time counts for the op: picking a result does not.
    last_used
        Names that no later step reads.
    """

    name: str
    call: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    modes: Sequence[Mode]
    op: int | None
    timed: bool
    last_used: Sequence[str] = ()

    def reads(self) -> Iterator[str]:
        """Yield the names of the values among its operands."""
        for one in values_in((self.args, self.kwargs)):
            yield one.name


@dataclass(frozen=True)
class FlatProgram:
    """A program as a list of steps.

    Attributes
    ----------
    inputs
        Names of what the user gives, in order.
    stored
        Parameters, buffers and constants by the names that steps read them by.
    outputs
        Values and constants that the program returns, in its order.
    whole
        The program as one function of its inputs, in order; it returns what *outputs* names.
    """

    steps: Sequence[Step]
    inputs: Sequence[str]
    stored: Mapping[str, torch.Tensor]
    outputs: Sequence[Any]
    whole: Callable[..., Any]


def flat_program(exported: ExportedProgram, op_nodes: Sequence[Sequence[str]]) -> FlatProgram:
    """Return the steps of a program.

    Parameters
    ----------
    op_nodes
        Names of the nodes of each op.

    Notes
    -----
    O(nodes) time and memory.
    """
    torch = pytorch()
    module = exported.module(check_guards=False)
    op_of = {name: op for op, names in enumerate(op_nodes) for name in names}
    for node in reversed(module.graph.nodes):
        if node.target is torch.ops.aten.copy_.default and node.name not in op_of and not node.users:
            module.graph.erase_node(node)
    module.graph.set_codegen(torch.fx.graph.CodeGen())  # inputs one by one, whatever the module took
    module.recompile()
    flattener = _Flattener(op_of)
    inputs = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    outputs = flattener.graph(module, "", [Value(name) for name in inputs], ())
    listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    steps = _with_last_uses(flattener.steps, {one.name for one in values_in(listed)})
    return FlatProgram(steps, inputs, flattener.stored, listed, module.forward)


def values_in(operands: Any) -> Iterator[Value]:
    """Yield the values in operands, those in lists and mappings included."""
    if isinstance(operands, Value):
        yield operands
    elif isinstance(operands, list | tuple):
        for one in operands:
            yield from values_in(one)
    elif isinstance(operands, Mapping):
        yield from values_in(list(operands.values()))
    elif isinstance(operands, slice):
        yield from values_in((operands.start, operands.stop, operands.step))


class _Flattener:
    def __init__(self, op_of: Mapping[str, int]) -> None:
        self._op_of = op_of
        self._ops: dict[str, int | None] = {}
        self._own: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.steps: list[Step] = []
        self.stored: dict[str, torch.Tensor] = {}

    def graph(self, module: torch.fx.GraphModule, prefix: str, inputs: Sequence[Any], modes: Sequence[Mode]) -> Any:
        """Add the steps of a graph; return its outputs in terms of values."""
        library = pytorch()
        known: dict[torch.fx.Node, Any] = {}
        given, node_type = iter(inputs), library.fx.Node

        def operands(of: Any) -> Any:
            return library.fx.node.map_aggregate(of, lambda one: known[one] if isinstance(one, node_type) else one)

        for node in module.graph.nodes:
            name = prefix + node.name
            if node.op == "placeholder":
                known[node] = next(given)
            elif node.op == "get_attr":
                known[node] = self._stored(name, module, node.target)
            elif node.op == "output":
                return operands(node.args[0])
            else:
                known[node] = self._call(name, node.target, operands(node.args), operands(node.kwargs), modes)
        return ()

    def _stored(self, name: str, module: torch.fx.GraphModule, path: str) -> Any:
        torch = pytorch()
        attribute = operator.attrgetter(path)(module)
        if not isinstance(attribute, torch.Tensor):
            return attribute  # a graph
        if not isinstance(attribute, torch.nn.Parameter):  # as loaded it is a view, which not all may be done to
            attribute = self._own.setdefault(id(attribute), (attribute, attribute.clone()))[1]
            parent, _, last = path.rpartition(".")
            setattr(operator.attrgetter(parent)(module) if parent else module, last, attribute)
        self.stored[name] = attribute
        return Value(name)

    def _call(self, name: str, target: Any, args: Any, kwargs: Any, modes: Sequence[Mode]) -> Any:
        graphs = [one for one in args if isinstance(one, pytorch().fx.GraphModule)]
        kind = target.name() if getattr(target, "namespace", "") == _HIGHER_ORDER else ""
        if kind in _MODES and len(graphs) == 1:
            at = args.index(graphs[0])
            inputs = args[at + 1] if kind == _HINTS else args[at + 1 :]
            return self.graph(graphs[0], f"{name}/", inputs, (*modes, _mode(kind, args[:at])))
        picks = target is operator.getitem
        if picks and not isinstance(args[0], Value):
            return args[0][args[1]]
        op = self._ops.get(args[0].name) if picks else self._op_of.get(name)
        self._ops[name] = op
        timed = op is not None and not picks
        self.steps.append(Step(name, _CONTROL.get(kind, target), args, kwargs, modes, op, timed))
        return Value(name)


def _mode(kind: str, terms: Sequence[Any]) -> Mode:
    torch = pytorch()
    if kind == _GRAD:
        return lambda wanted: torch.set_grad_enabled(terms[0] and wanted)
    if kind == _AUTOCAST:
        device, dtype, enabled, cache = terms
        return lambda wanted: torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=cache)
    return lambda wanted: nullcontext()


def _cond(condition: Any, true_graph: Any, false_graph: Any, operands: Sequence[Any]) -> Any:
    return true_graph(*operands) if condition else false_graph(*operands)


def _while_loop(condition: Any, body: Any, carried: Sequence[Any], more: Sequence[Any] = ()) -> Any:
    values = tuple(carried)
    while condition(*values, *more):
        values = tuple(body(*values, *more))
    return values


_CONTROL: Mapping[str, Callable[..., Any]] = {"cond": _cond, "while_loop": _while_loop}
"""Control flow as Python has it: gradients go through it as through any code."""


def _with_last_uses(steps: Sequence[Step], kept: set[str]) -> list[Step]:
    """Return steps with what nobody reads after each; *kept* is read after the last."""
    seen = set(kept)
    backwards = []
    for step in reversed(steps):
        ended = [name for name in dict.fromkeys((*step.reads(), step.name)) if name not in seen]
        seen.update(ended)
        parts = (step.name, step.call, step.args, step.kwargs, step.modes, step.op, step.timed)
        backwards.append(Step(*parts, last_used=ended))
    return backwards[::-1]
