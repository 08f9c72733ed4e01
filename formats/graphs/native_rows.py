"""Rows of the native format as columns: checked all at once, and one by one only to name what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from mtpp.formats.io.json_shape import (
    check_keys,
    pointer,
    require_list,
    require_number,
    require_object,
    require_text,
    require_whole,
)
from mtpp.inference.graph_columns import OpColumns, TensorColumns

_OP_KEYS = ("name", "work")
_OP_OPTIONAL = ("kind", "param_bytes", "backward", "kept_bytes", "trainable_bytes", "backward_share")
_TENSOR_KEYS = ("name", "producer", "consumers")
_TENSOR_OPTIONAL = ("bytes", "transfer")

_EXACT = {int, Fraction}


def op_columns(rows: list[Any]) -> OpColumns:
    """Return the ops of a document as columns.

    Raises
    ------
    InputError
        On a row that is no object, a missing or unknown key, a value of the wrong type; the first there is.
    """
    if not op_rows_are_sound(rows):
        for i, row in enumerate(rows):
            check_op(row, i)
    return OpColumns(
        name=[row["name"] for row in rows],
        work=[row["work"] for row in rows],
        kind=[row.get("kind", "") for row in rows],
        param_bytes=[row.get("param_bytes", 0) for row in rows],
        backward=_optional(rows, "backward"),
        kept_bytes=_optional(rows, "kept_bytes"),
        trainable_bytes=_optional(rows, "trainable_bytes"),
        backward_share=_optional(rows, "backward_share"),
    )


def tensor_columns(rows: list[Any]) -> TensorColumns:
    """Return the tensors of a document as columns; raises as :func:`op_columns`."""
    if not tensor_rows_are_sound(rows):
        for t, row in enumerate(rows):
            check_tensor(row, t)
    return TensorColumns(
        name=[row["name"] for row in rows],
        producer=[row["producer"] for row in rows],
        consumers=[row["consumers"] for row in rows],
        bytes=[row.get("bytes") for row in rows],
        transfer=[row.get("transfer") for row in rows],
    )


def op_rows_are_sound(rows: list[Any]) -> bool:
    """Return whether all rows pass :func:`check_op`, far faster than by calling it."""
    return _have_columns(rows, _OP_KEYS, _OP_OPTIONAL) and all(
        _kinds(rows, key) <= kinds
        for key, kinds in (
            ("name", {str}),
            ("work", _EXACT),
            ("kind", {str}),
            ("param_bytes", {int}),
            ("backward", _EXACT),
            ("kept_bytes", {int}),
            ("trainable_bytes", {int}),
            ("backward_share", _EXACT),
        )
    )


def tensor_rows_are_sound(rows: list[Any]) -> bool:
    """Return whether all rows pass :func:`check_tensor`."""
    return (
        _have_columns(rows, _TENSOR_KEYS, _TENSOR_OPTIONAL)
        and all(
            _kinds(rows, key) <= kinds
            for key, kinds in (
                ("name", {str}),
                ("producer", {str}),
                ("consumers", {list}),
                ("bytes", {int}),
                ("transfer", _EXACT),
            )
        )
        and set(map(type, chain.from_iterable(row["consumers"] for row in rows))) <= {str}
    )


def _have_columns(rows: list[Any], required: Sequence[str], optional: Sequence[str]) -> bool:
    """Return whether all rows are objects with all of the required keys and none that is not known."""
    if not set(map(type, rows)) <= {dict}:
        return False
    needed, known = set(required), {*required, *optional}
    shapes = set(map(tuple, rows))  # few: a program that writes graphs writes its keys in one order
    return all(needed.issubset(keys) and known.issuperset(keys) for keys in shapes)


def _optional(rows: list[Any], key: str) -> list[Any]:
    """Return a column of values that few graphs have, empty where there are none."""
    return [row.get(key) for row in rows] if any(key in row for row in rows) else []


def _kinds(rows: list[Any], key: str) -> set[type]:
    return {type(row[key]) for row in rows if key in row}


def check_op(row: Any, i: int) -> None:
    """Raise the fault of one row, if it has any."""
    where = pointer("ops", i)
    check_keys(require_object(row, where), where, _OP_KEYS, _OP_OPTIONAL)
    require_text(row["name"], pointer("ops", i, "name"))
    require_text(row.get("kind", ""), pointer("ops", i, "kind"))
    require_number(row["work"], pointer("ops", i, "work"))
    require_whole(row.get("param_bytes", 0), pointer("ops", i, "param_bytes"))
    require_number(row.get("backward", 0), pointer("ops", i, "backward"))
    require_whole(row.get("kept_bytes", 0), pointer("ops", i, "kept_bytes"))
    require_whole(row.get("trainable_bytes", 0), pointer("ops", i, "trainable_bytes"))
    require_number(row.get("backward_share", 0), pointer("ops", i, "backward_share"))


def check_tensor(row: Any, t: int) -> None:
    """Raise the fault of one row, if it has any."""
    where = pointer("tensors", t)
    check_keys(require_object(row, where), where, _TENSOR_KEYS, _TENSOR_OPTIONAL)
    require_text(row["name"], pointer("tensors", t, "name"))
    require_text(row["producer"], pointer("tensors", t, "producer"))
    for c, consumer in enumerate(require_list(row["consumers"], pointer("tensors", t, "consumers"))):
        require_text(consumer, pointer("tensors", t, "consumers", c))
    if "bytes" in row:
        require_whole(row["bytes"], pointer("tensors", t, "bytes"))
    if "transfer" in row:
        require_number(row["transfer"], pointer("tensors", t, "transfer"))
