"""Rules of documents in the words of readers: tables of rows, which are looked at by columns."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.document_shape import Rule, array, nullable, record, text
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import exact_number, names, shaped, table, whole_number, whole_size

GOOD = st.fixed_dictionaries(
    {"name": st.just("a"), "work": st.just(1)}, optional={"kind": st.just(""), "param_bytes": st.just(2)}
)
BAD = st.sampled_from([None, True, "b", 3, 0.5, Fraction(1, 2), ["b"], {}])
ODD = st.fixed_dictionaries({}, optional=dict.fromkeys(("name", "work", "kind", "param_bytes", "other"), BAD)) | BAD
FLOWS = st.fixed_dictionaries(
    {"name": st.just("t"), "producer": st.just("a"), "consumers": st.just(["b"])},
    optional={"bytes": st.just(2), "transfer": st.just(Fraction(1, 2))},
)
ODD_FLOWS = (
    st.fixed_dictionaries({}, optional=dict.fromkeys(("name", "producer", "consumers", "bytes", "transfer"), BAD)) | BAD
)
KEYS = {
    "ops": ({"name": text, "work": exact_number}, {"kind": text, "param_bytes": whole_size}, GOOD, ODD),
    "tensors": (
        {"name": text, "producer": text, "consumers": names},
        {"bytes": whole_number, "transfer": nullable(exact_number)},
        FLOWS,
        ODD_FLOWS,
    ),
}


def _fault(rule: Rule, rows: list[Any]) -> str | None:
    try:
        shaped(rule, rows, "rows")
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("what", KEYS)
@settings(max_examples=300)
@given(data=st.data())
def test_rows_are_sound_if_each_is(what: str, data: st.DataObject) -> None:
    """The look at all rows together refuses what the look at each one does, and nothing else."""
    required, optional, good, odd = KEYS[what]
    rows = data.draw(st.lists(good, max_size=3))
    if data.draw(st.booleans()):
        changed = data.draw(odd)
        if rows and isinstance(changed, dict):
            changed = {**rows[0], **changed}
        rows.append(changed)
    closed = data.draw(st.booleans())
    one_by_one = array(record(required, optional, closed=closed))
    assert _fault(table(required, optional, closed=closed), rows) == _fault(one_by_one, rows)
