"""Parts of a model by the device that holds them, from a layout of any engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from mtpp.errors import InputError
from mtpp.language_models.layout import Layout

_GPU = re.compile(r"(?:GPU)?([0-9]+)", re.ASCII)
_MPS = "mps"
WHOLE = Fraction(1)


@dataclass(frozen=True)
class Holder:
    """A device, or another place, with the parts of a model that it holds.

    Attributes
    ----------
    name
        As the engine names it: number of a stage or a rank, ``cpu``, ``disk``, ``client``.
    place
        Number among the devices that the engine sees; None for a place that is no GPU.
    layers
        Decoder layers and, with numbers beyond them, MTP layers in the order in which they run; one that runs twice
        here stands twice.
    encoder
        Layers of an encoder.
    shares
        Parts of layers that other devices share, by number.
    stages
        Virtual stages that run here.
    """

    name: str
    place: int | None
    layers: Sequence[int] = ()
    embedding: bool = False
    final_norm: bool = False
    head: bool = False
    encoder: Sequence[int] = ()
    shares: Mapping[int, Fraction] = field(default_factory=dict)
    stages: Sequence[int] = ()

    def runs(self) -> list[list[int]]:
        """Ranges of consecutive layers, half-open, in the order in which they run."""
        return self.runs_below(max(self.layers, default=0) + 1)

    def runs_below(self, end: int) -> list[list[int]]:
        """Ranges of layers whose numbers are below *end*."""
        found: list[list[int]] = []
        for layer in (layer for layer in self.layers if layer < end):
            if found and found[-1][1] == layer:
                found[-1][1] = layer + 1
            else:
                found.append([layer, layer + 1])
        return found


@dataclass(frozen=True)
class PlacedLayout:
    """All holders of a layout, those without anything included.

    Attributes
    ----------
    holders
        In the order of the engine's stages or devices.
    layers, mtp
        Number of decoder layers and of MTP layers of the model.
    whole
        Whether the layout is to place all of the model; that of one server is not.
    """

    holders: Sequence[Holder]
    layers: int
    mtp: int = 0
    whole: bool = True

    @property
    def missing(self) -> list[int]:
        """Decoder layers that nobody runs."""
        held = {layer for holder in self.holders for layer in holder.layers}
        return [layer for layer in range(self.layers) if layer not in held] if self.whole else []

    @property
    def doubled(self) -> list[int]:
        """Decoder layers that run more than once."""
        times: dict[int, Fraction] = {}
        for holder in self.holders:
            for layer in holder.layers:
                times[layer] = times.get(layer, Fraction(0)) + holder.shares.get(layer, WHOLE)
        return [layer for layer in range(self.layers) if times.get(layer, 0) > 1]

    @property
    def parts_missing(self) -> list[str]:
        """Parts around the layers that nobody holds."""
        held = self.holders
        found = {
            "embedding": any(one.embedding for one in held),
            "final norm": any(one.final_norm for one in held),
            "head": any(one.head for one in held),
        }
        return [name for name, there in found.items() if not there] if self.whole else []

    @property
    def lacks_further(self) -> bool:
        """Whether the model has MTP layers, and nobody runs one."""
        return self.mtp > 0 and not any(layer >= self.layers for one in self.holders for layer in one.layers)

    @property
    def in_order(self) -> bool:
        """Whether each layer runs once, whole, on a device, and devices follow each other as their layers do."""
        firsts = []
        for holder in self.holders:
            runs = holder.runs()
            if len(runs) > 1 or holder.shares or (holder.place is None and runs):
                return False
            firsts += [run[0] for run in runs]
        return firsts == sorted(firsts) and not self.missing and not self.doubled


def placed_layout(layout: Layout, layers: int, mtp: int = 0) -> PlacedLayout:
    """Give each device the parts that a layout puts on it.

    Parameters
    ----------
    layers, mtp
        Number of decoder layers and of MTP layers of the model; numbers of layers that there are not are left out.

    Raises
    ------
    InputError
        If the layout does not say where layers are.
    """
    if layout.devices_of_layers is not None:
        return PlacedLayout(_named_holders(layout, layers, mtp), layers, mtp)
    if layout.ranges is None:
        raise InputError("does not say which of its items are decoder layers", parameter="layout")
    holders = _staged_holders(layout, layers, mtp)
    return PlacedLayout(holders, layers, mtp, whole=layout.start is None)


def _staged_holders(layout: Layout, layers: int, mtp: int) -> list[Holder]:
    """Holders of a layout of stages: a rank with all its virtual stages."""
    assert layout.ranges is not None
    stages = layout.stage_layers or [
        list(range(max(pair[0], 0), min(pair[1], layers))) if pair else [] for pair in layout.ranges
    ]
    idle = set(layout.stages_not_run or ())
    ranks = layout.stages_of_ranks or [[stage] for stage in range(len(stages))]
    holders = []
    for rank, own in enumerate(ranks):
        run = [stage for stage in own if stage not in idle]
        held = [layer for stage in run for layer in stages[stage] if 0 <= layer < layers]
        if _on_any(layout.mtp_on, run):
            held += range(layers, layers + mtp)
        holders.append(
            Holder(
                str(rank),
                rank,
                held,
                embedding=_on_any(_embedding_of(layout), run),
                final_norm=_on_any(layout.final_norm_on, run),
                head=_on_any(layout.head_on, run),
                stages=run,
            )
        )
    if isinstance(layout.embedding_on, str):
        holders.append(Holder(layout.embedding_on, None, embedding=True, final_norm=True, head=True))
    return holders


def _embedding_of(layout: Layout) -> list[int] | str | None:
    """Stages that look tokens up; a copy that only the tied head of vLLM reads is not among them."""
    on = layout.embedding_on
    return on[:1] if layout.engine == "vllm" and isinstance(on, list) else on


def _on_any(stages: list[int] | str | None, run: Iterable[int]) -> bool:
    return isinstance(stages, list) and any(stage in stages for stage in run)


def _named_holders(layout: Layout, layers: int, mtp: int) -> list[Holder]:
    """Holders of a layout that names the device of each layer."""
    assert layout.devices_of_layers is not None
    names = [str(device) for device in layout.devices_of_layers][: layers + mtp]
    around = {"embedding": layout.embedding_on, "final_norm": layout.final_norm_on, "head": layout.head_on}
    parts = {part: [] if on is None else list(_names_in(str(on))) for part, on in around.items()}
    held: dict[str, list[int]] = {}
    for layer, name in enumerate(names):
        for device in _names_in(name):
            held.setdefault(device, []).append(layer)
    listed = [*(layout.layers if isinstance(layout.layers, dict) else ()), *(layout.devices or ()), *held]
    listed += [name for on in parts.values() for name in on]
    own = dict.fromkeys(_own_name(device) for name in listed for device in _names_in(name))
    shares = _shares(layout.divided_layers or {})
    holders = [
        Holder(
            name,
            place_of_name(name),
            held.get(name, ()),
            embedding=name in parts["embedding"],
            final_norm=name in parts["final_norm"],
            head=name in parts["head"],
            shares=shares.get(name, {}),
        )
        for name in own
    ]
    return sorted(holders, key=lambda one: (one.place is None, one.place or 0))


def _names_in(name: str) -> Iterator[str]:
    return map(_own_name, filter(None, name.split("+")))


def _own_name(name: str) -> str:
    """Name of a device, a GPU by its number alone."""
    match = _GPU.fullmatch(name)
    return match[1] if match else name


def place_of_name(name: str) -> int | None:
    """Return the number of a device by its name; None for one that is no GPU.

    Examples
    --------
    >>> [place_of_name(name) for name in ("GPU3", "0", "cpu", "disk")]
    [3, 0, None, None]
    """
    match = _GPU.fullmatch(name)
    return int(match[1]) if match else 0 if name == _MPS else None


def _shares(divided: Mapping[int, Mapping[str, int]]) -> dict[str, dict[int, Fraction]]:
    """Part of each divided layer by device, as its bytes are."""
    found: dict[str, dict[int, Fraction]] = {}
    for layer, by_device in divided.items():
        total = sum(by_device.values())
        for device, size in by_device.items():
            share = Fraction(size, total) if total else Fraction(1, len(by_device))
            found.setdefault(_own_name(device), {})[layer] = share
    return found
