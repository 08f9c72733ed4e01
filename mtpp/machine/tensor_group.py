"""GPUs that share the work of one stage: degrees of tensor parallelism, and the link between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.errors import InputError
from mtpp.units import PICOSECONDS, ceil_ratio, format_bandwidth

MOST_DEGREE = 4096
"""GPUs of one stage at most."""

DEGREES, LINK = "tensor_parallel", "tensor_link_bytes_per_s"
"""Keys of a device's figures in documents."""


@dataclass(frozen=True)
class TensorGroup:
    """GPUs of a device that share a stage, each of them with the figures of the device.

    Attributes
    ----------
    degrees
        Numbers of GPUs that may share a stage, ascending.
    link_bytes_per_s
        Bandwidth of a GPU to the others, of one direction; None where a stage has one GPU.

    Raises
    ------
    InputError
        If a degree is no whole number in range or stands twice, or several GPUs have no link; *where* is a key of a
        machine file.
    """

    degrees: tuple[int, ...] = (1,)
    link_bytes_per_s: int | None = None

    def __post_init__(self) -> None:
        if not self.degrees:
            raise InputError("is an empty list", where="tensor_parallel", remedy="write it like 8 or [1, 2, 4, 8]")
        for degree in self.degrees:
            if isinstance(degree, bool) or not isinstance(degree, int):
                raise InputError(f"{degree!r} is not a whole number", where="tensor_parallel")
            if not 1 <= degree <= MOST_DEGREE:
                raise InputError(f"{degree} is not between 1 and {MOST_DEGREE:,}", where="tensor_parallel")
        if list(self.degrees) != sorted(set(self.degrees)):
            raise InputError("a degree stands twice, or before a smaller one", where="tensor_parallel")
        if self.degrees[-1] > 1 and self.link_bytes_per_s is None:
            remedy = 'give the bandwidth between the GPUs: tensor_link = "450GB/s"'
            raise InputError("missing key", where="tensor_link", remedy=remedy)
        rate = self.link_bytes_per_s
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int) or rate < 1):
            raise InputError("must be above zero", where="tensor_link")

    def __bool__(self) -> bool:
        """Whether a stage may have several GPUs."""
        return self.degrees != (1,)

    def exchange_ps(self, sent_bytes: Fraction | int) -> int:
        """Return the time in which each GPU sends so many bytes to the others, in picoseconds, rounded up."""
        if not sent_bytes or self.link_bytes_per_s is None:
            return 0
        sent = Fraction(sent_bytes)
        return ceil_ratio(sent.numerator * PICOSECONDS["s"], sent.denominator * self.link_bytes_per_s)

    def described(self) -> str:
        """Return one phrase for people."""
        *most, last = map(str, self.degrees)
        listed = f"{', '.join(most)} or {last}" if most else last
        link = "" if self.link_bytes_per_s is None else f", {format_bandwidth(self.link_bytes_per_s)} between them"
        return f"{listed} GPU{'s' if self.degrees[-1] > 1 else ''} a stage{link}"

    def figures(self) -> dict[str, Any]:
        """Return the figures that a plan's ``machine`` holds of the device; none where a stage has one GPU."""
        if not self:
            return {}
        link = {} if self.link_bytes_per_s is None else {LINK: self.link_bytes_per_s}
        return {DEGREES: list(self.degrees), **link}

    @classmethod
    def from_figures(cls, figures: Mapping[str, Any]) -> TensorGroup:
        """Read :meth:`figures`, among which there may be others."""
        return cls(tuple(figures.get(DEGREES, (1,))), figures.get(LINK))


ONE_GPU = TensorGroup()
"""Each stage has one GPU."""


def all_reduced_bytes(size: int, degree: int) -> Fraction:
    """Return the bytes that each GPU sends where a tensor is summed over all of them, in a ring."""
    return Fraction(2 * (degree - 1) * size, degree)


def gathered_bytes(size: int, degree: int) -> Fraction:
    """Return the bytes that each GPU sends where each gets the whole of a tensor that they have shares of."""
    return Fraction((degree - 1) * size, degree)
