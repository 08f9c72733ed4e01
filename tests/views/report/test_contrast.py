"""Colours of pages: text can be read on everything that it stands on, in both schemes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtpp.formats.graphs.stage_colours import stage_colour
from mtpp.views.report.colours import NO_RATIO, ON_FILL, PARTS, RATIOS

STYLE = (Path(__file__).resolve().parents[3] / "views" / "report" / "page.css").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:root|paper) \{(.*?)\}", STYLE, re.DOTALL)
SCHEMES = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in BLOCKS]


def luminance(colour: str) -> float:
    """Return the relative luminance of the Web Content Accessibility Guidelines."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return how much lighter one colour is than the other, from 1 to 21."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark", "paper"])
def test_text_can_be_read(scheme: dict[str, str]) -> None:
    """4.5 to 1 for text, 3 to 1 for parts of bars."""
    for ink in ("ink", "soft", "link", "ok", "false", "unchecked", "accent"):
        for ground in ("paper", "raised"):
            assert contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)
    for state in ("ok", "false", "unchecked"):
        for ink in ("ink", state):
            assert contrast(scheme[ink], scheme[f"{state}-paper"]) >= 4.5, (ink, state)
    for colour in PARTS.values():
        assert contrast(colour, scheme["paper"]) >= 3


def test_labels_can_be_read_on_fills() -> None:
    """Those of boxes of all stages, and of cells of every class."""
    fills = [stage_colour(stage) for stage in range(200)] + [colour for _, colour, _ in RATIOS] + [NO_RATIO[0]]
    assert min(contrast(fill, ON_FILL) for fill in fills) >= 4.5
