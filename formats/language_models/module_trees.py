"""Trees of modules as transformers 5 builds them, from a ``config.json`` alone.

Rules by bytes and by name depend on names, on the order of definition, on classes and on buffers, all of which the
implementation decides and no checkpoint has. Checked against transformers' own modules on the meta device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.described import ELEMENT_BYTES
from mtpp.formats.language_models.module_classes import MODULE_CLASSES, ModuleClasses
from mtpp.formats.language_models.skeleton import Skeleton, skeleton
from mtpp.language_models.modules import Modules, ModuleTensor, ModuleTree

_SINGLE = 4
"""Bytes of float32, in which frequencies of rotary embeddings and some routers are whatever the model's type."""


def is_known(configuration: Mapping[str, Any]) -> bool:
    """Return whether the modules of an architecture are known."""
    return _name_of(configuration) in MODULE_CLASSES


def type_as_built(configuration: Mapping[str, Any]) -> str:
    """Return the name of the type in which transformers builds a model."""
    return str(configuration.get("dtype") or configuration.get("torch_dtype") or "float32").removeprefix("torch.")


def modules_of_configuration(configuration: Mapping[str, Any], source: str = "config.json") -> Modules:
    """Tree of the modules that transformers builds.

    Raises
    ------
    InputError
        If the architecture is not among :data:`MODULE_CLASSES`, or a size is missing.
    """
    name = _name_of(configuration)
    classes = MODULE_CLASSES.get(name)
    if classes is None:
        raise InputError(
            f"modules of model_type {name!r} are not known",
            source=source,
            remedy=f"known are {', '.join(MODULE_CLASSES)}; others with mtpp[hf], or as a torch.nn.Module",
        )
    kind = type_as_built(configuration)
    if kind not in ELEMENT_BYTES:
        raise InputError(f"type {kind!r} of weights is not known", source=source)
    row = ARCHITECTURES[name]
    c = row.configured(configuration, source)
    parts = skeleton(row, c, ELEMENT_BYTES[kind])
    root = _Module()
    for path, tensor in _weights(classes, parts):
        root.at(path).tensors.append(tensor)
    for frequencies in _frequencies(classes.rotary(c), classes.rotary_kinds(name, c)):
        root.at(f"{row.root}.rotary_emb").tensors.append(frequencies)
    embedding = f"{row.root}.{row.embedding}"
    root.at(row.head).tensors.append(root.at(embedding).tensors[0])
    return Modules(
        root=root.tree(classes),
        tied=((f"{row.head}.weight", f"{embedding}.weight"),) if parts.tied else (),
        undividable=(classes.class_of("layer", row.stack),),
        layer_prefix=f"{row.root}.{row.stack}",
        embedding=embedding,
        final_norm=parts.other.weights[-1].name.rpartition(".")[0],
        head=row.head,
    )


def llama_names(layers: int, tied: bool) -> Modules:
    """Modules by the names of Llama with tensors of one element, for layouts of models that are not given."""
    small = dict.fromkeys(("hidden_size", "num_attention_heads", "intermediate_size", "vocab_size", "head_dim"), 1)
    return modules_of_configuration(
        {"model_type": "llama", "num_hidden_layers": layers, "tie_word_embeddings": tied, **small}
    )


def _name_of(configuration: Mapping[str, Any]) -> str:
    return str(configuration.get("model_type", "")).lower()


def _weights(classes: ModuleClasses, parts: Skeleton) -> Iterator[tuple[str, ModuleTensor]]:
    """Yield tensors with the full names of their modules: all weights but the head's, and buffers beside them."""
    for part in (parts.embedding, *parts.layers, parts.other):
        for weight in part.weights:
            path, _, own = weight.name.rpartition(".")
            size, single = weight.bytes // weight.parameters, classes.single_router and path.endswith(".gate")
            yield path, ModuleTensor(own, weight.parameters, _SINGLE if single else size, fixed=single)
            if single and classes.corrected_router:
                correction = "e_score_correction_bias"
                yield path, ModuleTensor(correction, weight.shape[0], _SINGLE, buffer=True, fixed=True)
            if part is parts.embedding and classes.scaled_embedding:
                yield path, ModuleTensor("embed_scale", 1, size, buffer=True, stored=False)


def _frequencies(count: int, beginnings: Iterable[str]) -> Iterator[ModuleTensor]:
    """Yield the buffers of rotary embeddings."""
    for beginning in beginnings:
        for own in ("inv_freq", "original_inv_freq"):
            yield ModuleTensor(beginning + own, count, _SINGLE, buffer=True, stored=False, fixed=True)


@dataclass
class _Module:
    """A module to which tensors are added by full names."""

    tensors: list[ModuleTensor] = field(default_factory=list)
    children: dict[str, _Module] = field(default_factory=dict)

    def at(self, path: str) -> _Module:
        """Return the module of a full name, made if it is new."""
        found = self
        for name in path.split("."):
            found = found.children.setdefault(name, _Module())
        return found

    def tree(self, classes: ModuleClasses, name: str = "", parent: str = "") -> ModuleTree:
        """Return the tree with classes, in order of definition, with modules without weights."""
        role = "layer" if name.isdecimal() else "sparse" if name == "mlp" and "experts" in self.children else name
        children = (
            self.children[child].tree(classes, child, role) if empty is None else ModuleTree(child, empty)
            for child, empty in classes.in_order(role, self.children)
        )
        return ModuleTree(name, classes.class_of(role, parent), tuple(self.tensors), tuple(children))
