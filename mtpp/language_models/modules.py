"""Trees of modules with the sizes of their tensors, as PyTorch names them: what rules by bytes and by name look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class ModuleTensor:
    """A parameter or a buffer that a module holds itself.

    Attributes
    ----------
    name
        Within its module: ``weight``.
    elements
        Number of elements.
    element_bytes
        Bytes of one, in the type that the tensor has.
    buffer
        A buffer rather than a parameter.
    stored
        Part of checkpoints; buffers that can be computed are not.
    floating
        Of a floating type, which loading in another type converts.
    fixed
        Of this type in a model that is built in any other type.
    """

    name: str
    elements: int
    element_bytes: int
    buffer: bool = False
    stored: bool = True
    floating: bool = True
    fixed: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return self.elements * self.element_bytes

    def nbytes_in(self, element_bytes: int | None) -> int:
        """Bytes once loaded in a type of so many bytes an element, which never makes a tensor larger."""
        if element_bytes is None or not self.floating:
            return self.nbytes
        return self.elements * min(element_bytes, self.element_bytes)


@dataclass(frozen=True)
class ModuleTree:
    """A module, its tensors and its children in the order of their definition.

    Attributes
    ----------
    name
        Within its parent; empty for a whole model.
    class_name
        Name of its class, by which blocks are kept whole.
    tensors
        Its own, parameters and buffers.
    children
        Modules inside it.
    """

    name: str
    class_name: str
    tensors: tuple[ModuleTensor, ...] = ()
    children: tuple[ModuleTree, ...] = ()

    def walk(self, path: str = "") -> Iterator[tuple[str, ModuleTree]]:
        """Yield the module and everything below it with full names, parents first."""
        yield path, self
        for child in self.children:
            yield from child.walk(f"{path}.{child.name}" if path else child.name)

    def named_tensors(self, path: str = "") -> Iterator[tuple[str, ModuleTensor]]:
        """Yield all tensors below the module with full names, module by module."""
        for name, module in self.walk(path):
            for tensor in module.tensors:
                yield f"{name}.{tensor.name}" if name else tensor.name, tensor


@dataclass(frozen=True)
class Modules:
    """The tree of a model, with its tied parameters and the blocks that nobody cuts.

    Attributes
    ----------
    root
        The whole model.
    tied
        Groups of full names of parameters that are one and the same.
    undividable
        Names of classes whose modules stay on one device.
    layer_prefix
        Full name of the list of decoder layers: ``model.layers``; empty where there is none.
    embedding, final_norm, head
        Full names of these modules, None where the model has none.
    """

    root: ModuleTree
    tied: tuple[tuple[str, ...], ...] = ()
    undividable: tuple[str, ...] = ()
    layer_prefix: str = "model.layers"
    embedding: str | None = "model.embed_tokens"
    final_norm: str | None = "model.norm"
    head: str | None = "lm_head"

    @cached_property
    def by_name(self) -> dict[str, ModuleTree]:
        """All modules by their full names."""
        return dict(self.root.walk())

    @cached_property
    def aliases(self) -> frozenset[str]:
        """Names of tied parameters besides the first of each group in the order of definition."""
        order = {name: i for i, (name, _) in enumerate(self.root.named_tensors())}
        groups = (sorted(group, key=lambda name: order.get(name, len(order))) for group in self.tied)
        return frozenset(name for group in groups for name in group[1:])

    def parameters_of(self, name: str) -> int:
        """Count the parameters of a module, every tied parameter at its first name."""
        tensors = self.by_name[name].named_tensors(name)
        return sum(t.elements for full, t in tensors if not t.buffer and full not in self.aliases)

    @property
    def stored_bytes(self) -> int:
        """Bytes of all parameters and stored buffers, tied parameters once."""
        return sum(t.nbytes for name, t in self.root.named_tensors() if t.stored and name not in self.aliases)
