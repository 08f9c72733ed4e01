"""Loads of language models: options as sizes of their graphs, and the devices that they are served by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from mtpp.errors import InputError
from mtpp.names import BOTH_PHASES
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.api.options.language_models import Serving
    from mtpp.api.options.reading import ModelReading
    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine

D = TypeVar("D", "Device", "Machine")

DEFAULT_PROMPT = 4096
"""Tokens of a prompt that a program is exported for."""

_OPTIONS = ("kv_dtype", "context", "phase", "batch", "mtp", "adapters")


def given_options(serving: Serving) -> list[str]:
    """Return the names of the options of language models that are given."""
    return [name for name in _OPTIONS if getattr(serving, name) not in (None, ())]


def refuse_serving(serving: Serving) -> None:
    """Refuse options of language models where there is none."""
    for name in given_options(serving):
        raise InputError("is of language models", parameter=name, remedy="leave it out")


def refuse_both_phases(how: ModelReading | None) -> None:
    """Refuse both phases where a graph is of one step."""
    if how is not None and how.phase == BOTH_PHASES:
        raise InputError("is of plans: a graph has one step", parameter="phase", remedy="give decode or prefill")


def is_load(sizes: Mapping[str, int]) -> bool:
    """Tell whether sizes are those of a load."""
    from mtpp.language_models.serving_load import BATCH, CONTEXT, PROMPT

    return BATCH in sizes and (CONTEXT in sizes or PROMPT in sizes)


def batch_is_open(how: ModelReading) -> bool:
    """Tell whether the number of sequences in a step depends on the number of stages."""
    from mtpp.language_models.serving_load import BATCH

    return how.batch is None and how.device.sequences > 1 and BATCH not in (how.values()["dims"] or {})


def load_sizes(how: ModelReading, stages: int | None) -> dict[str, int]:
    """Return the sizes that options give: those that a load is made of.

    Parameters
    ----------
    stages
        Number of stages, which share the sequences; None: one.

    Raises
    ------
    InputError
        If a step works on more sequences than are held, or *dims* say the same as another option.
    """
    from mtpp.language_models.serving_load import BATCH, CONTEXT, DECODE, PROMPT, ServingLoad

    sequences = held(how.device if how.placed is None else how.placed.classes[0], how).sequences
    if how.batch is not None and how.batch > sequences:
        problem = f"{how.batch:,} are more than the {counted(sequences, 'sequence')} held"
        raise InputError(problem, parameter="batch", remedy="raise ‹sequences›")
    usual = ServingLoad()
    load = ServingLoad(
        "prefill" if how.phase == "prefill" else DECODE,
        usual.context if how.context is None else int(how.context),
        how.batch or -(-sequences // (stages or 1)),
        how.kv_dtype or usual.kv_dtype,
        how.mtp,
    )
    sizes = load.sizes()
    if how.context is None and load.phase == DECODE:
        del sizes[CONTEXT]
    if how.batch is None and sequences == 1:
        del sizes[BATCH]
    twice = sizes.keys() & (how.values()["dims"] or {}).keys()
    both = {CONTEXT, PROMPT} & (how.values()["dims"] or {}).keys() and {CONTEXT, PROMPT} & sizes.keys()
    if both or twice - {BATCH}:
        raise InputError("says the same as another option", parameter="dims", remedy="leave one of them out")
    return sizes


def at_load(how: ModelReading, **load: Any) -> ModelReading:
    """Return how a model is read at another context and batch, among others: such sizes of *dims* give way."""
    from mtpp.language_models.serving_load import BATCH, CONTEXT

    dims = {key: size for key, size in (how.values()["dims"] or {}).items() if key not in (CONTEXT, BATCH)}
    return type(how).of(**(how.values() | load | {"dims": dims}))


def held(device: Device, how: ModelReading) -> Device:
    """Return a device that holds as many sequences as a step works on, where nobody says how many."""
    said = how.sequences is not None or device.sequences > 1
    return device if said or how.batch is None else replace(device, sequences=how.batch)


def in_order(devices: D, peak: str | None) -> D:
    """Return devices that count activations as layers run, unless the caller or a reserve says otherwise.

    Parameters
    ----------
    peak
        What the caller says of it; None: nothing.
    """
    from mtpp.machine.machine import Machine

    if peak is not None:
        return devices
    if isinstance(devices, Machine):
        if any(device.activation_reserve_bytes for device in devices.classes):
            return devices
        return devices.altered(lambda device: replace(device, peak="order"))
    return devices if devices.activation_reserve_bytes else replace(devices, peak="order")
