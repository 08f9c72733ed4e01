"""Seeds of random cases: a sample in every run, all of a campaign where ``MTPP_ALL_SEEDS`` is set."""

from __future__ import annotations

import os
from collections.abc import Sequence

ALL_SEEDS = bool(os.environ.get("MTPP_ALL_SEEDS"))
"""Whether campaigns are run whole, which takes several minutes more."""


def sampled(campaign: Sequence[int], count: int) -> Sequence[int]:
    """Return the first *count* seeds of a campaign, or all of them if that is asked for."""
    return campaign if ALL_SEEDS else campaign[:count]
