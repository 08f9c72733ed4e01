"""Palette of pages: colours that are told apart with and without colour blindness, on light and on dark paper."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import pytest

from mtpp.colours import DARK, GREY, PASSES, STAGES, stage_colour, text_on
from mtpp.views.report.colours import MEMORY, ON_FILL, PARTS

Triple = tuple[float, float, float]

VISIONS: dict[str, tuple[Triple, Triple, Triple]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Linear light as it is seen: Machado, Oliveira and Fernandes (2009), severity 1."""

TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)
PALETTE = (*STAGES, *PARTS.values())


def times(matrix: tuple[Triple, Triple, Triple], vector: Triple) -> Triple:
    """Multiply."""
    x, y, z = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return x, y, z


def linear(colour: str) -> Triple:
    """Return the linear light of a colour as ``#rrggbb``."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return red, green, blue


def lab(light: Triple) -> Triple:
    """Return CIE L*a*b* under D65."""
    x, y, z = (min(max(one, 0.0), 1.0) for one in light)
    scaled = [one / white for one, white in zip(times(TO_XYZ, (x, y, z)), WHITE, strict=True)]
    fx, fy, fz = (one ** (1 / 3) if one > (6 / 29) ** 3 else one / (3 * (6 / 29) ** 2) + 4 / 29 for one in scaled)
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def difference(first: Triple, second: Triple) -> float:
    """Return CIEDE2000 between colours in L*a*b*."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1 + 0.5 * (1 - sqrt(mean**7 / (mean**7 + 25**7)))
    c1, c2 = hypot(stretch * a1, b1), hypot(stretch * a2, b2)
    h1, h2 = degrees(atan2(b1, stretch * a1)) % 360, degrees(atan2(b2, stretch * a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = h1 + h2 if not c1 * c2 else (h1 + turn / 2) % 360
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = 1 - 0.17 * cos(radians(hue - 30)) + 0.24 * cos(radians(2 * hue))
    t += 0.32 * cos(radians(3 * hue + 6)) - 0.2 * cos(radians(4 * hue - 63))
    in_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2))
    in_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    in_hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * chroma * t)
    rotation = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    return sqrt(in_light**2 + in_chroma**2 + in_hue**2 + rotation * in_chroma * in_hue)


def contrast(first: str, second: str) -> float:
    """Return how much lighter one colour is than the other, from 1 to 21."""
    low, high = sorted(times(TO_XYZ, linear(one))[1] for one in (first, second))
    return (high + 0.05) / (low + 0.05)


def test_differences_are_those_of_the_paper() -> None:
    """Pairs 1, 4, 17 and 25 of Sharma, Wu and Dalal (2005)."""
    for first, second, due in (
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ):
        assert difference(first, second) == pytest.approx(due, abs=1e-4)


def seen(colour: str, vision: str) -> Triple:
    """Return a colour in L*a*b*, as it is seen."""
    return lab(times(VISIONS[vision], linear(colour)))


def least(colours: Iterable[tuple[str, str]], vision: str) -> float:
    """Return the least difference of pairs of colours."""
    return min(difference(seen(one, vision), seen(other, vision)) for one, other in colours)


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_are_told_apart(vision: str) -> None:
    """All pairs of stages and of parts of their costs, and stages that follow each other by far more; passes too."""
    assert least(combinations(PALETTE, 2), vision) >= (12 if vision == "normal" else 6.5)
    following = [*STAGES, *STAGES[:2]]
    assert least(pairwise(following), vision) >= 17
    assert least(zip(following, following[2:], strict=False), vision) >= 9
    assert least(combinations(set(PASSES.values()), 2), vision) >= 10


@pytest.mark.parametrize("vision", VISIONS)
def test_more_stages_than_colours(vision: str) -> None:
    """The second dozen is paler, so that no colour comes twice; stages that follow each other differ at every turn."""
    assert len({stage_colour(stage) for stage in range(2 * len(STAGES))}) == 2 * len(STAGES)
    assert least(pairwise(map(stage_colour, range(3 * len(STAGES)))), vision) >= 10
    assert not {stage_colour(stage) for stage in range(40)} & {*PARTS.values(), *MEMORY.values(), *PASSES.values()}


def test_stages_have_no_colour_of_a_quantity() -> None:
    """Nor is any colour hard to see on either paper, or text on it."""
    assert not set(STAGES) & {*PARTS.values(), *MEMORY.values(), GREY}
    for colour in (*PALETTE, GREY):
        assert min(contrast(colour, paper) for paper in ("#ffffff", "#14181d")) >= 3
    stages = [stage_colour(stage) for stage in range(2 * len(STAGES))]
    assert min(contrast(colour, text_on(colour)) for colour in [*PALETTE, *stages]) >= 4.5
    assert min(contrast(colour, DARK) for colour in PASSES.values()) >= 4.5
    assert contrast(ON_FILL, GREY) >= 4.5
