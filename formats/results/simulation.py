"""Simulated pipelines, ``mtpp-simulation`` version 1, as JSON.

Times are whole ticks of a picosecond; those without ``_ticks`` in their names are numbers in the graph's unit.
"""

from __future__ import annotations

from typing import Any

from mtpp.training.simulation import Simulation
from mtpp.units import PICOSECONDS

FORMAT = "mtpp-simulation"
VERSION = 1


def simulation_document(simulation: Simulation) -> dict[str, Any]:
    """Return a simulated pipeline as JSON takes it."""
    graph, phases = simulation.graph, simulation.phases
    iteration, unit = simulation.iteration, PICOSECONDS[graph.time_unit]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "time_unit": graph.time_unit,
        "ticks_per_unit": unit,
        "mini_batch": graph.mini_batch,
        "depth": graph.depth,
        "iteration_ticks": iteration,
        "iteration_time": iteration / unit,
        "samples_per_s": graph.mini_batch * PICOSECONDS["s"] / iteration if iteration else None,
        "warm_up_ticks": phases.warm_up,
        "steady_ticks": phases.steady,
        "cool_down_ticks": phases.cool_down,
        "bubble_share": simulation.bubble_share,
        "stages": [_stage(simulation, s) for s in range(len(graph.stages))],
        "channels": [
            {
                "source": one.source,
                "target": one.target,
                "direction": "forward" if one.forward else "backward",
                "messages": one.messages,
                "busy_ticks": one.busy,
                "busy_share": one.busy / iteration if iteration else 0.0,
            }
            for one in simulation.channels
        ],
    }


def _stage(simulation: Simulation, s: int) -> dict[str, Any]:
    stage, times = simulation.graph.stages[s], simulation.stages[s]
    return {
        "index": s,
        "name": stage.name,
        "micro_batch": stage.micro_batch,
        "micro_batches": stage.micro_batches,
        "first_forward_start_ticks": times.first_forward_start,
        "first_backward_start_ticks": times.first_backward_start,
        "last_forward_end_ticks": times.last_forward_end,
        "last_backward_end_ticks": times.last_backward_end,
        "busy_ticks": times.busy,
        "synchronisation_ticks": times.synchronisation,
        "bubble_ticks": times.bubble,
        "peak_in_flight": times.peak_in_flight,
    }
