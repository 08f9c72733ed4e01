"""Kinds of nodes of a program: stored tensors, numbers that only a run tells, operators that write or only check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.formats.torch_export.flops.costs import plain_kind
from mtpp.formats.torch_export.flops.movement import CREATION_LIKE
from mtpp.formats.torch_export.in_place import written_beside
from mtpp.runtime.pytorch.flat_program import FlatProgram, attribute
from mtpp.runtime.pytorch.library import pytorch

if TYPE_CHECKING:
    from torch.fx import Node


def is_computed(node: Node) -> bool:
    """Say whether a node is a tensor or a symbol: plain numbers, texts and None are fixed by the export."""
    torch = pytorch()
    return isinstance(node.meta.get("val"), torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool)


def number_type(value: Any) -> str | None:
    """Return the type of a tensor with a number that only a run tells in it; None for what is no such number."""
    torch = pytorch()
    kinds = ((torch.SymBool, "bool"), (torch.SymInt, "int64"), (torch.SymFloat, "float64"))
    return next((name for kind, name in kinds if isinstance(value, kind)), None)


def is_graph(flat: FlatProgram, node: Node) -> bool:
    """Say whether a node is a graph that another one runs."""
    torch = pytorch()
    return node.op == "get_attr" and isinstance(
        attribute(node.graph.owning_module, str(node.target)), torch.fx.GraphModule
    )


def is_same_tensor(one: Node, other: Node) -> bool:
    """Say whether nodes are one stored tensor, under one name or several."""
    return one.op == other.op == "get_attr" and _held(one) is _held(other)


def _held(node: Node) -> Any:
    return attribute(node.graph.owning_module, str(node.target))


def is_mutable(node: Node) -> bool:
    """Say whether an operator writes one of its operands."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def is_creation_like(node: Node) -> bool:
    """Say whether a node makes a tensor of the shape or the type of another one, whatever is in that one."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.name.removeprefix("aten::") in CREATION_LIKE


def written_operands(node: Node) -> list[Node]:
    """Return the operands that an operator writes: as its schema says, or without a word there."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return []
    operands = dict(zip((one.name for one in schema.arguments), node.args, strict=False)) | node.kwargs
    names = [one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write]
    names += written_beside(schema.name.rpartition("::")[2], operands.get)
    leaves = pytorch().utils._pytree.tree_leaves([operands.get(name) for name in dict.fromkeys(names)])
    return [one for one in leaves if one in node.all_input_nodes]


def writes_in_place(flat: FlatProgram, node: Node) -> bool:
    """Say whether an operator may write what another stage made."""
    return any(flat.value(one).op != "get_attr" for one in written_operands(node))


def writes_unseen(node: Node) -> bool:
    """Say whether an operator writes an operand, which a file does not tell: none of PyTorch's own, with results."""
    if not is_mutable(node):
        return False
    schema = node.target._schema
    return bool(schema.returns) and "." in plain_kind(schema.name.replace("::", "."))


def is_check(node: Node) -> bool:
    """Say whether a node makes nothing: it only checks sizes."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and not schema.returns and not schema.is_mutable
