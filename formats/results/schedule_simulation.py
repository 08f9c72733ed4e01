"""Simulated schedules of devices with several stages, ``mtpp-simulation`` version 2, as JSON.

Times are whole ticks, of a picosecond unless ``time_unit`` is ``"1"``; those without ``_ticks`` in their names are
numbers in that unit.
"""

from __future__ import annotations

from typing import Any

from mtpp.formats.results.simulation import FORMAT
from mtpp.training.pfeife.schedule_run import ScheduleRun

VERSION = 2


def schedule_simulation_document(run: ScheduleRun) -> dict[str, Any]:
    """Return a simulated schedule as JSON takes it."""
    timed, phases, iteration = run.timed, run.phases, run.iteration
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": timed.name,
        "time_unit": timed.time_unit,
        "ticks_per_unit": timed.ticks_per_unit,
        "stages": timed.schedule.stages,
        "micro_batches": timed.schedule.micro_batches,
        "iteration_ticks": iteration,
        "iteration_time": iteration / timed.ticks_per_unit,
        "warm_up_ticks": phases.warm_up,
        "steady_ticks": phases.steady,
        "cool_down_ticks": phases.cool_down,
        "bubble_share": run.bubble_share,
        "devices": [
            {
                "index": d,
                "stages": list(one.stages),
                "passes": len(timed.schedule.rows[d]),
                "first_start_ticks": one.first_start,
                "last_end_ticks": one.last_end,
                "first_forward_start_ticks": one.first_forward_start,
                "first_backward_start_ticks": one.first_backward_start,
                "last_forward_end_ticks": one.last_forward_end,
                "last_backward_end_ticks": one.last_backward_end,
                "busy_ticks": one.busy,
                "bubble_ticks": one.bubble,
                "peak_in_flight": one.peak_in_flight,
            }
            for d, one in enumerate(run.devices)
        ],
        "channels": [
            {
                "source": one.source,
                "target": one.target,
                "messages": one.messages,
                "busy_ticks": one.busy,
                "busy_share": one.busy / iteration if iteration else 0.0,
            }
            for one in run.channels
        ],
        "critical_path": [part.name for part in run.critical_path],
    }
