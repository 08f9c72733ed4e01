"""Trees of modules of PyTorch models, on the meta device or any other; no weight is looked at."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.language_models.modules import Modules, ModuleTensor, ModuleTree

if TYPE_CHECKING:
    import torch


def modules_of(model: torch.nn.Module, *, with_layers: bool = True) -> Modules:
    """Tree of a model, with the parts and the classes that transformers says of it.

    Parameters
    ----------
    with_layers
        Whether it must have a list of decoder layers; of a model without one, their prefix is empty.

    Raises
    ------
    InputError
        If no list of decoder layers is found.
    """
    undividable = tuple(sorted(getattr(model, "_no_split_modules", None) or ()))
    root = _tree("", model)
    prefix = _layer_prefix(root, undividable)
    if prefix is None and with_layers:
        raise InputError("the model has no list of decoder layers", parameter="model")
    names = {id(module): name for name, module in model.named_modules()}
    return Modules(
        root=root,
        tied=_tied(model),
        undividable=undividable,
        layer_prefix=prefix or "",
        embedding=_part(model, "get_input_embeddings", names),
        final_norm=_after(root, prefix) if prefix else None,
        head=_part(model, "get_output_embeddings", names),
    )


def _tree(name: str, module: Any) -> ModuleTree:
    stored = module._non_persistent_buffers_set
    parameters = (_tensor(key, tensor) for key, tensor in module._parameters.items() if tensor is not None)
    buffers = (
        _tensor(key, tensor, buffer=True, stored=key not in stored)
        for key, tensor in module._buffers.items()
        if tensor is not None
    )
    children = (_tree(key, child) for key, child in module._modules.items() if child is not None)
    return ModuleTree(name, type(module).__name__, tuple(chain(parameters, buffers)), tuple(children))


def _tensor(name: str, tensor: torch.Tensor, *, buffer: bool = False, stored: bool = True) -> ModuleTensor:
    return ModuleTensor(
        name,
        tensor.numel(),
        tensor.element_size(),
        buffer=buffer,
        stored=stored,
        floating=tensor.is_floating_point(),
    )


def _tied(model: Any) -> tuple[tuple[str, ...], ...]:
    """Return groups of names of one parameter, by transformers' own table or by identity."""
    groups: dict[Any, list[str]] = {}
    said = getattr(model, "all_tied_weights_keys", None)
    if said:
        for name, target in said.items():
            groups.setdefault(target, [target]).append(name)
    else:
        for name, parameter in model.named_parameters(remove_duplicate=False):
            groups.setdefault(id(parameter), []).append(name)
    return tuple(tuple(sorted(names)) for names in groups.values() if len(names) > 1)


def _layer_prefix(root: ModuleTree, undividable: tuple[str, ...]) -> str | None:
    """Name of the longest list of modules of an undividable class; of any one class where there is none; or None."""
    lists = [
        (name, module)
        for name, module in root.walk()
        if module.children and len({child.class_name for child in module.children}) == 1 and name
    ]
    of_blocks = [(name, module) for name, module in lists if module.children[0].class_name in undividable]
    numbered = [(name, m) for name, m in of_blocks or lists if all(child.name.isdecimal() for child in m.children)]
    return max(numbered, key=lambda named: len(named[1].children), default=(None,))[0]


def _part(model: Any, getter: str, names: dict[int, str]) -> str | None:
    """Name of the module that a method of transformers models returns."""
    try:
        return names.get(id(getattr(model, getter)()))
    except (AttributeError, NotImplementedError):
        return None


def _after(root: ModuleTree, prefix: str) -> str | None:
    """Name of the first module with parameters behind the layers, within the same parent."""
    parent, _, own = prefix.rpartition(".")
    siblings = dict(root.walk())[parent].children
    position = next(i for i, child in enumerate(siblings) if child.name == own)
    behind = (child.name for child in siblings[position + 1 :] if any(not t.buffer for t in child.tensors))
    found = next(behind, None)
    return found if found is None or not parent else f"{parent}.{found}"
