"""Links between the devices of two tables of a machine file, for tensors that pass from each stage to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.units import PICOSECONDS, Exact, ceil_ratio, format_bandwidth, format_picoseconds


@dataclass(frozen=True)
class PairLink:
    """Link between two devices; it holds both ways.

    Attributes
    ----------
    rate
        Bytes per second.
    latency_ps
        Of each tensor, in picoseconds.
    speed
        Multiple of the speed that given transfer times are of.
    """

    rate: Exact
    latency_ps: int
    speed: Exact

    def streaming_ps(self, count: int) -> int:
        """Return the time of *count* bytes without latency, in picoseconds, rounded up."""
        return ceil_ratio(count * PICOSECONDS["s"] * self.rate.denominator, self.rate.numerator)


@dataclass(frozen=True)
class GivenLink:
    """Link between the devices of two tables, or of one among each other, as a ``[[link]]`` gives it.

    Attributes
    ----------
    between
        Names of the two tables.
    bandwidth_bytes_per_s, latency_ps, speed
        None: of the two devices the slower bandwidth, the longer latency, the smaller link speed.
    """

    between: tuple[str, str]
    bandwidth_bytes_per_s: int | None = None
    latency_ps: int | None = None
    speed: Exact | None = None

    def joining(self, one: Device, other: Device) -> PairLink:
        """Return the link of two devices of the tables."""
        links = one.link, other.link
        return PairLink(
            min(link.rate for link in links) if self.bandwidth_bytes_per_s is None else self.bandwidth_bytes_per_s,
            max(link.latency_ps for link in links) if self.latency_ps is None else self.latency_ps,
            min(link.speed for link in links) if self.speed is None else self.speed,
        )

    def joins_any(self, names: Sequence[str]) -> bool:
        """Tell whether the link is between two of some devices, given their names."""
        one, other = self.between
        return names.count(one) > 1 if one == other else one in names and other in names

    def describe(self) -> str:
        """Return one line for people."""
        parts = [] if self.bandwidth_bytes_per_s is None else [format_bandwidth(self.bandwidth_bytes_per_s)]
        parts += [] if self.latency_ps is None else [f"{format_picoseconds(self.latency_ps)} a tensor"]
        parts += [] if self.speed is None else [f"link speed {self.speed}"]
        one, other = self.between
        pair = f"among {one}" if one == other else f"{one} to {other}"
        return f"{pair}: {', '.join(parts)}" if parts else pair

    def figures(self) -> dict[str, Any]:
        """Return the JSON object that a plan's ``machine`` holds of the link: what is given, speeds as ``"3/2"``."""
        given = {
            "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s,
            "latency_ps": self.latency_ps,
            "link_speed": None if self.speed is None else str(self.speed),
        }
        return {"between": list(self.between), **{key: value for key, value in given.items() if value is not None}}

    @classmethod
    def from_figures(cls, figures: Mapping[str, Any]) -> GivenLink:
        """Return the link of :meth:`figures`.

        Raises
        ------
        InputError
            If a value is not allowed.
        """
        try:
            one, other = figures["between"]
            speed = Fraction(figures["link_speed"]) if "link_speed" in figures else None
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise InputError(f"not a link: {error}", where="/machine/links") from None
        return cls((one, other), figures.get("bandwidth_bytes_per_s"), figures.get("latency_ps"), speed)
