"""Nodes of a loaded program in one list, those of graphs that only set a mode included."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.runtime.pytorch.library import pytorch

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import GraphModule, Node

_OFF = {"train": False, "training": False, "dropout": 0, "dropout_p": 0, "p": 0}
"""Operands with which an operator that may draw does not."""

_MODES = frozenset(
    ("hints_wrap", "tag_activation_checkpoint", "wrap", "wrap_with_autocast", "wrap_with_set_grad_enabled")
)
"""Operators that run a graph once, under some mode."""


_ENDLESS = 2**31
"""Ends of ranges from here on are those of the type, and say nothing."""


class Mode(NamedTuple):
    """A call that runs a graph under a mode: the operator, and what it takes before the graph."""

    operator: Any
    before: tuple[Any, ...]
    number: int


@dataclass(frozen=True)
class Step:
    """A node that computes something.

    Attributes
    ----------
    name
        As :class:`mtpp.formats.torch_export.program.Call` has it: ``wrap/linear`` within a graph.
    modes
        Around it, the outermost first.
    """

    node: Node
    name: str
    modes: tuple[Mode, ...]


@dataclass
class FlatProgram:
    """A program in a list. Make one with :func:`flat_program`.

    Attributes
    ----------
    module
        What the program is; steps are nodes of its graph and of those nested in it.
    inputs
        Placeholders of the user's tensors, in order.
    outputs
        What it returns: nodes, numbers, None; flat.
    same_as
        Nodes that stand for another one: what goes into and comes out of a nested graph.
    sizes
        Values of symbols in sizes, but for those that depend on data.
    ranges
        Least and largest value of symbols, None where there is no limit, as the program checks them.
    """

    module: GraphModule
    sizes: Mapping[str, int]
    steps: list[Step] = field(default_factory=list)
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    same_as: dict[Node, Node] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)

    def value(self, node: Node) -> Node:
        """Return the node that *node* stands for."""
        while node in self.same_as:
            node = self.same_as[node]
        return node

    def value_or_other(self, one: Any) -> Any:
        """Return the node that a node stands for; what is none as it is."""
        return self.value(one) if isinstance(one, pytorch().fx.Node) else one

    def number(self, node: Node) -> int | float | bool | None:
        """Return the number that a node comes to with these sizes; None for tensors, and what depends on data."""
        torch = pytorch()
        value = node.meta.get("val")
        if isinstance(value, bool | int | float):
            return value
        if not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return None
        return self._evaluated(value)

    def strides(self, node: Node) -> tuple[int, ...] | None:
        """Return the strides of a tensor with these sizes, None where they are not known."""
        torch = pytorch()
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return None
        known = [one if isinstance(one, int) else self._evaluated(one) for one in value.stride()]
        return None if None in known else tuple(int(one) for one in known if one is not None)

    def shape(self, node: Node) -> tuple[int, ...] | None:
        """Return the shape of a tensor with these sizes, None where it depends on data or is no tensor."""
        torch = pytorch()
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return None
        known = self.known_sizes(node)
        return None if None in known else tuple(one for one in known if one is not None)

    def known_sizes(self, node: Node) -> tuple[int | None, ...]:
        """Return the shape of a tensor with these sizes; an axis whose size depends on data is None."""
        known = [one if isinstance(one, int) else self._evaluated(one) for one in node.meta["val"].shape]
        return tuple(None if one is None else int(one) for one in known)

    def _evaluated(self, value: Any) -> int | float | bool | None:
        expression = value.node.expr
        found = expression.xreplace(
            {one: self.sizes[str(one)] for one in expression.free_symbols if str(one) in self.sizes}
        )
        if getattr(found, "free_symbols", ()):  # it is a plain number where it was a symbol alone
            return None
        kind = {"SymInt": int, "SymFloat": float, "SymBool": bool}[type(value).__name__]
        number: int | float | bool = kind(found)
        return number


def flat_program(exported: ExportedProgram, sizes: Mapping[str, int]) -> FlatProgram:
    """Return a program in a list.

    Parameters
    ----------
    sizes
        Values of the symbols in its sizes. Those of sizes that depend on data (``u0``) are left aside: a plan assumes
        one, and a run has its own.
    """
    module = flat_module(exported)
    flat = FlatProgram(module, {name: size for name, size in sizes.items() if not name.startswith("u")})
    flat.ranges = {
        str(symbol): (_finite(limits.lower), _finite(limits.upper))
        for symbol, limits in exported.range_constraints.items()
    }
    _walk(flat, module, "", ())
    return flat


def _finite(end: Any) -> int | None:
    """Return an end of a range; None where it is infinite."""
    try:
        value = int(end)
    except (AttributeError, OverflowError, TypeError, ValueError):  # infinite, of more than one kind
        return None
    return value if abs(value) < _ENDLESS else None


def flat_module(exported: ExportedProgram) -> GraphModule:
    """Return a program as a module that takes and returns tensors one by one, in no lists or dictionaries."""
    torch = pytorch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = exported.module(check_guards=False)
    module._forward_pre_hooks.clear()  # they check the lists and dictionaries
    module.graph.set_codegen(torch.fx.graph.CodeGen())
    module.recompile()
    flat: GraphModule = module
    return flat


def called(module: GraphModule, tensors: Mapping[str, Any]) -> list[Any]:
    """Return what a module of :func:`flat_module` returns for tensors by name."""
    entries = [node for node in module.graph.nodes if node.op == "placeholder"]
    made = module(*(tensors.get(node.name, node.meta.get("val")) for node in entries))
    return list(leaves(made))


def _walk(flat: FlatProgram, module: GraphModule, prefix: str, modes: tuple[Mode, ...]) -> Sequence[Any]:
    """Enter the nodes of a graph; return what it returns."""
    results: dict[Node, Sequence[Any]] = {}
    for node in module.graph.nodes:
        if node.op == "placeholder" and not modes:
            flat.inputs.append(node)
        elif node.op == "call_function" and node.target is operator.getitem and node.args[0] in results:
            inner = results[node.args[0]][node.args[1]]
            flat.same_as[node] = inner
        elif node.op == "call_function":
            body = _body(module, node)
            if body is None:
                flat.steps.append(Step(node, prefix + node.name, modes))
                continue
            place, graph = body
            given = _operands(node, place)
            entries = [one for one in graph.graph.nodes if one.op == "placeholder"]
            flat.same_as.update(zip(entries, given, strict=True))
            mode = Mode(node.target, tuple(node.args[:place]), len(flat.steps))
            results[node] = _walk(flat, graph, f"{prefix}{node.name}/", (*modes, mode))
        elif node.op == "output":
            results_of_all = list(leaves(node.args[0]))
            if not modes:
                flat.outputs = results_of_all
            return results_of_all
    return []


def leaves(value: Any) -> Iterator[Any]:
    """Yield what is in lists and dictionaries, however deep."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for one in value:
            yield from leaves(one)
    else:
        yield value


