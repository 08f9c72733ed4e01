"""Operators that write and views against PyTorch's own schemas; skipped without PyTorch."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from mtpp.formats.torch_export.call_view import CallView  # noqa: E402
from mtpp.formats.torch_export.flops.costs import plain_kind  # noqa: E402
from mtpp.formats.torch_export.flops.movement import is_view, viewed  # noqa: E402
from mtpp.formats.torch_export.in_place import written, written_beside  # noqa: E402
from mtpp.formats.torch_export.program import Call, TensorRef  # noqa: E402
from mtpp.formats.torch_export.tensor_type import TensorType  # noqa: E402

NOT_EXPORTED = ("_amp_", "_fused_ada", "_fused_sgd", "_cummax_helper", "_cummin_helper", "fbgemm_")
"""Optimisers, and what only other operators call."""

PAIRS = {"dim_max", "dim_min", "dim_values", "values", "values_stable"}
"""Overloads that put two results into operands."""

SILENT = ("aten::batch_norm_gather_stats", "aten::batch_norm_update_stats")
"""Operators that update statistics whether or not something trains, and whose schemas do not say so."""

OF_SCRIPTS = {
    "__getitem__", "Delete", "_grad_sum_to_size", "_set_item", "as_tensor", "clear", "get", "keys", "pop", "popitem",
    "remove", "setdefault", "update", "values", "set_data", "retain_grad", "record_stream", "requires_grad_",
    "_autocast_to_full_precision", "_autocast_to_reduced_precision", "sort.Tensor",
}  # fmt: skip
"""Of TorchScript's lists and dictionaries, and those that change no data."""

SPARSE_OR_NESTED = (
    "_fw_primal", "_indices", "_make_dual", "_ncf_", "_nested_", "_sparse_", "_test_", "_unpack_dual", "_values",
    "ccol_", "coalesce", "col_indices", "crow_", "cuda", "indices", "row_indices", "slice_inverse",
)  # fmt: skip


def schemas() -> Iterator[tuple[Any, CallView]]:
    """Yield all schemas of ATen with tensors, each with a call of its operator on small matrices."""
    matrix = TensorType(7, (4, 4))
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if (
            not schema.name.startswith("aten::")
            or name.startswith(NOT_EXPORTED)
            or {name, f"{name}.{schema.overload_name}"} & OF_SCRIPTS
        ):
            continue
        operands: dict[str, Any] = {}
        for one in schema.arguments:
            if "Tensor" in str(one.type):
                operands[one.name] = [TensorRef(one.name)] if "List" in str(one.type) else TensorRef(one.name)
        if operands:
            types = dict.fromkeys(operands, matrix)
            call = Call(f"aten.{name}", schema.overload_name, name, operands, ["made"], None, 0)
            yield schema, CallView(call, plain_kind(call.kind), types, [matrix])


def test_operators_that_write_are_known() -> None:
    """Every operand that a schema marks as written; of several that results are put into, pairs alone."""
    differ = []
    for schema, call in schemas():
        due = {one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write}
        filled = {one.name for one in schema.arguments if one.name in due and one.kwarg_only}
        if not due and schema.name.startswith(SILENT):
            due = {"running_mean", "running_var"}
        known = not filled or due == {"out"} or schema.overload_name in PAIRS
        if known and not call.kind.endswith("_backward") and set(written(call)) != due:
            differ.append((schema.name, schema.overload_name, due, written(call)))
    assert differ == []


def test_views_are_known() -> None:
    """Every operator of dense tensors whose schema says that its result may share an operand's memory."""
    missed = set()
    for schema, call in schemas():
        name = schema.name.removeprefix("aten::")
        writes = any(one.alias_info is not None and one.alias_info.is_write for one in schema.arguments)
        shares = any(one.alias_info is not None for one in schema.returns)
        if shares and not writes and not name.startswith(SPARSE_OR_NESTED) and not is_view(call):
            missed.add(name)
    assert missed == set()


@pytest.mark.parametrize(
    ("kind", "operands", "shared"),
    [
        ("broadcast_tensors", {"tensors": ["a", "b"]}, ["a", "b"]),
        ("meshgrid", {"tensors": ["a", "b"]}, ["a", "b"]),
        ("chunk", {"self": "a"}, ["a", "a"]),
    ],
)
def test_results_share_memory_with_what_they_are_made_of(kind: str, operands: Any, shared: list[str]) -> None:
    """The tensor at their place in a list, or the only one."""
    given = {
        key: [TensorRef(one) for one in value] if isinstance(value, list) else TensorRef(value)
        for key, value in operands.items()
    }
    types = dict.fromkeys("ab", TensorType(7, (4, 4)))
    call = CallView(Call(f"aten.{kind}", "", kind, given, ["x", "y"], None, 0), kind, types, [types["a"], types["b"]])
    assert is_view(call)
    assert viewed(call) == shared


def test_statistics_are_written_where_no_schema_says_so() -> None:
    """Every operator with running statistics either writes them when it trains, returns new ones, or never does."""
    silent = {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::") and any(one.name == "running_mean" for one in schema.arguments)
    }
    left = {name for name in silent if not written_beside(name, {"training": True, "use_input_stats": True}.get)}
    assert all(name.endswith(("_backward", "_functional", "_no_update", "_no_training")) for name in left), left
    off = {"training": False, "use_input_stats": False}
    assert not written_beside("batch_norm", off.get)
    assert not written_beside("instance_norm", off.get)
