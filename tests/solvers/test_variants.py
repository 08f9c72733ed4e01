"""Algorithms as tables of results name them."""

from __future__ import annotations

import pytest

from mtpp.errors import InputError
from mtpp.names import ENGINE_RULES
from mtpp.solvers.registry import PARTITIONERS
from mtpp.solvers.variants import OURS, PAPER, default_variants, parse_variant, parse_variants


@pytest.mark.parametrize(
    ("name", "entry", "evaluations", "options"),
    [
        ("auto", "auto", None, {}),
        ("auto-50", "auto", 50, {}),
        ("random", "random", None, {}),
        ("random-10000", "random", 10_000, {}),
        ("anneal-7", "anneal", 7, {}),
        ("brkga", "brkga", None, {}),
        ("brkga-100", "brkga", 100, {"population": 10, "generations": 10}),
        ("brkga-10000", "brkga", 10_000, {"population": 100, "generations": 100}),
        ("mla", "mla", 10_000, {"population": 100, "generations": 100}),
        ("mla-weighted", "mla-weighted", 10_000, {"population": 100, "generations": 100}),
        ("mla-weighted-25", "mla-weighted", 25, {"population": 5, "generations": 5}),
    ],
)
def test_names(name: str, entry: str, evaluations: int | None, options: dict[str, int]) -> None:
    """A number at the end is the evaluations; populations split it into √T generations, as the paper does."""
    variant = parse_variant(name)
    assert (variant.name, variant.entry.name, variant.evaluations) == (name, entry, evaluations)
    assert variant.search_options == options


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("magic", ("'magic'", "auto, downset, anneal, brkga", "random-100")),
        ("magic-10", ("'magic-10'",)),
        ("random-0", ("'random-0'",)),
        ("random-", ("'random-'",)),
        ("random-1e4", ("'random-1e4'",)),
        ("random-" + "9" * 5000, ("no algorithm",)),
        ("slice-5", ("slice takes no number", "write slice")),
        ("brkga-1000", ("1000 is no square number", "brkga-100 or brkga-10000")),
        ("mla-weighted-99", ("99 is no square number", "mla-weighted-100")),
    ],
)
def test_names_that_mean_nothing(name: str, words: tuple[str, ...]) -> None:
    """The error names the option and what to write."""
    with pytest.raises(InputError) as caught:
        parse_variant(name)
    for word in ("algorithms: ", *words):
        assert word in str(caught.value)


def test_lists_keep_their_order_and_drop_repetitions() -> None:
    """Blanks around commas do not matter; an empty list is an error."""
    assert [variant.name for variant in parse_variants(["auto", " slice", "random-9", "auto", ""])] == [
        "auto",
        "slice",
        "random-9",
    ]
    with pytest.raises(InputError, match="names no algorithm"):
        parse_variants([" ", " "])


def test_the_default_is_the_papers_table_and_then_ours() -> None:
    """All rows of Table 2, in its order."""
    assert [variant.name for variant in default_variants()] == [*PAPER, *OURS]


def test_the_default_leaves_no_algorithm_out() -> None:
    """What the registry has is in the table but for proofs, one shape and baselines, and nothing else."""
    left_out = {"downset", "series-parallel", *ENGINE_RULES}
    assert {variant.entry.name for variant in default_variants()} == set(PARTITIONERS) - left_out
