"""Blocks of modules that stay on one device: undividable modules, tied ones together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from mtpp.language_models.modules import Modules, ModuleTree


@dataclass(frozen=True)
class ModuleBlock:
    """Modules, parameters and buffers that share a device.

    Attributes
    ----------
    names
        Their full names, in the order of definition.
    bytes
        Of parameters and buffers, tied parameters once.
    cache_bytes
        Of caches and states of the layers among them.
    """

    names: tuple[str, ...]
    bytes: int
    cache_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        """Bytes on the device that runs it."""
        return self.bytes + self.cache_bytes


def blocks_of(modules: Modules, caches: Mapping[str, int]) -> list[ModuleBlock]:
    """Blocks of a model in the order of definition; one with tied modules stands where its first module does.

    Parameters
    ----------
    caches
        Bytes by full names of layers.

    Notes
    -----
    Modules of the undividable classes stay whole; where a model has none of them, its decoder layers do. All others are
    opened down to modules without children, and to their own parameters and stored buffers, as accelerate does.
    """
    known = {module.class_name for _, module in modules.root.walk()}
    layers = modules.by_name[modules.layer_prefix].children if modules.layer_prefix else ()
    classes = known.intersection(modules.undividable) or {layer.class_name for layer in layers}
    blocks = [
        ModuleBlock((name,), _bytes(modules, name), _cache(name, caches)) for name in _names(modules.root, "", classes)
    ]
    return _with_ties(modules, _with_first_parts(blocks, caches))


def _names(module: ModuleTree, path: str, whole: Collection[str]) -> Iterator[str]:
    """Yield names of blocks: own tensors of an opened module, then its children."""
    if path and (not module.children or module.class_name in whole):
        yield path
        return
    prefix = f"{path}." if path else ""
    yield from (f"{prefix}{tensor.name}" for tensor in module.tensors if tensor.stored)
    for child in module.children:
        yield from _names(child, f"{prefix}{child.name}", whole)


def _bytes(modules: Modules, name: str) -> int:
    module = modules.by_name.get(name)
    if module is None:
        parent, _, own = name.rpartition(".")
        tensors = [(name, tensor) for tensor in modules.by_name[parent].tensors if tensor.name == own]
    else:
        tensors = list(module.named_tensors(name))
    return sum(tensor.nbytes for full, tensor in tensors if full not in modules.aliases)


def _cache(name: str, caches: Mapping[str, int]) -> int:
    """Bytes of all layers within a module."""
    return sum(size for layer, size in caches.items() if f"{layer}.".startswith(f"{name}."))


def _with_first_parts(blocks: list[ModuleBlock], caches: Mapping[str, int]) -> list[ModuleBlock]:
    """Give the cache of a layer that is divided to the first of its parts."""
    found = list(blocks)
    for layer, size in caches.items():
        if any(f"{layer}.".startswith(f"{block.names[0]}.") for block in blocks):
            continue
        first = next((i for i, block in enumerate(found) if block.names[0].startswith(f"{layer}.")), None)
        if first is not None:
            found[first] = replace(found[first], cache_bytes=found[first].cache_bytes + size)
    return found


def _with_ties(modules: Modules, blocks: list[ModuleBlock]) -> list[ModuleBlock]:
    """Join blocks that hold ends of one tie."""
    first = list(range(len(blocks)))
    place = {block.names[0]: i for i, block in enumerate(blocks)}
    for group in modules.tied:
        ends = sorted({i for name in group for i in [_holder(name, place)] if i is not None})
        joined = {first[i] for i in ends}
        first = [min(joined) if at in joined else at for at in first]
    return [
        ModuleBlock(
            tuple(name for block in members for name in block.names),
            sum(block.bytes for block in members),
            sum(block.cache_bytes for block in members),
        )
        for i in dict.fromkeys(first)
        for members in [[block for block, at in zip(blocks, first, strict=True) if at == i]]
    ]


def _holder(name: str, place: Mapping[str, int]) -> int | None:
    """Position of the block that holds a tensor."""
    while name and name not in place:
        name = name.rpartition(".")[0]
    return place.get(name)
