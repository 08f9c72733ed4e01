"""State that models keep: inputs that come out again are found by name, type and shape."""

from __future__ import annotations

from typing import Any

import pytest

from mtpp.formats.modelled.op_record import OpRecord
from mtpp.formats.modelled.states import is_pair, pairs_of, same_type, states_of, told_states
from mtpp.inference.states import State

PAIRS = """
past_key_values.0.key present.0.key
past_key_values.3.decoder.value present.3.decoder.value
past_key_values.0.key present_key_values.0.key
past_0 present_0
past present
past_conv.0 present_conv.0
past_key_0_in present_key_0
cache_in cache_out
in_cache0 out_cache0
cache_k.1_in cache_k.1_out
state new_state
state stateN
state_in state_out
h hn
c cn
h0 hn
h_0 h_n
input_h output_h
k_cache new_k_cache
cached_key_0 new_cached_key_0
x new_x
pkv.0.key.in pkv.0.key.out
mem0 upd0
memX updX
"""

OTHERS = """
sample out_sample
input output
x x_out
hidden_states output_hidden_states
hidden_states last_hidden_state
token next_token
past_key_values.1.key present.0.key
past_key_values.0.key present.0.value
cache_position present.0.key
initial_h final_h
same same
mem0 upd1
x0 upd1
"""


@pytest.mark.parametrize("names", PAIRS.split("\n")[1:-1])
def test_ends_of_states_are_known_by_their_names(names: str) -> None:
    """Names that exporters give to the two ends of a state."""
    assert is_pair(*names.split(" "))


@pytest.mark.parametrize("names", OTHERS.split("\n")[1:-1])
def test_other_names_are_no_pair(names: str) -> None:
    """An input and an output of one size are not enough."""
    assert not is_pair(*names.split(" "))


def port(name: str, shape: list[Any], dtype: str = "float16") -> dict[str, Any]:
    """Return an input or output as metadata describe it."""
    size = 2
    for dim in shape:
        size *= dim if isinstance(dim, int) else 0
    return {"name": name, "shape": shape, "dtype": dtype, "bytes": size}


@pytest.mark.parametrize(
    ("entering", "leaving", "same"),
    [
        ([1, 8, 7, 64], [1, 8, 8, 64], True),
        ([1, 8, 8, 64], [1, 8, 8, 64], True),
        ([1, 8, 0, 64], [1, 8, 1, 64], True),
        ([1, 8, "?", 64], [1, 8, 9, 64], True),
        ([1, 8, 9, 64], [1, 8, 8, 64], False),
        ([1, 8, 7, 64], [2, 8, 8, 64], False),
        ([8, 7, 64], [1, 8, 7, 64], False),
        ([], [], True),
    ],
)
def test_one_axis_may_grow(entering: list[Any], leaving: list[Any], same: bool) -> None:
    """Rank and all other sizes are equal, and so is the type."""
    assert same_type(port("past", entering), port("present", leaving)) is same
    assert not same_type(port("past", entering), port("present", leaving, "float32"))


def test_of_several_that_fit_none_is_taken() -> None:
    """The line names the option; other pairs are found all the same."""
    inputs = [port("state", [4]), port("h", [4]), port("past", [4])]
    outputs = [port("new_state", [4]), port("stateN", [4]), port("hn", [4]), port("present", [5]), port("y", [4])]
    pairs, told = pairs_of(inputs, outputs)
    assert pairs == [("h", "hn"), ("past", "present")]
    assert told == [
        "input 'state' may be a state that comes out as new_state, stateN: `--keep-state IN=OUT` says so",
    ]
    pairs, told = pairs_of([port("h", [4]), port("h0", [4])], [port("hn", [4])])
    assert pairs == []
    assert len(told) == 2


def test_a_state_has_the_bytes_of_its_larger_end_and_its_readers() -> None:
    """Inputs that no op reads and ends of unknown size are left out; an output is named once."""
    ops = [OpRecord(inputs={"a": 0, "b": 0}), OpRecord(inputs={"a": 0}), OpRecord(states={"buffer": 5})]
    pairs = [("a", "x"), ("b", "x"), ("unread", "y"), ("buffer", "buffer")]
    sizes = {"a": 10, "x": 12, "b": 7, "buffer": 5, "unread": 1}
    states = states_of(pairs, sizes, ops, ["first", "second", "third"])
    assert states == [
        State("a", "a", "x", 12, ["first", "second"]),
        State("b", "b", "b", 12, ["first"]),
        State("buffer", "buffer", "buffer", 5, ["third"]),
    ]
    assert states_of(pairs, {}, ops, ["first", "second", "third"]) == []
    assert told_states(states) == ["3 states kept between requests, 29 B for each sequence: a → x, b, buffer"]
    assert told_states([]) == []


def test_a_result_under_the_name_of_an_input_is_its_state() -> None:
    """Where programs return dictionaries: the key of a cache in and out, but not that of any other input."""
    inputs = [port("past_key_values_0_0", [4]), port("x", [4])]
    outputs = [
        port("add", [4]) | {"key": "past_key_values.0.0"},
        port("mul", [4]) | {"key": "x"},
    ]
    assert pairs_of(inputs, outputs).pairs == [("past_key_values_0_0", "add")]
