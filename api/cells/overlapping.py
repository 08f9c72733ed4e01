"""Bounds on how often a chain is served where the ranges of layers that devices hold may overlap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.api.output import SavedResult
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.views.terminal import Medium

_MILLI_PER_PS = 10**15


class OverlappingRanges(SavedResult):
    """Lower bound on the time between requests for all placements of overlapping ranges; shows itself as a table."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    @property
    def ticks(self) -> int:
        """No placement serves a request every so many ticks, which are picoseconds."""
        return int(self._document["lower_bound"]["value"])

    @property
    def millitokens_per_s(self) -> int | None:
        """The same as a rate, in thousandths of a request a second, rounded to nearest; None: no limit was proven."""
        rate: int | None = self._document["millitokens_per_s"]
        return rate

    def _said(self) -> Mapping[str, Any]:
        return self._document

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.overlapping import overlapping_text

        return overlapping_text(self._document, medium)


def bound_overlapping(model: Model, machine_file: str | None = None) -> OverlappingRanges:
    """Prove how often a chain is served at most where each device holds one range of layers and ranges may overlap.

    Parameters
    ----------
    model
        Read with a machine all of whose devices have ``stage_times``.
    machine_file
        Path of the machine, for messages.

    Raises
    ------
    InputError
        If there is no such machine, or the model is not one chain.
    """
    from mtpp.solvers.unequal.chains.overlapping import HeldRanges, OverlappingBound

    machine = model.machine
    if machine is None:
        raise InputError(
            "is needed for overlapping ranges", parameter="machine", remedy="give devices with stage_times"
        )
    for i, group in enumerate(machine.groups):
        if not group.device.stage_times_ps:
            raise InputError(
                f"device {machine.names[sum(one.count for one in machine.groups[:i])]!r} has none, which overlapping "
                "ranges need",
                **({"parameter": "machine"} if machine_file is None else {"source": machine_file}),
                where=f"/device/{i}/stage_times",
            )
    layers = model.whole_instance(None).op_count
    counts: dict[tuple[int, ...], int] = {}
    names: dict[tuple[int, ...], str] = {}
    for device, name in zip(machine.devices, machine.names, strict=True):
        counts[device.stage_times_ps] = counts.get(device.stage_times_ps, 0) + 1
        names.setdefault(device.stage_times_ps, name)
    found = OverlappingBound(HeldRanges(layers, list(counts.values()), list(counts))).run()
    ticks = 0 if found is None else found.ticks
    prices = [0] * len(counts) if found is None else found.prices
    return OverlappingRanges(
        {
            "format": "mtpp-overlapping-bound",
            "version": 1,
            "model": {"name": model.graph.name, **model.source.identity, "ops": layers},
            "machine": model.machine_document(),
            "layers": layers,
            "millitokens_per_s": None if ticks == 0 else (2 * _MILLI_PER_PS + ticks) // (2 * ticks),
            "lower_bound": {
                "value": ticks,
                "method": "overlapping",
                "tier": "exact",
                "proof": {
                    "ticks": ticks,
                    "prices": dict(zip(names.values(), prices, strict=True)),
                    "price_of_layer": 0 if found is None else found.price_of_layer,
                },
            },
        }
    )
