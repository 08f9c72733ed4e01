"""Keywords of functions against the records that declare them."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

import mtpp
from mtpp.api.options.devices import Devices, Planning
from mtpp.api.options.option import Options, options_of
from mtpp.api.options.planners import PLANNERS
from mtpp.api.options.profiling import Profiling
from mtpp.api.options.reading import Machine, Measured, Reading

KEYWORDS: dict[str, tuple[tuple[type[Options], ...], tuple[str, ...]]] = {
    "plan_training": ((Devices, Planning), ()),
    "profile": ((Profiling,), ("max_input_size",)),
    "read": ((Reading,), ()),
    "sweep_training": ((Devices, Planning), ("devices", "topology")),
}
"""Function → records whose fields are its keywords, and names of fields that it has in another way or not at all."""

RECORDS = (Reading, Machine, Measured, Devices, Planning, Profiling, *PLANNERS.values())


@pytest.mark.parametrize("function", KEYWORDS)
def test_functions_have_the_keywords_of_their_records(function: str) -> None:
    """By name, and with the defaults that the records state."""
    records, others = KEYWORDS[function]
    declared = {name: one.default for record in records for name, one in options_of(record).items()}
    parameters = inspect.signature(getattr(mtpp, function)).parameters
    keywords = {name: one.default for name, one in parameters.items() if name in declared and name not in others}
    assert keywords == {name: default for name, default in declared.items() if name not in others}


@pytest.mark.parametrize("record", RECORDS)
def test_records_list_their_options(record: type[Options]) -> None:
    """Each with its sentence, in the docstring that readers and the reference see."""
    for name, one in options_of(record).items():
        assert f"\n{name}\n    {one.told}" in str(record.__doc__)
        assert one.help[0].isupper() or one.help.split()[0].islower()
        assert one.help.endswith((".", "]."))


@pytest.mark.parametrize("record", RECORDS)
def test_values_are_read_once(record: type[Options]) -> None:
    """What a record holds is what it would make of it again; a value of another kind is refused by its name."""
    first: Any = record()
    assert record(**first.values()) == first == replace(first)
    assert list(inspect.signature(record).parameters) == list(options_of(record))
    with pytest.raises(FrozenInstanceError):
        setattr(first, next(iter(options_of(record))), 1)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        record(unknown=1)
    for name in options_of(record):
        with pytest.raises(mtpp.InputError) as caught:
            record(**{name: object()})
        assert caught.value.parameter == name
