"""Shape of ``mtpp-simulation`` documents, versions 1 and 2: whatever is malformed is named by its JSON pointer."""

from __future__ import annotations

from typing import Any

from mtpp.checker.document import time_unit
from mtpp.document_shape import Path, Rule, array, choice, nullable, number, record, refuse, text, whole
from mtpp.formats.results.schedule_simulation import VERSION as SCHEDULE_VERSION
from mtpp.formats.results.simulation import FORMAT, VERSION

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

_of_stages = record(
    {
        **_HEAD,
        "mini_batch": whole(1),
        "depth": whole(),
        "samples_per_s": nullable(number),
        "stages": array(_STAGE),
        "channels": array(record({**_CHANNEL, "direction": choice("forward", "backward")})),
    }
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
    }
)


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
