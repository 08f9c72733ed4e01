"""Inputs of an exported program at given sizes: the user's arrays, or random values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.tensors import drawn_tensor

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

FLAG = "‹inputs›"


def program_inputs(
    exported: ExportedProgram,
    described: Sequence[Mapping[str, Any]],
    arrays: Mapping[str, Array],
    seed: int,
    source: str,
    sizes: Mapping[str, int],
) -> tuple[list[Any], tuple[str, ...]]:
    """Return what a program is given, in its order, and the names of what was made up.

    Parameters
    ----------
    described
        Name, shape and element type of each input that is a tensor, as the reader of graphs has them.
    arrays
        The user's, by name.
    sizes
        Values of the symbols in sizes; an input that is such a number has the value of its symbol.
    """
    from torch.export.graph_signature import ConstantArgument, InputKind, SymIntArgument, TensorArgument

    shapes = {one["name"]: one for one in described}
    unknown = next((name for name in arrays if name not in shapes), None)
    if unknown is not None:
        raise InputError(f"the program has no input {unknown!r}", source=FLAG, remedy=f"it has: {', '.join(shapes)}")
    numbers = {node.name: sizes.get(str(node.meta.get("val"))) for node in exported.graph.find_nodes(op="placeholder")}
    values: list[Any] = []
    made_up = []
    for spec in exported.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            continue
        name = spec.arg.name
        if isinstance(spec.arg, ConstantArgument):
            values.append(spec.arg.value)
        elif isinstance(spec.arg, SymIntArgument) and numbers.get(name) is not None:
            values.append(numbers[name])
        elif not isinstance(spec.arg, TensorArgument) or name not in shapes:
            remedy = "export the program with that value fixed"
            raise InputError(f"input {name!r} is no tensor and has no fixed value", source=source, remedy=remedy)
        elif name in arrays:
            values.append(_given(arrays[name], shapes[name]))
        else:
            made_up.append(name)
            values.append(drawn_tensor(name, shapes[name]["dtype"], shapes[name]["shape"], seed))
    return values, tuple(made_up)


def _given(array: Array, described: Mapping[str, Any]) -> torch.Tensor:
    library = pytorch()
    name, shape = described["name"], list(described["shape"])
    if list(array.shape) != shape:
        raise InputError(f"has the shape {list(array.shape)}, the program's has {shape}", source=FLAG, where=name)
    try:
        tensor: torch.Tensor = library.tensor(array)
    except TypeError:  # numbers that PyTorch has no type for, and texts
        tensor = library.empty(0)
    if list(tensor.shape) != shape or tensor.dtype != getattr(library, described["dtype"]):
        raise InputError(f"holds {array.dtype}, the program's {described['dtype']}", source=FLAG, where=name)
    return tensor
