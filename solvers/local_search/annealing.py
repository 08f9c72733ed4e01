"""Annealing runs: a schedule that fits every instance, in chunks short enough to be interrupted."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

from mtpp.solvers.local_search.assignment import AssignmentState, MoveArrays
from mtpp.solvers.local_search.kernels.annealing import anneal

_CHUNKS = 16
_LONGEST_CHUNK_S = 0.02


class Schedule(NamedTuple):
    """Where temperature and sharpness begin and end; both move geometrically.

    Attributes
    ----------
    first_temperature, last_temperature
        In units of the objective's slope at the reference; see ``kernels/annealing.py``.
    first_sharpness, last_sharpness
        γ of the objective.
    """

    first_temperature: float
    last_temperature: float
    first_sharpness: float
    last_sharpness: float

    def between(self, begin: float, end: float) -> Schedule:
        """Return the part of the schedule from fraction *begin* to fraction *end*."""
        heat = self.last_temperature / self.first_temperature
        edge = self.last_sharpness / self.first_sharpness
        return Schedule(
            self.first_temperature * heat**begin,
            self.first_temperature * heat**end,
            self.first_sharpness * edge**begin,
            self.first_sharpness * edge**end,
        )


HOT = Schedule(0.02, 0.0003, 2.0, 16.0)
"""Forgets where it began. Measured on random graphs of 50 to 200 ops and on networks up to 1,500, k = 2 … 32."""

WARM = Schedule(0.01, 0.0003, 2.0, 16.0)
"""Keeps some of what it began with."""

COOL = Schedule(0.003, 0.0003, 4.0, 16.0)
"""Keeps the shape of the partition that it began with."""


def run_schedule(
    schedule: Schedule,
    proposals: int,
    reference: int,
    move_s: float,
    moves: MoveArrays,
    state: AssignmentState,
    stopped: Callable[[], bool],
) -> int:
    """Anneal *state* along *schedule*; return the number of moves proposed, fewer than asked for if stopped.

    Parameters
    ----------
    reference
        Ticks of a typical slow stage, above 0.
    move_s
        Seconds that a move takes, about: :func:`~mtpp.solvers.step_times.move_s`.
    stopped
        Asked before each chunk of some hundredths of a second.
    """
    chunks = max(_CHUNKS, ceil(proposals / max(1, round(_LONGEST_CHUNK_S / move_s))))
    done = 0
    for chunk in range(chunks):
        if stopped():
            break
        part = schedule.between(chunk / chunks, (chunk + 1) / chunks)
        share = proposals * (chunk + 1) // chunks - done
        anneal(
            share,
            float(reference),
            part.first_sharpness,
            part.first_temperature,
            part.last_temperature,
            moves,
            state,
        )
        done += share
    return done
