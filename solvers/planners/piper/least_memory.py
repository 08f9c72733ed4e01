"""The least memory of a device with which there is a plan at all."""

from __future__ import annotations

from mtpp.solvers.planners.piper.bisection import worth_a_last_question
from mtpp.solvers.planners.piper.threshold import PipelineSearch

_ENOUGH = 2**62


def memory_that_would_do(search: PipelineSearch, least: int, known: int | None = None) -> tuple[int | None, bool]:
    """Find the least memory with which some plan ends its stages at the downsets of *search*.

    Parameters
    ----------
    least
        No plan needs less, in bytes.
    known
        A memory with which there is a plan.

    Returns
    -------
    Bytes, None if no memory would do; and whether that is proven, which it is not if the search had to end.

    Notes
    -----
    Every plan that is found says what it really needs, which is the next upper end of a bisection; it ends when there
    is none that needs a byte less.
    """
    most = known
    gains = 0
    while most is None or least < most:
        close = most is not None and (most - least) * 64 <= most and worth_a_last_question(gains)
        asked = _ENOUGH if most is None else most - 1 if close else (least + most) // 2
        decision = search.decide(None, memory=asked)
        if decision is None:
            return most, False
        if decision.front:
            most = min(search.memory_needed(state) for state in range(len(decision.front)))
            gains += close
        elif not decision.complete:
            return most, False
        elif most is None:
            return None, True
        else:
            least, gains = asked + 1, 0
    return most, True
