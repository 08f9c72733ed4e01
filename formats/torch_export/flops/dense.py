"""Cost rules of dense linear algebra in ATen: matrix products, convolutions, attention, recurrent layers."""

from __future__ import annotations

import math
from dataclasses import replace

from mtpp.formats.modelled.contraction import contraction, elements_read
from mtpp.formats.modelled.flop_counts import GRU_FLOPS, LSTM_FLOPS, RNN_FLOPS, SOFTMAX_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost, dense
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.cost_rule import CostRule

_LONGEST_CHAIN = 100

_GROUPED = ("_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2", "transformers.grouped_mm_fallback")
"""Products of mixtures of experts: ATen's, and transformers' own where a device has none."""


def _linear(call: CallView) -> NodeCost:
    return dense(call.output().count * call.tensor("input", "self", "X").shape[-1])


def _product(call: CallView) -> NodeCost:
    """Each element of the result is a dot product along the last axis of the first operand."""
    return dense(call.output().count * call.tensor("self", "input", "mat1").shape[-1])


def _added_product(first: str) -> CostRule:
    """Return the rule of a product that is added to something."""

    def rule(call: CallView) -> NodeCost:
        matrix = call.tensor(first)
        scaled = (call.value("alpha", 1) != 1) + (call.value("beta", 1) not in (0, 1))
        return dense(call.output().count * matrix.shape[-1], scaled * call.output().count)

    return rule


def _summed_products(call: CallView) -> NodeCost:
    batches = call.tensor("batch1")
    return dense(call.output().count * batches.shape[-1] * batches.shape[0])


def _grouped_product(call: CallView) -> NodeCost:
    """Rows, columns or the inner side lie in groups, each of which has its own matrix; all groups make one side.

    Only data tells how many lie in each group: all of them are multiplied, and no more matrices are read than there are
    rows or columns (experts of a mixture that no token chooses are not).
    """
    first, second = call.tensor("self", "input"), call.tensor("mat2", "weight")
    a, b = first.shape, second.shape
    if len(a) == len(b) == 2:
        return dense(a[0] * a[1] * b[1], call.has("bias") * call.output().count)
    unread = 0
    for matrices, sides in ((first, b[-1:]), (second, a[:1])):
        if len(matrices.shape) > len(call.output().shape):
            groups = matrices.shape[0]
            unread = matrices.bytes * (groups - min(groups, *sides)) // max(1, groups)
    cost = dense(call.output().count * a[-1], call.has("bias") * call.output().count)
    return replace(cost, reads=call.read_bytes - unread)


def _trilinear(call: CallView) -> NodeCost:
    """Multiply three tensors along axes that each may lack, and sum over some of them."""
    shapes = []
    for index in (1, 2, 3):
        shape = [*call.tensor(f"i{index}").shape]
        for axis in sorted(call.value(f"expand{index}", [])):
            shape.insert(axis, 1)
        shapes.append(shape)
    volume = math.prod(max(sizes) for sizes in zip(*shapes, strict=True))
    return dense(volume, volume)


def _outer(call: CallView) -> NodeCost:
    return NodeCost(flops=call.output().count)


def _bilinear(call: CallView) -> NodeCost:
    weight = call.tensor("weight")
    rows = call.output().count // max(1, weight.shape[0])
    return dense(rows * weight.count + call.output().count * weight.shape[2])


def _tensordot(call: CallView) -> NodeCost:
    first = call.tensor("self").shape
    return dense(call.output().count * math.prod(first[axis] for axis in call.value("dims_self", [])))


def _chain(call: CallView) -> NodeCost:
    """Multiply in the cheapest order, as PyTorch does: O(matrices³) by the textbook's dynamic program."""
    shapes = [one.shape for one in call.tensors("tensors") or call.tensors("matrices")]
    if len(shapes) > _LONGEST_CHAIN:
        raise ValueError(f"a chain of {len(shapes):,} matrices")
    sides = [shapes[0][0] if len(shapes[0]) > 1 else 1]
    sides += [one[-1] for one in shapes[:-1]]
    sides.append(shapes[-1][1] if len(shapes[-1]) > 1 else 1)
    least: dict[tuple[int, int], int] = {(i, i): 0 for i in range(len(shapes))}
    for length in range(1, len(shapes)):
        for i in range(len(shapes) - length):
            j = i + length
            least[i, j] = min(
                least[i, cut] + least[cut + 1, j] + sides[i] * sides[cut + 1] * sides[j + 1] for cut in range(i, j)
            )
    return dense(least[0, len(shapes) - 1])


def _power(call: CallView) -> NodeCost:
    """Square and multiply; an inverse is not counted."""
    exponent, matrix = abs(int(call.value("n", 1))), call.tensor("self")
    products = exponent.bit_length() - 1 + exponent.bit_count() - 1 if exponent else 0
    return dense(products * matrix.count * matrix.shape[-1])


def _distances(call: CallView) -> NodeCost:
    """Each pair of rows: difference, power and sum of every feature."""
    return NodeCost(flops=3 * call.output().count * call.tensor("x1").shape[-1])


