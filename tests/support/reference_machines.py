"""Machines of reference values as files."""

from __future__ import annotations

from fractions import Fraction
from typing import Any


def machine_text(devices: list[dict[str, Any]], order: str, params: int) -> str:
    """Return a machine file of devices as the reference values have them."""
    lines = [f'order = "{order}"']
    for device in devices:
        lines += ["[[device]]", f'speed = "{Fraction(device["speed"])}"']
        lines += [f'link_speed = "{Fraction(device["link_speed"])}"']
        if device["memory_share_of_params"] is not None and params:
            lines += [f'memory = "{int(Fraction(device["memory_share_of_params"]) * params)}B"']
    return "\n".join(lines) + "\n"
