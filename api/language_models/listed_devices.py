"""Models on machines whose devices are listed: what plans of consecutive layers are made for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model


def on_listed_devices(model: Model, k: int | None) -> Model:
    """Return a model on a machine whose devices are listed, for stages of consecutive layers."""
    from mtpp.machine.link import Level
    from mtpp.machine.machine import DeviceGroup, Machine

    machine = model.machine
    if machine is None:
        system = model.system
        machine = Machine((DeviceGroup(system, k or 1, system.name),), (Level(k or 1, system.link),))
    if machine.neighbours:
        problem = "neighbours do not go with stages of consecutive layers"
        raise InputError(problem, parameter="machine", where="/transport", remedy='use "direct"')
    return replace(model, machine=machine, degrees=model.degrees or {})
