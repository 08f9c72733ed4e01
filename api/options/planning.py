"""Limits of planning."""

from __future__ import annotations

from mtpp.api.options.kinds import Seconds, Whole
from mtpp.api.options.option import Options, option


class Planning(Options):
    """Limits of a planner."""

    time_limit_s: float | None = option(None, Seconds(), "From process start.", "S", more="In Python: from the call.")
    jobs: int | None = option(
        None, Whole(), "Threads [default: all cores].", also="-j", more="The result does not depend on it."
    )
