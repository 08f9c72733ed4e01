"""Sizes of a configuration, and modules with tensors of these sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mtpp.errors import InputError
from mtpp.language_models.modules import ModuleTensor, ModuleTree

_FLOAT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "float8_e4m3fn": 1}
SINGLE = 4
"""Bytes of float32, in which frequencies of rotary embeddings and some routers are whatever the model's type."""

_MOST, _MOST_LAYERS = 2**40, 10_000

Configuration = Mapping[str, Any]


class Sizes:
    """Sizes of a configuration, each with the default that its architecture has."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.hidden = self.needed("hidden_size", "n_embd")
        self.heads = self.needed("num_attention_heads", "n_head")
        self.layers = self.needed("num_hidden_layers", "n_layer")
        if self.layers > _MOST_LAYERS:
            raise InputError(f"num_hidden_layers is {self.layers}, above {_MOST_LAYERS:,}", source="config.json")
        self.vocabulary = self.needed("vocab_size")
        self.kv_heads = self.number("num_key_value_heads", self.heads)
        self.head_dim = self.number("head_dim", self.hidden // self.heads)
        self.element_bytes = _element_bytes(configuration)

    def needed(self, *names: str) -> int:
        """Value under the first of several names."""
        for name in names:
            if isinstance(value := self._configuration.get(name), int) and 0 < value < _MOST:
                return value
        raise InputError(f"has no {names[0]}, by which sizes of modules are known", source="config.json")

    def number(self, name: str, default: int) -> int:
        """Value under a name, the default if it is absent or null."""
        value = self._configuration.get(name)
        if value is None:
            return default
        if not isinstance(value, int) or not 0 <= value < _MOST:
            raise InputError(f"{name} is {value!r}, not a whole number", source="config.json")
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """Whatever stands under a name."""
        value = self._configuration.get(name)
        return default if value is None else value

    def names(self, name: str, default: Sequence[str]) -> Sequence[str]:
        """Kind of each layer."""
        value = self.get(name, default)
        if not isinstance(value, list | tuple) or len(value) != self.layers:
            raise InputError(f"{name} is not a list of {self.layers} kinds of layers", source="config.json")
        return [str(kind) for kind in value]

    def tensor(self, name: str, *shape: int) -> ModuleTensor:
        """Parameter of the model's type."""
        return ModuleTensor(name, math.prod(shape), self.element_bytes)

    def linear(self, name: str, out: int, inside: int, bias: bool = False, kind: str = "Linear") -> ModuleTree:
        """Matrix with a bias or none."""
        tensors = [self.tensor("weight", out, inside), *([self.tensor("bias", out)] if bias else [])]
        return ModuleTree(name, kind, tuple(tensors))

    def scale(self, name: str, size: int, kind: str, bias: bool = False) -> ModuleTree:
        """Norm with a factor an element."""
        return ModuleTree(name, kind, tuple(self.tensor(n, size) for n in ("weight", "bias")[: 1 + bias]))


def _element_bytes(configuration: Configuration) -> int:
    name = str(configuration.get("dtype") or configuration.get("torch_dtype") or "float32").removeprefix("torch.")
    if name not in _FLOAT_BYTES:
        raise InputError(f"type {name!r} of weights is not known", source="config.json")
    return _FLOAT_BYTES[name]


Part = Callable[[Sizes, str, int], Iterable[ModuleTree]]
"""Modules of one layer: of its sizes, the prefix of class names, and its number."""


def norms(*names: str, kind: str = "RMSNorm") -> Part:
    """Norms of the hidden size."""

    def modules(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
        return (sizes.scale(name, sizes.hidden, f"{prefix}{kind}") for name in names)

    return modules


def dropouts(*names: str) -> Part:
    """Modules without tensors."""
    return lambda sizes, prefix, layer: (ModuleTree(name, "Dropout") for name in names)


def parts(*members: Part) -> Part:
    """Several parts one after the other."""
    return lambda sizes, prefix, layer: [module for part in members for module in part(sizes, prefix, layer)]


def either(chosen: Callable[[Sizes, int], bool], one: Part, other: Part) -> Part:
    """One part in the layers that are chosen, another in the rest."""
    return lambda sizes, prefix, layer: (one if chosen(sizes, layer) else other)(sizes, prefix, layer)