def _body(module: GraphModule, node: Node) -> tuple[int, GraphModule] | None:
    """Return the graph that a node runs under a mode, and its place among the operands."""
    torch = pytorch()
    if getattr(node.target, "__name__", "") not in _MODES or not isinstance(
        node.target, torch._ops.HigherOrderOperator
    ):
        return None
    graphs = [
        (i, getattr(module, one.target))
        for i, one in enumerate(node.args)
        if isinstance(one, torch.fx.Node)
        and one.op == "get_attr"
        and isinstance(getattr(module, one.target, None), torch.fx.GraphModule)
    ]
    return graphs[0] if len(graphs) == 1 else None


def _operands(node: Node, place: int) -> list[Node]:
    """Return the tensors that a graph is given: all behind it."""
    behind = node.args[place + 1 :]
    return list(behind[0] if len(behind) == 1 and isinstance(behind[0], tuple | list) else behind)


def attribute(module: torch.nn.Module, path: str) -> Any:
    """Return what an attribute of a module, or of one within it, is."""
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part)
    return found


def random_steps(flat: FlatProgram) -> Iterator[str]:
    """Yield the names of the steps that draw random numbers: a dropout that trains, a distribution."""
    for step in flat.steps:
        if any(_draws(node) for node in _with_nested(step.node)):
            yield step.name


def _draws(node: Node) -> bool:
    tags = getattr(node.target, "tags", ())
    return pytorch().Tag.nondeterministic_seeded in tags and not _is_off(node)


def _with_nested(node: Node) -> Iterator[Node]:
    """Yield a node, and those of the graphs that it runs: branches, bodies of loops."""
    yield node
    for one in node.all_input_nodes:
        graph = attribute(one.graph.owning_module, str(one.target)) if one.op == "get_attr" else None
        for inner in graph.graph.nodes if isinstance(graph, pytorch().fx.GraphModule) else ():
            if inner.op == "call_function":
                yield from _with_nested(inner)


def _is_off(node: Node) -> bool:
    schema = node.target._schema
    for place, argument in enumerate(schema.arguments):
        if argument.name not in _OFF:
            continue
        default = argument.default_value if argument.has_default_value() else None
        value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name, default)
        if value is not None and value == _OFF[argument.name]:
            return True
    return False
