"""Layouts as callers give them: an engine's text, a file of it, or its own rule on the devices at hand."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.names import LAYOUT_ENGINES
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.formats.layouts.pasted import PastedLayout
    from mtpp.formats.layouts.request import LayoutRequest
    from mtpp.language_models.layout import Layout
    from mtpp.machine.device import Device

_MOST_BYTES = 2**24
_FILES = (".json", ".toml", ".yaml", ".yml", ".txt", ".sh", ".env", ".cfg")
_NO_LIMIT = 2**61
"""Of devices without one, where an engine's rule needs bytes."""
_OFFLOADING = ("accelerate", "transformers")


@dataclass(frozen=True)
class GivenLayout:
    """A layout as the engine reads it.

    Attributes
    ----------
    layout
        Layers of stages or devices.
    pasted
        The text, and facts beside it.
    request
        Model and number of stages that it was read for.
    """

    layout: Layout
    pasted: PastedLayout
    request: LayoutRequest


def engine_and_layout(text: str) -> tuple[str, str]:
    """Split ``ENGINE=TEXT``; both parts as they are.

    Raises
    ------
    InputError
        If the engine is not known.
    """
    engine, sign, layout = text.partition("=")
    if not sign or engine not in LAYOUT_ENGINES:
        engines = f"engines are {', '.join(LAYOUT_ENGINES)}"
        remedy = did_you_mean(engine, LAYOUT_ENGINES, engines) if sign else engines
        raise InputError(f"{text[:60]!r} is no ENGINE=TEXT", parameter="layout", remedy=remedy)
    return engine, layout


def pasted(engine: str, given: Any) -> PastedLayout:
    """Read a text, or the file of that name; keys and values stay.

    Raises
    ------
    InputError
        If a file is named that is not there, or cannot be read.
    """
    from mtpp.formats.io.source import read_source
    from mtpp.formats.layouts.pasted import pasted_layout

    if not isinstance(given, str | os.PathLike):
        return pasted_layout(engine, given)
    text = os.fspath(given)
    is_path = isinstance(given, os.PathLike) or text.lower().endswith(_FILES)
    if not is_path and not is_file(text):
        return pasted_layout(engine, text)
    source = read_source(text, max_bytes=_MOST_BYTES, expected="a layout")
    try:
        return pasted_layout(engine, source.data.decode("utf-8-sig"), source.display)
    except UnicodeDecodeError:
        raise InputError("is not a text in UTF-8", source=source.display) from None


def is_file(text: str) -> bool:
    """Tell whether a layout is the path of a file."""
    try:
        return len(text) < 4096 and "\n" not in text and os.path.isfile(text)
    except ValueError:  # a null byte
        return False


def read_given(found: PastedLayout, request: LayoutRequest, devices: Sequence[Device] | None) -> GivenLayout:
    """Read a layout as its engine does, on the devices of a machine.

    Parameters
    ----------
    request
        The model; ``stages`` as the caller wants them, None: as many as the layout or the machine has.
    devices
        Of the machine in the order that the engine sees; None where all are equal and as many as are needed.

    Raises
    ------
    InputError
        If the engine refuses it, or the number of stages is not known.
    """
    from mtpp.formats.layouts.registry import LAYOUT_FORMATS

    if found.stages is not None:
        request = replace(request, stages=found.stages)
    setting = _with_devices(found, devices, request)
    read, most = LAYOUT_FORMATS[found.engine].read, None if devices is None else len(devices)
    counts = [request.stages]
    if request.stages is None and most is not None:
        counts = [most] if found.own_rule or found.engine == "llama.cpp" else [None, most]
    for count in counts:
        asked = replace(request, stages=count)
        try:
            layout = read(setting, asked)
        except InputError as error:
            if error.parameter != "stages":
                raise
            continue
        if count is None and most is not None and count != counts[-1] and _stage_count(layout) > most:
            continue
        return GivenLayout(layout, found, asked)
    raise InputError("the number of stages is needed", parameter="k", remedy="give it, or a ‹machine›")


def _stage_count(layout: Layout) -> int:
    return 0 if layout.devices_of_layers is not None else len(layout.stages_of_ranks or layout.ranges or ())


def _with_devices(found: PastedLayout, devices: Sequence[Device] | None, request: LayoutRequest) -> Any:
    """Add memories of devices where a rule fills devices by them and the layout has none."""
    setting = found.setting
    limits = [_NO_LIMIT if one.memory_bytes is None else one.memory_bytes for one in devices or ()]
    limits = limits or [_NO_LIMIT] * (request.stages or 0)
    if found.engine in _OFFLOADING:
        return _with_limits(setting, limits)
    unlimited = _NO_LIMIT in limits or not limits
    if found.engine == "llama.cpp" and limits:
        return _with_free_memory(setting, [1] * len(limits) if unlimited else limits)
    if found.engine == "exo" and not setting:
        if unlimited:
            raise InputError("exo divides layers by memory", parameter="machine", remedy="give each device's ‹memory›")
        stored = {} if request.described is None else {"storage_bytes": request.described.bytes}
        return {"ram_available_gb": [limit / 2**30 for limit in limits], **stored}
    return setting


def _with_free_memory(setting: Any, free: Sequence[int]) -> Any:
    """Add the memory that decides where there are no shares, or all are 0."""
    from mtpp.formats.layouts.llama_cpp import options_of_line

    options = options_of_line(setting) if isinstance(setting, str) else setting
    return {"free_memory": list(free), **options}


def _with_limits(setting: Any, limits: Sequence[int]) -> Any:
    """Add limits to a rule that fills devices; what they do not hold goes to a CPU without a limit."""
    from mtpp.formats.layouts.accelerate import MODES

    if isinstance(setting, str):
        setting = {"mode": setting}
    named = setting.get("device_map", setting.get("mode", "auto"))
    is_rule = isinstance(named, str) and named in MODES and not (setting.keys() - _RULE_KEYS)
    if not is_rule or "max_memory" in setting or not limits:
        return setting
    return {**setting, "max_memory": {**dict(enumerate(limits)), "cpu": _NO_LIMIT}}


_RULE_KEYS = frozenset(("mode", "device_map", "no_split_module_classes", "dtype", "fallback_allocation"))


def keys_of(setting: Any) -> Any:
    """Return a setting as JSON has it."""
    if isinstance(setting, Mapping):
        return {str(key): keys_of(value) for key, value in setting.items()}
    return [keys_of(one) for one in setting] if isinstance(setting, list | tuple) else setting
