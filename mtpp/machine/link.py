"""Links between devices, and networks within networks."""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.errors import InputError
from mtpp.units import PICOSECONDS, Exact, above_zero, ceil_ratio


@dataclass(frozen=True)
class Link:
    """Connection of a device to the others.

    Attributes
    ----------
    bandwidth_bytes_per_s
        Of what enters and leaves the device.
    latency_ps
        Of each message, in picoseconds.
    speed
        Multiple of the bandwidth, and of the speed that given transfer times are of.

    Raises
    ------
    InputError
        If the latency is no whole number or negative, or the speed not above zero.
    """

    bandwidth_bytes_per_s: int
    latency_ps: int = 0
    speed: Exact = 1

    def __post_init__(self) -> None:
        if isinstance(self.latency_ps, bool) or not isinstance(self.latency_ps, int) or self.latency_ps < 0:
            raise InputError(f"must be a whole number of at least 0, not {self.latency_ps!r}", parameter="latency")
        above_zero(self.speed, "link_speed")

    @property
    def rate(self) -> Exact:
        """Bytes per second: bandwidth times speed."""
        return self.bandwidth_bytes_per_s * self.speed

    def streaming_ps(self, count: int, parts: int = 1) -> int:
        """Return the time of *count* bytes over *parts* such links, without latency, in picoseconds, rounded up."""
        rate = self.rate
        return ceil_ratio(count * PICOSECONDS["s"] * rate.denominator, rate.numerator * parts)

    def message_ps(self, count: int, parts: int = 1) -> int:
        """Return the time of a message of *count* bytes over *parts* such links, in picoseconds, rounded up."""
        return self.latency_ps + self.streaming_ps(count, parts)


@dataclass(frozen=True)
class Level:
    """Network that joins devices, or devices made of those of the level inside it.

    As in appendix E of Tarnawski et al. (2021): devices of level 1 compute. K₁ of them make a device of level 2, joined
    by a network of bandwidth B₁; K₂ of those make a device of level 3, and so on up to the K_L devices of the last.

    Attributes
    ----------
    devices
        K_ℓ: devices of this level in each device of the next, or in all at the last level.
    link
        Of each of them; its bandwidth is B_ℓ.
    """

    devices: int
    link: Link
    name: str = ""
