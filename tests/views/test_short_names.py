"""Names on narrow terminals."""

from __future__ import annotations

from random import Random

from mtpp.views.short_names import middle_out, shortened_apart


def test_names_lose_their_middles() -> None:
    """As many characters as there is room for, from both ends."""
    assert middle_out("layer4.2.conv2/Conv", 9) == "laye…Conv"
    assert middle_out("short", 9) == "short"


def test_different_names_stay_different() -> None:
    """Four branches of equal layers, which are alike at both ends."""
    names = [f"branch {i} of the tower, layer 0" for i in range(4)]
    short = shortened_apart(names, 12)
    assert len(set(short.values())) == 4
    assert all(len(text) <= 12 for text in short.values())
    assert all(str(i) in short[name][:-1] for i, name in enumerate(names))


def test_names_at_random() -> None:
    """Texts fit, and of a group that is alike at both ends none is another's where there is room for the difference."""
    random = Random(0)
    for _ in range(300):
        head, tail = ("".join(random.choices("abc", k=random.randrange(12))) for _ in range(2))
        names = [f"{head}{i}{tail}" for i in range(random.randrange(1, 9))]
        limit = random.randrange(6, 20)
        short = shortened_apart(names, limit)
        assert all(len(text) <= limit for text in short.values())
        assert len(set(short.values())) == len(names)
