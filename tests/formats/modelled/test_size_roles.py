"""Roles of open sizes, by the names, ranks and types of inputs as exporters write them."""

from __future__ import annotations

import pytest

from mtpp.formats.modelled.size_roles import InputShape, Role, is_state, roles_of, words_of

B, C, H, W = Role.BATCH, Role.CHANNELS, Role.HEIGHT, Role.WIDTH


@pytest.mark.parametrize(
    ("one", "roles"),
    [
        (InputShape("x", True, [None, 3, None, None]), (B, C, H, W)),
        (InputShape("x", True, [None, None, None, 3]), (B, H, W, C)),
        (InputShape("image", True, [None, None, 3]), (H, W, C)),
        (InputShape("input1", True, [1, 1, 64, "image_width"]), (B, C, H, W)),
        (InputShape("x", True, ["p2o.DynamicDimension.0", 3, "?", "p2o.DynamicDimension.1"]), (B, C, H, W)),
        (InputShape("input_ids", False, ["batch_size", "sequence_length"]), (B, Role.TOKENS)),
        (InputShape("attention_mask", False, ["batch_size", "past_sequence_length + 1"]), (B, Role.TOTAL)),
        (InputShape("past_key_values.0.key", True, ["b", 8, "past_sequence_length", 64]),
         (B, Role.OTHER, Role.PAST, Role.OTHER)),
        (InputShape("input", True, ["batch", "sequence"]), (B, Role.SAMPLES)),
        (InputShape("wave", True, [None]), (Role.SAMPLES,)),
        (InputShape("mel", True, ["n", 80, None]), (B, C, Role.FRAMES)),
        (InputShape("audio", True, [None, 1, None]), (B, C, Role.SAMPLES)),
        (InputShape("state", True, [2, None, 128]), (Role.OTHER, B, Role.OTHER)),
        (InputShape("h", True, [1, "batch", 128]), (Role.OTHER, B, Role.OTHER)),
        (InputShape("features", True, [None, None, 512]), (B, Role.TOKENS, Role.OTHER)),
        (InputShape("encoder_hidden_states", True, [None, None, 768]), (B, Role.TOKENS, Role.OTHER)),
        (InputShape("input", True, ["sequence_length", 576]), (Role.TOKENS, Role.TOKENS)),
        (InputShape("x", True, ["T", "B", 4]), (Role.FRAMES, B, C)),
        (InputShape("tokens", False, ["n_tokens"]), (Role.TOKENS,)),
        (InputShape("z", True, ["batch", "n", 8]), (B, Role.TOKENS, Role.OTHER)),
        (InputShape("lengths", False, [None]), (B,)),
        (InputShape("table", True, ["rows", 8]), (B, Role.TOKENS)),
        (InputShape("sr", False, []), ()),
        (InputShape("clip", True, [None, 3, None, None, None]), (B, C, Role.DEPTH, H, W)),
        (InputShape("x", True, [None] * 6), (B, *[Role.OTHER] * 5)),
    ],
    ids=lambda value: value.name if isinstance(value, InputShape) else "",
)  # fmt: skip
def test_roles_are_those_that_people_would_name(one: InputShape, roles: tuple[Role, ...]) -> None:
    """Names decide where they say something; else rank, type and the sizes that are fixed."""
    assert roles_of(one) == roles


def test_words_are_read_out_of_names() -> None:
    """Dots, underscores and capitals part them."""
    assert words_of("pastKeyValues.0.key_states") == {"past", "key", "values", "states"}


def test_what_a_run_left_is_a_state() -> None:
    """Numbers with more than one axis, by their name."""
    assert is_state(InputShape("state", True, [2, None, 128]))
    assert not is_state(InputShape("state", False, [2, None, 128]))
    assert not is_state(InputShape("x", True, [2, None, 128]))
