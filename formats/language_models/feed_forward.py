"""Feed-forward networks: gated and plain ones, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable

from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.tensors import Block, ExpertStack, Shapes, linear

Condition = Callable[[Configuration, int], bool]


def gated(
    path: str = "mlp",
    size: str = "intermediate_size",
    *,
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
    fused: str | None = None,
    bias: bool | str = False,
    times: str | None = None,
    optional: bool = False,
) -> Block:
    """Return a gated network of three projections, the first two of them in one where *fused* is its name.

    Parameters
    ----------
    size, times
        Key of its width, and of a number that multiplies it.
    optional
        Whether a width of 0 leaves it out.
    """

    def block(c: Configuration, layer: int) -> Shapes:
        if optional and not c.whole(size, layer):
            return {}
        width, biased = c.size(size, layer) * (1 if times is None else c.whole(times)), c.flag(bias)
        if not width:
            return {}
        gate, up, down = (f"{path}.{name}" for name in names)
        if fused is not None:
            shapes = linear(f"{path}.{fused}", 2 * width, c.hidden, bias=biased)
        else:
            shapes = linear(gate, width, c.hidden, bias=biased) | linear(up, width, c.hidden, bias=biased)
        return shapes | linear(down, c.hidden, width, bias=biased)

    return block


def plain(
    path: str = "mlp", *, names: tuple[str, str] = ("c_fc", "c_proj"), bias: bool | str = True, transposed: bool = False
) -> Block:
    """Return a network of two projections, four times as wide as a token where no width is given."""

    def block(c: Configuration, layer: int) -> Shapes:
        width = c.size("intermediate_size", layer) if "intermediate_size" in c else 4 * c.hidden
        up, down = (f"{path}.{name}" if path else name for name in names)
        biased = c.flag(bias)
        shapes = linear(up, width, c.hidden, bias=biased) | linear(down, c.hidden, width, bias=biased)
        return _transposed(shapes) if transposed else shapes

    return block


def experts(
    path: str = "mlp",
    size: str = "moe_intermediate_size",
    *,
    router: str = "gate",
    bias: bool = False,
    router_bias: bool = False,
    input_major: bool = False,
    optional: bool = False,
) -> Block:
    """Return a router and gated experts, all of them in two tensors.

    Parameters
    ----------
    bias, router_bias
        Whether experts and router have biases.
    input_major
        Whether rows of the tensors are inputs.
    optional
        Whether there may be none.
    """

    def block(c: Configuration, layer: int) -> Shapes:
        if optional and not c.whole("num_experts"):
            return {}
        count, width, hidden = c.size("num_experts"), c.size(size, layer), c.hidden
        shapes = linear(f"{path}.{router}", count, hidden, bias=router_bias)
        up, down = ExpertStack((count, 2 * width, hidden)), ExpertStack((count, hidden, width))
        if input_major:
            up, down = ExpertStack((count, hidden, 2 * width)), ExpertStack((count, width, hidden))
        for name, shape, outputs in (("gate_up_proj", up, 2 * width), ("down_proj", down, hidden)):
            shapes[f"{path}.experts.{name}"] = shape
            if bias:
                shapes[f"{path}.experts.{name}_bias"] = (count, outputs)
        return shapes

    return block


def shared_gate(path: str = "mlp.shared_expert_gate") -> Block:
    """Return the gate of a shared expert."""
    return lambda c, layer: linear(path, 1, c.hidden)


def chosen(condition: Condition, sparse: Block, dense: Block) -> Block:
    """Return experts in layers that the condition names, a dense network in the others."""
    return lambda c, layer: sparse(c, layer) if condition(c, layer) else dense(c, layer)


def after_dense_layers(c: Configuration, layer: int) -> bool:
    """Say whether a layer has experts: all do after the first dense ones."""
    listed = c.get("mlp_layer_types")
    if isinstance(listed, list) and layer < len(listed):
        return bool(listed[layer] == "sparse")
    return layer >= c.whole("first_k_dense_replace")


def by_sparse_step(c: Configuration, layer: int) -> bool:
    """Say whether a layer has experts: every n-th does, unless it is listed as dense."""
    step = c.whole("decoder_sparse_step")
    listed = layer in c.sizes("mlp_only_layers")
    return not listed and c.whole("num_experts") > 0 and step > 0 and (layer + 1) % step == 0


def by_period(c: Configuration, layer: int) -> bool:
    """Say whether a layer has experts: one at an offset within each period, if there are several experts."""
    offset = c.whole("expert_layer_offset")
    return c.size("num_experts") > 1 and layer % c.size("expert_layer_period") == offset


def _transposed(shapes: Shapes) -> Shapes:
    return {name: type(shape)(shape[::-1]) for name, shape in shapes.items()}
