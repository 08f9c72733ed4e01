"""Cost rules of ATen operators that move data without computing, and of views, which do not even move it."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.cost_rule import CostRule, move, nothing
from mtpp.formats.torch_export.flops.elementwise import CONVERSIONS, DROPOUTS, is_dropout_in_training

_VIEWS = (
    "_add_batch_dim _conj _neg_view _remove_batch_dim _reshape_alias _unsafe_view "
    "adjoint alias as_strided atleast_1d atleast_2d atleast_3d "
    "broadcast_tensors broadcast_to chunk conj detach diagonal dsplit expand expand_as flatten hsplit imag lift "
    "lift_fresh linalg_diagonal matrix_H mH mT meshgrid moveaxis movedim narrow numpy_T permute positive ravel real "
    "reshape reshape_as resolve_conj resolve_neg select slice split split_with_sizes squeeze swapaxes swapdims t "
    "tensor_split transpose unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view "
    "view_as view_as_complex view_as_real vsplit wait_tensor"
)

_BOOKKEEPING = (
    "_assert_async _assert_scalar _assert_tensor_metadata _linalg_check_errors empty empty_like empty_permuted "
    "empty_strided is_nonzero "
    "item _local_scalar_dense new_empty new_empty_strided numel requires_grad_ sym_constrain_range "
    "sym_constrain_range_for_size sym_numel sym_size sym_storage_offset sym_stride"
)

_MOVES = (
    "arange block_diag cat channel_shuffle clone column_stack combinations complex concat concatenate constant_pad_nd "
    "contiguous copy copy_ diag diag_embed diagflat diagonal_copy dstack expand_copy eye fill fill_diagonal flip "
    "fliplr flipud full full_like hstack im2col col2im linspace lift_fresh_copy logspace native_channel_shuffle "
    "new_full new_ones new_zeros one_hot ones ones_like pad permute_copy pixel_shuffle pixel_unshuffle "
    "reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d "
    "replication_pad3d roll rot90 row_stack scalar_tensor select_copy slice_copy split_copy split_with_sizes_copy "
    "squeeze_copy stack t_copy tensor tile transpose_copy tril tril_indices triu triu_indices unbind_copy "
    "unsqueeze_copy view_copy vstack zero zeros zeros_like max_unpool2d max_unpool3d _pad_circular _pad_enum "
    "select_scatter slice_scatter diagonal_scatter detach_copy"
)

VIEWS = frozenset(_VIEWS.split())
"""Operators whose results may share the storage of their first tensor: no FLOPs, and no traffic unless they copy."""

BOOKKEEPING = frozenset(_BOOKKEEPING.split())
"""Operators that only look at shapes, or check something."""

_SHARES_IF_IT_FITS = ("contiguous", "cpu", "pin_memory")
_OF_EACH = frozenset(("broadcast_tensors", "meshgrid"))

CREATION_LIKE = frozenset(
    (
        "empty_like", "full_like", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones_like",
        "zeros_like",
    )
)  # fmt: skip
"""Operators that look at the shape of their operand only: their result depends on no data."""


def is_view(call: CallView) -> bool:
    """Say whether results may share the storage of what they are made of: see :func:`viewed`."""
    if call.kind in DROPOUTS:
        return call.kind != "native_dropout" and not is_dropout_in_training(call)
    if call.kind in CONVERSIONS:
        return call.first().dtype == call.output().dtype
    if call.kind == "einsum":  # of one operand: axes in another order, or a diagonal
        return len(call.tensors("tensors")) == 1
    return call.kind in VIEWS or call.kind in _SHARES_IF_IT_FITS


def viewed(call: CallView) -> list[str | None]:
    """Return for each result of a view the tensor whose storage it may share: the first one, or that at its place."""
    names = list(call.call.tensors())
    count = len(call.outputs)
    if call.kind in _OF_EACH and len(names) == count:
        return list(names)
    return [next(iter(names), None)] * count


def _copied_if_it_must(call: CallView) -> NodeCost:
    """Copy where no view of the storage has the new shape, as after a transposition."""
    before, after = call.first(), call.output()
    free = before.strides is None or has_view(before.shape, before.strides, after.shape)
    return nothing(call) if free else move(call)


def _rows(call: CallView) -> NodeCost:
    """Read the rows that are taken and their indices, not the whole table."""
    indices = call.tensor_or_none("indices", "index")
    return NodeCost(flops=0, reads=call.output().bytes + (0 if indices is None else indices.bytes))


def _advanced_index(call: CallView) -> NodeCost:
    return NodeCost(flops=0, reads=call.output().bytes + sum(one.bytes for one in call.tensors("indices")))


def _bag(call: CallView) -> NodeCost:
    """Sum (or average, or take the maximum of) the rows of each bag; only these are read."""
    table, indices = call.tensor("weight"), call.tensor("indices")
    offsets = call.tensor_or_none("offsets")
    taken = indices.count * table.shape[-1]
    weighted = call.has("per_sample_weights")
    average = call.value("mode", 0) == 1
    size = table.bytes // max(1, table.count)
    reads = taken * size + indices.bytes + (0 if offsets is None else offsets.bytes)
    return NodeCost(flops=taken * (1 + weighted) + (call.output().count if average else 0), reads=reads)


def _written(flops: int) -> CostRule:
    """Copy the data, then write the updates over it; reductions take one operation per update."""

    def rule(call: CallView) -> NodeCost:
        updates = call.tensor_or_none("src", "source", "values")
        return NodeCost(flops=flops * updates.count if updates is not None else 0)

    return rule


RULES: dict[str, CostRule] = {
    **dict.fromkeys((*VIEWS, *BOOKKEEPING), nothing),
    **dict.fromkeys(("flatten", "ravel", "reshape", "reshape_as"), _copied_if_it_must),
    **dict.fromkeys(_MOVES.split(), move),
    **dict.fromkeys(("embedding", "gather", "index_select", "take", "take_along_dim"), _rows),
    **dict.fromkeys(("index", "_unsafe_index", "masked_select"), _advanced_index),
    **dict.fromkeys(("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"), _bag),
    **dict.fromkeys(("index_copy", "index_fill", "index_put", "masked_scatter", "put", "scatter"), _written(0)),
    **dict.fromkeys(("index_add", "index_reduce", "scatter_add", "scatter_reduce", "_unsafe_index_put"), _written(1)),
}


def has_view(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> bool:
    """Say whether elements at *strides* can be seen in another shape where they lie, as ``torch.reshape`` decides it.

    Axes that follow each other in memory without a gap are one run of elements. A new shape is a view if it splits
    these runs, and joins none. (``computeStride`` in ATen's ``TensorUtils.cpp``.)

    Parameters
    ----------
    new
        Of as many elements.
    """
    runs: list[int] = []
    inner = 0
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size == 1:
            continue
        if runs and stride == inner:
            runs[-1] *= size
        else:
            runs.append(size)
        inner = stride * size
    axes = [size for size in reversed(new) if size != 1]
    place = 0
    for run in runs:
        joined = 1
        while joined < run and place < len(axes):
            joined *= axes[place]
            place += 1
        if joined != run:
            return False
    return True
