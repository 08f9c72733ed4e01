"""Simulated pipelines, ``mtpp-simulation``, as JSON: version 1 of stage graphs, version 2 of schedules of devices.

Times are whole ticks, of a picosecond unless ``time_unit`` is ``"1"``; those without ``_ticks`` in their names are
numbers in that unit.
"""

from __future__ import annotations

from typing import Any

from mtpp.checker.document import time_unit
from mtpp.document_shape import Path, Rule, array, choice, nullable, number, record, refuse, sha256, text, whole
from mtpp.training.pfeife.schedule_run import LinkTimes, ScheduleRun
from mtpp.training.simulation import ChannelTimes, RowTimes, SimulatedPasses, Simulation
from mtpp.units import PICOSECONDS

FORMAT = "mtpp-simulation"
VERSION = 1

SCHEDULE_VERSION = 2
"""Of documents on devices with several stages."""

_TIMES = (
    "first_forward_start_ticks", "first_backward_start_ticks", "last_forward_end_ticks", "last_backward_end_ticks",
    "busy_ticks",
)  # fmt: skip

_ROW: dict[str, Rule] = {
    **dict.fromkeys(_TIMES, whole()),
    "index": whole(),
    "bubble_ticks": whole(-(2**62)),
    "peak_in_flight": whole(),
}

_CHANNEL: dict[str, Rule] = {
    "source": whole(), "target": whole(), "messages": whole(), "busy_ticks": whole(), "busy_share": number,
}  # fmt: skip

_HEAD: dict[str, Rule] = {
    "format": choice(FORMAT),
    "version": whole(1),
    "name": text,
    "time_unit": time_unit,
    "ticks_per_unit": whole(1),
    "iteration_ticks": whole(),
    "iteration_time": number,
    "warm_up_ticks": whole(-(2**62)),
    "steady_ticks": whole(-(2**62)),
    "cool_down_ticks": whole(-(2**62)),
    "bubble_share": number,
}

_STAGE = record(
    {**_ROW, "name": text, "micro_batch": whole(1), "micro_batches": whole(1), "synchronisation_ticks": whole()}
)

_FILE = record({"sha256": sha256, "path": text})
_FILES: dict[str, Rule] = {"pipeline": _FILE, "model": _FILE}
"""Files that were simulated, where they are files: the pipeline, and the model of a plan."""

_of_stages = record(
    {
        **_HEAD,
        "mini_batch": whole(1),
        "depth": whole(),
        "samples_per_s": nullable(number),
        "stages": array(_STAGE),
        "channels": array(record({**_CHANNEL, "direction": choice("forward", "backward")})),
    },
    _FILES,
)

_DEVICE = record(
    {**_ROW, "stages": array(whole()), "passes": whole(), "first_start_ticks": whole(), "last_end_ticks": whole()}
)

_of_devices = record(
    {
        **_HEAD,
        "stages": whole(1),
        "micro_batches": whole(1),
        "devices": array(_DEVICE),
        "channels": array(record(_CHANNEL)),
        "critical_path": array(text),
    },
    _FILES,
)


def simulation_document(simulation: Simulation) -> dict[str, Any]:
    """Return a simulated pipeline as JSON takes it."""
    graph, iteration = simulation.graph, simulation.iteration
    unit = PICOSECONDS[graph.time_unit]
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
        **_phases(simulation),
        "stages": [_stage(simulation, s) for s in range(len(graph.stages))],
        "channels": [
            {
                "source": one.source,
                "target": one.target,
                "direction": "forward" if one.forward else "backward",
                **_load(one, iteration),
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
        **_ends(times),
        "busy_ticks": times.busy,
        "synchronisation_ticks": times.synchronisation,
        "bubble_ticks": times.bubble,
        "peak_in_flight": times.peak_in_flight,
    }


def schedule_simulation_document(run: ScheduleRun) -> dict[str, Any]:
    """Return a simulated schedule as JSON takes it."""
    timed, iteration = run.timed, run.iteration
    return {
        "format": FORMAT,
        "version": SCHEDULE_VERSION,
        "name": timed.name,
        "time_unit": timed.time_unit,
        "ticks_per_unit": timed.ticks_per_unit,
        "stages": timed.schedule.stages,
        "micro_batches": timed.schedule.micro_batches,
        "iteration_ticks": iteration,
        "iteration_time": iteration / timed.ticks_per_unit,
        **_phases(run),
        "devices": [
            {
                "index": d,
                "stages": list(one.stages),
                "passes": len(timed.schedule.rows[d]),
                "first_start_ticks": one.first_start,
                "last_end_ticks": one.last_end,
                **_ends(one),
                "busy_ticks": one.busy,
                "bubble_ticks": one.bubble,
                "peak_in_flight": one.peak_in_flight,
            }
            for d, one in enumerate(run.devices)
        ],
        "channels": [{"source": one.source, "target": one.target, **_load(one, iteration)} for one in run.channels],
        "critical_path": [part.name for part in run.critical_path],
    }


def _phases(run: SimulatedPasses) -> dict[str, Any]:
    phases = run.phases
    return {
        "warm_up_ticks": phases.warm_up,
        "steady_ticks": phases.steady,
        "cool_down_ticks": phases.cool_down,
        "bubble_share": run.bubble_share,
    }


def _ends(times: RowTimes) -> dict[str, int]:
    return {
        "first_forward_start_ticks": times.first_forward_start,
        "first_backward_start_ticks": times.first_backward_start,
        "last_forward_end_ticks": times.last_forward_end,
        "last_backward_end_ticks": times.last_backward_end,
    }


def _load(channel: ChannelTimes | LinkTimes, iteration: int) -> dict[str, Any]:
    busy = channel.busy
    return {
        "messages": channel.messages,
        "busy_ticks": busy,
        "busy_share": busy / iteration if iteration else 0.0,
    }


def check_simulation(value: Any, path: Path) -> None:
    """Take a simulation of either version.

    Raises
    ------
    InputError
        If it is malformed, or of a version that this program does not know.
    """
    version = value.get("version") if isinstance(value, dict) else None
    if version not in (VERSION, SCHEDULE_VERSION) or isinstance(version, bool):
        refuse("a version that this program does not know", (*path, "version"), "simulate the pipeline anew")
    (_of_stages if version == VERSION else _of_devices)(value, path)
    if not value["stages" if version == VERSION else "devices"]:
        refuse("there are no rows", (*path, "stages" if version == VERSION else "devices"))