def _einsum(call: CallView) -> NodeCost:
    operands, equation = call.tensors("tensors"), str(call.value("equation", ""))
    shapes = [one.shape for one in operands]
    parts = zip(operands, elements_read(equation, shapes), strict=True)
    reads = sum(one.bytes * read // max(1, one.count) for one, read in parts)
    return replace(contraction(equation, shapes), reads=reads)


def _convolution(call: CallView) -> NodeCost:
    """Every output element is a dot product over (input channels / group) × kernel, the weight's trailing axes."""
    weight = call.tensor("weight", "self")
    if call.value("transposed", False):
        return _transposed_convolution(call)
    return dense(call.output().count * math.prod(weight.shape[1:]))


def _transposed_convolution(call: CallView) -> NodeCost:
    """Every input element is multiplied with (output channels / group) × kernel weights."""
    return dense(call.tensor("input", "self").count * math.prod(call.tensor("weight").shape[1:]))


def _time_convolution(call: CallView) -> NodeCost:
    """``conv_tbc``: the weight is kernel × input × output channels."""
    weight = call.tensor("weight").shape
    return dense(call.output().count * weight[0] * weight[1])


def _attention(call: CallView) -> NodeCost:
    """Scores of all queries and keys, and their mixture of values; softmax and scaling of every score."""
    query, key, value = call.tensor("query").shape, call.tensor("key").shape, call.tensor("value").shape
    scores = call.output().count // max(1, value[-1]) * key[-2]  # a batch may be that of keys and values only
    masked = call.has("attn_mask") or call.has("attn_bias") or bool(call.value("is_causal", False))
    return dense(scores * (query[-1] + value[-1]), scores * (1 + SOFTMAX_FLOPS + masked))


def _recurrent(flops_per_unit: int, gates: int) -> CostRule:
    """Each step multiplies its input and its state with the weights of every layer and direction; then the gates."""

    def rule(call: CallView) -> NodeCost:
        packed = call.call.overload == "data"
        x, parameters = call.tensor("data" if packed else "input"), call.tensors("params")
        steps = x.shape[0] if packed else math.prod(x.shape[:-1])
        of_each = 4 if call.value("has_biases", True) else 2
        if parameters[1].shape[1] * gates != parameters[1].shape[0]:
            of_each += 1  # the hidden state is projected
        units = sum(one.shape[0] // gates for one in parameters[::of_each])
        weights = sum(one.count for one in parameters if len(one.shape) == 2)
        return dense(steps * weights, flops_per_unit * steps * units)

    return rule


def _cell(flops_per_unit: int) -> CostRule:
    """One step of a recurrent layer."""

    def rule(call: CallView) -> NodeCost:
        rows = call.tensor("input").shape[0]
        weights = [call.tensor("w_ih"), call.tensor("w_hh")]
        return dense(rows * sum(one.count for one in weights), flops_per_unit * rows * weights[1].shape[-1])

    return rule


RULES: dict[str, CostRule] = {
    **dict.fromkeys(("linear", "_weight_int8pack_mm", "_weight_int4pack_mm"), _linear),
    **dict.fromkeys(
        ("mm", "bmm", "matmul", "mv", "dot", "vdot", "inner", "_int_mm", "_scaled_mm", "_scaled_mm_v2"), _product
    ),
    **dict.fromkeys(("addmm", "_addmm_activation"), _added_product("mat1")),
    **dict.fromkeys(_GROUPED, _grouped_product),
    "_trilinear": _trilinear,
    "addbmm": _summed_products,
    "addmv": _added_product("mat"),
    "baddbmm": _added_product("batch1"),
    "addr": _outer,
    "ger": _outer,
    "outer": _outer,
    "bilinear": _bilinear,
    "chain_matmul": _chain,
    "linalg_multi_dot": _chain,
    "matrix_power": _power,
    "linalg_matrix_power": _power,
    "cdist": _distances,
    "_cdist_forward": _distances,
    "tensordot": _tensordot,
    "einsum": _einsum,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "_convolution", "_conv_depthwise2d"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed_convolution),
    "conv_tbc": _time_convolution,
    **dict.fromkeys(
        (
            "scaled_dot_product_attention",
            "_scaled_dot_product_attention_math",
            "_scaled_dot_product_cudnn_attention",
            "_scaled_dot_product_efficient_attention",
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_flash_attention_for_cpu",
        ),
        _attention,
    ),
    "gru": _recurrent(GRU_FLOPS, 3),
    "lstm": _recurrent(LSTM_FLOPS, 4),
    "rnn_relu": _recurrent(RNN_FLOPS, 1),
    "rnn_tanh": _recurrent(RNN_FLOPS, 1),
    "gru_cell": _cell(GRU_FLOPS),
    "lstm_cell": _cell(LSTM_FLOPS),
    "rnn_relu_cell": _cell(RNN_FLOPS),
    "rnn_tanh_cell": _cell(RNN_FLOPS),
}
