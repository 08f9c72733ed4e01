"""Feed-forward parts: dense ones, experts with routers, shared experts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mtpp.formats.module_trees.sizes import SINGLE, Part, Sizes
from mtpp.language_models.modules import ModuleTensor, ModuleTree


def _dense(sizes: Sizes, prefix: str, inner: int, name: str = "mlp") -> ModuleTree:
    biased = bool(sizes.get("mlp_bias", False))
    children = (
        sizes.linear("gate_proj", inner, sizes.hidden, biased),
        sizes.linear("up_proj", inner, sizes.hidden, biased),
        sizes.linear("down_proj", sizes.hidden, inner, biased),
        ModuleTree("act_fn", "Activation"),
    )
    return ModuleTree(name, f"{prefix}MLP", children=children)


def mlp(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
    """Gated feed-forward part."""
    yield _dense(sizes, prefix, sizes.needed("intermediate_size"))


def fused_mlp(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
    """Gated feed-forward part whose first two matrices are one."""
    inner = sizes.needed("intermediate_size")
    children = (
        sizes.linear("gate_up_proj", 2 * inner, sizes.hidden),
        sizes.linear("down_proj", sizes.hidden, inner),
        ModuleTree("activation_fn", "Activation"),
    )
    yield ModuleTree("mlp", f"{prefix}MLP", children=children)


def _experts(sizes: Sizes, prefix: str, number: int, inner: int) -> ModuleTree:
    tensors = (
        sizes.tensor("gate_up_proj", number, 2 * inner, sizes.hidden),
        sizes.tensor("down_proj", number, sizes.hidden, inner),
    )
    return ModuleTree("experts", f"{prefix}Experts", tensors, (ModuleTree("act_fn", "Activation"),))


def always(sizes: Sizes, layer: int) -> bool:
    """Return True for every layer."""
    return True


def mixture(
    *,
    inner: str,
    gate_first: bool = True,
    sparse: Callable[[Sizes, int], bool] = always,
    shared: bool = False,
) -> Part:
    """Experts with a router, and a dense part in layers that are not sparse.

    Parameters
    ----------
    inner
        Key of the configuration with the inner size of an expert.
    gate_first
        The router is defined before the experts.
    sparse
        Says which layers have experts.
    shared
        One more expert for all tokens, with a gate of its own.
    """

    def modules(sizes: Sizes, prefix: str, layer: int) -> Iterable[ModuleTree]:
        if not sparse(sizes, layer):
            yield from mlp(sizes, prefix, layer)
            return
        count = sizes.needed("num_experts", "num_local_experts")
        gate = sizes.linear("gate", count, sizes.hidden, kind=f"{prefix}TopKRouter")
        experts = _experts(sizes, prefix, count, sizes.needed(inner))
        children = [gate, experts] if gate_first else [experts, gate]
        if shared:
            children.append(_dense(sizes, prefix, sizes.needed("shared_expert_intermediate_size"), "shared_expert"))
            children.append(sizes.linear("shared_expert_gate", 1, sizes.hidden))
        yield ModuleTree("mlp", f"{prefix}SparseMoeBlock", children=tuple(children))

    return modules


def sparse_by_step(sizes: Sizes, layer: int) -> bool:
    """Return whether a layer has experts: each n-th one, but for a list."""
    return layer not in sizes.get("mlp_only_layers", []) and (layer + 1) % sizes.number("decoder_sparse_step", 1) == 0


def shared_experts(*, correction: bool) -> Part:
    """Routed and shared experts after a number of dense layers."""

    def modules(sizes: Sizes, prefix: str, layer: int) -> Iterable[ModuleTree]:
        if layer < sizes.number("first_k_dense_replace", 0):
            yield from mlp(sizes, prefix, layer)
            return
        count, inner = sizes.needed("n_routed_experts"), sizes.needed("moe_intermediate_size")
        gate = [ModuleTensor("weight", count * sizes.hidden, SINGLE, fixed=True)]
        if correction:
            gate.append(ModuleTensor("e_score_correction_bias", count, SINGLE, buffer=True, fixed=True))
        shared = _dense(sizes, prefix, inner * sizes.number("n_shared_experts", 1), "shared_experts")
        router = ModuleTree("gate", f"{prefix}TopkRouter", tuple(gate))
        yield ModuleTree("mlp", f"{prefix}Moe", children=(_experts(sizes, prefix, count, inner), router, shared))

    return modules


def hybrid_mixture(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
    """Granite's experts, where there are any, and its shared part."""
    count, inner = sizes.number("num_local_experts", 8), sizes.number("shared_intermediate_size", 1024)
    if count:
        router = sizes.linear("router", count, sizes.hidden, kind=f"{prefix}TopKRouter")
        experts = _experts(sizes, prefix, count, sizes.needed("intermediate_size"))
        yield ModuleTree("block_sparse_moe", f"{prefix}MoE", children=(router, experts))
    children = (
        ModuleTree("activation", "Activation"),
        sizes.linear("input_linear", 2 * inner, sizes.hidden),
        sizes.linear("output_linear", sizes.hidden, inner),
    )
    yield ModuleTree("shared_mlp", f"{prefix}MLP", children=children)


def biased_mixture(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
    """Experts and a router that have biases."""
    count, inner = sizes.needed("num_local_experts", "num_experts"), sizes.needed("intermediate_size")
    tensors = (
        sizes.tensor("gate_up_proj", count, sizes.hidden, 2 * inner),
        sizes.tensor("gate_up_proj_bias", count, 2 * inner),
        sizes.tensor("down_proj", count, inner, sizes.hidden),
        sizes.tensor("down_proj_bias", count, sizes.hidden),
    )
    router = sizes.linear("router", count, sizes.hidden, True, f"{prefix}TopKRouter")
    yield ModuleTree("mlp", f"{prefix}MLP", children=(router, ModuleTree("experts", f"{prefix}Experts", tensors)))
