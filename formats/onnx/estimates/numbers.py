"""Numbers that only a run tells: linear forms over unknown ones, with the least and the most that each can be.

A count of the elements of a mask is at most as large as the mask; ``start + 2`` minus ``start`` is 2, whatever *start*
is. A size that such a number decides has a largest, and every size that one number decides is estimated from it alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

INFINITE = math.inf
MOST_FOLLOWED = 16
"""Elements of a tensor up to which each is followed; of larger ones their common range is known."""

_RANGES = {"b": (0.0, 1.0), "u": (0.0, INFINITE)}
_BYTES = {np.dtype(np.uint8): (0.0, 255.0), np.dtype(np.int8): (-128.0, 127.0)}


@dataclass(eq=False, slots=True)
class Unknown:
    """A number that a run computes.

    Attributes
    ----------
    low, high
        The least and the most that it can be.
    whole
        Whether it is a whole number.
    assumed
        Its estimate, once a size that it decides has one.
    """

    low: float
    high: float
    whole: bool
    assumed: float | None = None

    @property
    def range(self) -> tuple[float, float]:
        """The least and the most that it is taken for."""
        return (self.low, self.high) if self.assumed is None else (self.assumed, self.assumed)


@dataclass(frozen=True, slots=True)
class Number:
    """A sum of multiples of unknown numbers, and of something between two bounds.

    Attributes
    ----------
    terms
        Unknown numbers, each once, with their factors.
    least, most
        Bounds of the rest; equal where it is known.
    whole
        Whether it is a whole number.
    """

    terms: tuple[tuple[Unknown, float], ...]
    least: float
    most: float
    whole: bool

    @classmethod
    def constant(cls, value: float) -> Number:
        """Return a number that is known."""
        return cls((), value, value, float(value).is_integer())

    @classmethod
    def between(cls, low: float, high: float, *, whole: bool, followed: bool = True) -> Number:
        """Return a number of which only bounds are known; *followed*: the same one wherever it is used."""
        if low == high and math.isfinite(low):
            return cls.constant(low)
        if not followed:
            return cls((), low, high, whole)
        return cls(((Unknown(low, high, whole), 1.0),), 0.0, 0.0, whole)

    @property
    def low(self) -> float:
        """The least that it can be."""
        return _sum([self.least, *(_times(k, one.range[0 if k > 0 else 1]) for one, k in self.terms)], -INFINITE)

    @property
    def high(self) -> float:
        """The most that it can be."""
        return _sum([self.most, *(_times(k, one.range[1 if k > 0 else 0]) for one, k in self.terms)], INFINITE)

    @property
    def estimate(self) -> float | None:
        """Its value by the estimates of unknown numbers; None where one of them is open."""
        low = self.low
        return low if low == self.high and math.isfinite(low) else None

    def __add__(self, other: Number) -> Number:
        factors: dict[Unknown, float] = dict(self.terms)
        for one, k in other.terms:
            factors[one] = factors.get(one, 0.0) + k
        terms = tuple((one, k) for one, k in factors.items() if k)
        least = _sum([self.least, other.least], -INFINITE)
        return Number(terms, least, _sum([self.most, other.most], INFINITE), self.whole and other.whole)

    def __neg__(self) -> Number:
        return self.times(-1.0)

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def times(self, factor: float) -> Number:
        """Return its product with a known factor."""
        if not factor:
            return Number.constant(0.0)
        least, most = sorted((_times(factor, self.least), _times(factor, self.most)))
        terms = tuple((one, factor * k) for one, k in self.terms)
        return Number(terms, least, most, self.whole and float(factor).is_integer())

    def settle(self, value: float) -> bool:
        """Assume that it is *value*, if one unknown number alone decides that and can be such a one; say so."""
        open_terms = [(one, k) for one, k in self.terms if one.assumed is None]
        if len(open_terms) != 1 or self.least != self.most:
            return False
        (one, factor), settled = open_terms[0], [(other, k) for other, k in self.terms if other.assumed is not None]
        wanted = (value - self.least - sum(k * (other.assumed or 0.0) for other, k in settled)) / factor
        if one.low <= wanted <= one.high and (wanted.is_integer() or not one.whole):
            one.assumed = wanted
            return True
        return False


def _sum(parts: Iterable[float], unbounded: float) -> float:
    found = math.fsum(parts) if all(map(math.isfinite, parts := [*parts])) else sum(parts)
    return unbounded if math.isnan(found) else found


def _times(a: float, b: float) -> float:
    return a * b if a and b else 0.0


NumberArray = Any
"""An object array of :class:`Number`."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The elements of a tensor, or one number for all of them.

    Attributes
    ----------
    array
        Of the tensor's shape; without axes where *each* is false.
    each
        Whether every element is followed by itself.
    """

    array: NumberArray
    each: bool

    @classmethod
    def of_each(cls, array: NumberArray) -> Numbers:
        """Return elements; their common range if there are many."""
        found = np.empty(np.shape(array), dtype=object)
        found[...] = array
        return cls(found, True) if found.size <= MOST_FOLLOWED else cls(found, True).together

    @classmethod
    def of_all(cls, low: float, high: float, *, whole: bool) -> Numbers:
        """Return one range for all elements."""
        array = np.empty((), dtype=object)
        array[()] = Number.between(low, high, whole=whole, followed=False)
        return cls(array, False)

    @classmethod
    def constants(cls, array: np.ndarray) -> Numbers:
        """Return elements that are known."""
        if array.dtype.kind not in "biuf" or not array.size:
            return cls.of_all(0.0, 0.0, whole=True)
        if array.size > MOST_FOLLOWED:
            whole = array.dtype.kind != "f" or bool(np.all(array == np.floor(array)))
            return cls.of_all(float(array.min()), float(array.max()), whole=whole)
        return cls.of_each(_each(lambda value: Number.constant(float(value)), array.astype(np.float64)))

    @classmethod
    def fresh(cls, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> Numbers:
        """Return elements of which nothing but the type is known; *shape* None if that is open."""
        low, high = _BYTES.get(dtype, _RANGES.get(dtype.kind, (-INFINITE, INFINITE)))
        return cls.spread(low, high, whole=dtype.kind in "biu", shape=shape)

    @classmethod
    def spread(cls, low: float, high: float, *, whole: bool, shape: tuple[int, ...] | None) -> Numbers:
        """Return elements, each somewhere in one range."""
        if shape is None or not 0 < math.prod(shape) <= MOST_FOLLOWED:
            return cls.of_all(low, high, whole=whole)
        return cls.of_each(_each(lambda _: Number.between(low, high, whole=whole), np.empty(shape)))

    @property
    def together(self) -> Numbers:
        """One range for all elements."""
        if not self.each:
            return self
        whole = all(one.whole for one in self.array.flat)
        return Numbers.of_all(self.low, self.high, whole=whole)

    @property
    def renewed(self) -> Numbers:
        """The same ranges for other numbers: those of another trip of a loop."""
        if not self.each:
            return self
        return Numbers(_each(lambda one: Number.between(one.low, one.high, whole=one.whole), self.array), True)

    @property
    def low(self) -> float:
        """The least that an element can be."""
        return min((one.low for one in self.array.flat), default=0.0)

    @property
    def high(self) -> float:
        """The most that an element can be."""
        return max((one.high for one in self.array.flat), default=0.0)

    @property
    def whole(self) -> bool:
        """Whether all elements are whole numbers."""
        return all(one.whole for one in self.array.flat)

    def with_constants(self, array: np.ndarray, known: np.ndarray) -> Numbers:
        """Return the same elements, with *array* in the places that are *known*."""
        if not self.each or self.array.shape != array.shape:
            return self
        found = self.array.copy()
        for index in np.ndindex(found.shape):
            if known[index]:
                found[index] = Number.constant(float(array[index]))
        return Numbers(found, True)

    def number(self, index: int = 0) -> Number | None:
        """Return an element by its place; None if there is no such one."""
        if not self.each:
            return self.array[()]  # type: ignore[no-any-return]
        return self.array.reshape(-1)[index] if -self.array.size <= index < self.array.size else None


def _each(function: Callable[[Any], Number], array: np.ndarray) -> NumberArray:
    found = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        found[index] = function(array[index])
    return found


def combined(function: Callable[..., Number], *inputs: Numbers) -> Numbers:
    """Return a function of numbers, element by element, broadcast as ONNX does."""
    arrays = np.broadcast_arrays(*(one.array for one in inputs)) if inputs else []
    found = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(found.shape):
        found[index] = function(*(array[index] for array in arrays))
    if all(one.each for one in inputs):
        return Numbers.of_each(found)
    return Numbers(found, True).together
