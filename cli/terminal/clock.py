"""Time limits of the command line: they count from the start of the process, as the user's clock does."""

from __future__ import annotations

from mtpp.host.deadline import Deadline, process_age_s


def deadline_from_start(limit_s: float | None) -> Deadline:
    """Return the moment at which a limit of so many seconds on the whole command ends; None: never."""
    return Deadline(limit_s, 0.0 if limit_s is None else process_age_s())
