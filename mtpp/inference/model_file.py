"""A model among several: where it was read from and how large it is, its sizes and assumptions as tables tell them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.wording import first_of

OWN_COSTS = "own_costs"
"""Key of documents: the file of a model brings the costs of its ops."""

_MODELS_NAMED = 2
_SIZES_LISTED, _ASSUMPTIONS_LISTED = 16, 8


@dataclass(frozen=True)
class ModelFile:
    """A model that was read and checked once, and what is kept of it.

    Attributes
    ----------
    path
        As given, or inside the folder given; ``-`` for standard input.
    name
        Of its graph.
    dims
        Sizes of symbolic dimensions that it took.
    proposed_dims
        Names of those sizes that nobody gave.
    keep_state
        Inputs that were named as states, with the results that they come out as.
    assumptions
        What its reader took for granted, in words.
    costs_sha256
        Of the file with measured costs, if one was given.
    work
        Σ work of its ops, in ticks for one stage.
    machine
        Devices in order, as a plan has them; None where all are equal.
    own_costs
        Whether its file brings the costs of its ops, which no figure of a device models.
    read_s
        Seconds that reading it took; for the first one also those that were spent before.
    """

    path: str
    name: str
    sha256: str
    ops: int
    tensors: int
    dims: Mapping[str, int]
    work: int
    costs_sha256: str | None = None
    read_s: float = 0.0
    proposed_dims: tuple[str, ...] = ()
    keep_state: Mapping[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    machine: Mapping[str, Any] | None = None
    own_costs: bool = False

    @property
    def modelled(self) -> bool:
        """Whether figures of devices model the costs of its ops."""
        return not self.own_costs and self.costs_sha256 is None


def told_sizes(dims: Mapping[str, int], proposed: Collection[str] = ()) -> list[str]:
    """Return what to say of sizes, for people; nothing if there are none.

    Parameters
    ----------
    proposed
        Names of those that nobody gave.
    """
    texts = []
    for what, own in (("dims", False), ("dims proposed:", True)):
        listed = ", ".join(f"{name} = {size}" for name, size in dims.items() if (name in proposed) is own)
        if listed:
            texts.append(f"{what} {listed}")
    return texts


class Sized(Protocol):
    """A model, or a row of a table about one, with the sizes that it was read for."""

    @property
    def dims(self) -> Mapping[str, int]:
        """Sizes by name."""

    @property
    def proposed_dims(self) -> Collection[str]:
        """Names of those that nobody gave."""


def sizes_of_models(models: Iterable[Sized]) -> list[str]:
    """Return what to say of the sizes of several models: each size once, however many have it."""
    given: dict[str, None] = {}
    proposed: dict[str, None] = {}
    for model in models:
        for name, size in model.dims.items():
            (proposed if name in model.proposed_dims else given)[f"{name} = {size}"] = None
    return [
        f"{what} {', '.join(_first(list(sizes), _SIZES_LISTED))}"
        for what, sizes in (("dims", given), ("dims proposed:", proposed))
        if sizes
    ]


def assumptions_of_models(models: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Return each assumption once; with names of models where it is not about all of them.

    Parameters
    ----------
    models
        Names, one of them any number of times, with what was assumed of each.
    """
    names: dict[str, None] = {}
    about: dict[str, dict[str, None]] = {}
    for name, assumed in models:
        names[name] = None
        for text in assumed:
            about.setdefault(text, {})[name] = None
    texts = [
        text if len(of) == len(names) else f"{first_of(list(of), _MODELS_NAMED)}: {text}" for text, of in about.items()
    ]
    return _first(texts, _ASSUMPTIONS_LISTED)


def _first(texts: list[str], most: int) -> list[str]:
    return texts if len(texts) <= most else [*texts[:most], f"… {len(texts) - most} more"]


def devices_in_words(system: Device, machine: Mapping[str, Any] | None, *, modelled: bool) -> str:
    """Return the devices that costs are of, for people: equal ones of a system, or those of a machine's document.

    Parameters
    ----------
    modelled
        Whether their rates model the costs of ops; else they are left out.
    """
    if machine is None:
        return f"system {system.describe(computing=modelled)}"
    return f"machine {Machine.from_document(machine).describe(computing=modelled)}"


class OnDevices(Protocol):
    """A model, or a row of a table about one, with the devices that its costs are of."""

    @property
    def machine(self) -> Mapping[str, Any] | None:
        """Devices in order, as a plan has them; None where all are equal."""

    @property
    def modelled(self) -> bool:
        """Whether their rates model the costs of ops."""


def devices_of_models(models: Iterable[tuple[str, Device, OnDevices]]) -> list[str]:
    """Return the devices that costs are of, with names of models where they are not those of all."""
    return assumptions_of_models(
        (name, [devices_in_words(system, one.machine, modelled=one.modelled)]) for name, system, one in models
    )


def are_modelled(about: Mapping[str, Any]) -> bool:
    """Return whether figures of devices model the costs of ops, by what a document says of a model."""
    return not about.get(OWN_COSTS) and "costs_sha256" not in about
