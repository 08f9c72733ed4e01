"""Kinds of values that options have: each reads a value that Python gives, and says what a shell has for it."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mtpp.api import parameters as given
from mtpp.errors import InputError
from mtpp.ranges import MOST_CORES, MOST_OPS, MOST_STAGES


class Kind(ABC):
    """Kind of a value.

    Attributes
    ----------
    names
        Names that a shell completes.
    """

    names: Callable[[], Iterable[str]] = tuple

    def read(self, value: Any, parameter: str) -> Any:
        """Return a value in its own type, which is read as itself."""
        return self._read(value, parameter)

    @abstractmethod
    def _read(self, value: Any, parameter: str) -> Any: ...


class Flag(Kind):
    """Truth value; a shell has a flag for the one that is not the default, and *opposite* for the other one."""

    def __init__(self, opposite: str | None = None) -> None:
        self.opposite = opposite

    def _read(self, value: Any, parameter: str) -> bool:
        return given.flag(value, parameter)


class Whole(Kind):
    """Whole number from *least* to *most*."""

    def __init__(self, least: int = 1, most: int | None = None) -> None:
        self.least = least
        self.most = most

    def _read(self, value: Any, parameter: str) -> int:
        return given.whole(value, parameter, least=self.least, most=self.most)


class Size(Whole):
    """Whole number from *least* on, or two of them: a range, both ends included, such as ``50-200`` in a shell."""

    def __init__(self, least: int = 1) -> None:
        super().__init__(least, MOST_OPS)

    def _read(self, value: Any, parameter: str) -> Any:
        if not isinstance(value, tuple):
            return super()._read(value, parameter)
        if len(value) != 2:
            raise InputError("is no range", parameter=parameter, remedy="give a whole number, or two: (50, 200)")
        low, high = (Whole._read(self, end, parameter) for end in value)
        if low > high:
            raise InputError(f"({low}, {high}) is a range that ends before it begins", parameter=parameter)
        return low, high


class Wholes(Kind):
    """Whole numbers, one at least, each from *least* on; a shell has a list such as ``8,16,32-64``, up to *most*."""

    def __init__(self, most: int) -> None:
        self.most = most

    def _read(self, value: Any, parameter: str) -> Sequence[int]:
        numbers = _listed(value, parameter, partial(given.whole, parameter=parameter))
        if not numbers:
            raise InputError("names nothing", parameter=parameter, remedy="give one number at least")
        return numbers


class StageCounts(Kind):
    """Numbers of stages in the order given, each once: one, or several; a shell has ``2,4,8`` or ``1-16``."""

    def _read(self, value: Any, parameter: str) -> tuple[int, ...]:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            value = [value]
        counts = tuple(dict.fromkeys(given.whole(one, parameter, most=MOST_STAGES) for one in value))
        if not counts:
            raise InputError("there is none", parameter=parameter, remedy="give a number of stages")
        return counts


class Names(Kind):
    """Names, in a sequence or in one text with commas between them; some of those that mean something are *names*."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = lambda: names

    def _read(self, value: Any, parameter: str) -> tuple[str, ...]:
        return given.names(value, parameter)


class Groups(Kind):
    """Groups of two names at least, each a sequence or a text with commas; a shell's option may be repeated."""

    def _read(self, value: Any, parameter: str) -> tuple[tuple[str, ...], ...]:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            problem = f"{given.shortened(value)} is not a list of groups"
            raise InputError(problem, parameter=parameter, remedy='write [["a", "b"]]')
        return tuple(self._group(group, parameter) for group in value)

    def _group(self, group: Any, parameter: str) -> tuple[str, ...]:
        found = given.names(group, parameter)
        if len(set(found)) < 2:
            problem = f"{group!r} names fewer than two ops"
            raise InputError(problem, parameter=parameter, remedy=f"write ‹{parameter}› a,b")
        return found


class Pairs(Kind):
    """Names by name; a shell's option ``IN=OUT`` may be repeated."""

    def _read(self, value: Any, parameter: str) -> dict[str, str]:
        if isinstance(value, Mapping):
            return {given.text(one, parameter): given.text(other, parameter) for one, other in value.items()}
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            problem = f"{given.shortened(value)} is not a mapping"
            raise InputError(problem, parameter=parameter, remedy='write {"past": "present"}')
        found: dict[str, str] = {}
        for text in value:
            one, equals, other = given.text(text, parameter).partition("=")
            if not (one and equals and other):
                raise InputError(
                    f"{text!r} is no pair of names", parameter=parameter, remedy=f"write ‹{parameter}› in=out"
                )
            if one in found:
                raise InputError(f"names {one!r} twice", parameter=parameter, where=text)
            found[one] = other
        return found


class Repeated(Kind):
    """Values of one kind, each given by an option of its own."""

    def __init__(self, one: Kind) -> None:
        self.one = one
        self.names = one.names

    def _read(self, value: Any, parameter: str) -> tuple[Any, ...]:
        if isinstance(value, str | bytes | os.PathLike) or not isinstance(value, Iterable):
            problem = f"{given.shortened(value)} is not a list"
            raise InputError(problem, parameter=parameter, remedy="give a list, of one where there is one")
        return tuple(self.one.read(one, parameter) for one in value)


class Choice(Kind):
    """One of a few words; *noun* is what messages call them."""

    def __init__(self, known: Sequence[str], noun: str | None = None) -> None:
        self.known = known
        self.noun = noun
        self.names = lambda: known

    def _read(self, value: Any, parameter: str) -> str:
        return given.choice(value, parameter, self.known, self.noun)


class Text(Kind):
    """Text; some of those that mean something are *names*."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = lambda: names

    def _read(self, value: Any, parameter: str) -> str:
        return given.text(value, parameter)


class Module(Kind):
    """Python module by its full name."""

    def _read(self, value: Any, parameter: str) -> str:
        name = given.text(value, parameter)
        if not all(part.isidentifier() for part in name.split(".")):
            problem = f"{given.shortened(name)} is no name of a module"
            raise InputError(problem, parameter=parameter, remedy="write package.module, as Python imports it")
        return name


class Quantity(Kind):
    """Amount of memory in bytes, as such or as ``24MiB``."""

    def __init__(self, least: int = 1, *, round_down: bool = False) -> None:
        self.least = least
        self.round_down = round_down

    def _read(self, value: Any, parameter: str) -> int:
        if value is None:
            raise InputError("None is no size", parameter=parameter, remedy='write "2GiB"')
        if isinstance(value, str):
            try:
                return self._parse(value)
            except InputError as error:
                raise InputError(error.problem, parameter=parameter, where=error.where, remedy=error.remedy) from None
        number = given.real(value)
        if number is None or not math.isfinite(number) or number != math.floor(number):
            problem = f"{given.shortened(value)} is neither a whole number nor a text with a unit"
            raise InputError(problem, parameter=parameter)
        return given.whole(int(value), parameter, least=self.least, most=2**63 - 1)

    def _parse(self, text: str) -> int:
        from mtpp.units import parse_bytes

        return parse_bytes(text, round_down=self.round_down)


class Tokens(Quantity):
    """Number of tokens, as such or as ``32k``, which are 32,768."""

    def _parse(self, text: str) -> int:
        scale = {"k": 2**10, "m": 2**20}.get(text[-1:].lower(), 1)
        digits = text[:-1] if scale > 1 else text
        if not digits.isascii() or not digits.isdigit() or len(digits) > 18 or not 0 < int(digits) * scale < 2**48:
            raise InputError(f"{text[:40]!r} is no number of tokens", remedy="write 4096 or 32k")
        return int(digits) * scale


class MemoryLimit(Quantity):
    """Limit on memory, which a shell sets for the whole process at once.

    Parameters
    ----------
    processes
        Whether it has to suffice for processes as they are.
    """

    def __init__(self, *, processes: bool = False) -> None:
        super().__init__(round_down=True)
        self.processes = processes

    def _read(self, value: Any, parameter: str) -> int:
        from mtpp.host.memory_limit import LEAST_BYTES

        size = super()._read(value, parameter)
        if self.processes and size < LEAST_BYTES:
            problem = f"{value} is too little to work with"
            raise InputError(problem, parameter=parameter, remedy="give at least 512MiB")
        return size


class Rate(Quantity):
    """Bytes per second, as such or as ``25GB/s``."""

    def _parse(self, text: str) -> int:
        from mtpp.units import parse_bandwidth

        return parse_bandwidth(text)


class Cores(Kind):
    """Numbers of cores, or ``all`` for those that this process may use: read as none."""

    def _read(self, value: Any, parameter: str) -> tuple[int, ...]:
        if isinstance(value, str | tuple) and value in ("all", ()):
            return ()
        if isinstance(value, str | bytes) or not isinstance(value, Sequence) or not value:
            problem = f"{given.shortened(value)} is no list of cores"
            raise InputError(problem, parameter=parameter, remedy='give numbers, or "all"')
        return tuple(given.whole(core, parameter, least=0, most=MOST_CORES) for core in value)


class Sizes(Kind):
    """Sizes by name, each above zero, which a shell has ``--dim``, ``--dims auto`` and ``--trips`` for.

    ``"auto"`` is the same as ``{"*": "auto"}``: all that is not named is proposed. ``{"*": 1}`` sets all of it.

    Parameters
    ----------
    proposed
        Help of ``--dims``; that of ``--dim`` is the option's own.
    """

    largest = 10**18

    def __init__(self, proposed: str) -> None:
        self.proposed = proposed

    def _read(self, value: Any, parameter: str) -> dict[str, int | str]:
        from mtpp.formats.modelled.size_terms import AUTO, OTHERS

        if isinstance(value, str) and value == AUTO:
            return {OTHERS: AUTO}
        if not isinstance(value, Mapping):
            problem = f"{given.shortened(value)} is not a mapping"
            raise InputError(problem, parameter=parameter, remedy='write {"batch": 1}, or "auto"')
        return {
            given.text(name, parameter): AUTO
            if name == OTHERS and isinstance(size, str) and size == AUTO
            else given.whole(size, parameter, most=self.largest)
            for name, size in value.items()
        }


class Amounts(Kind):
    """Amount of memory of all devices, or several with commas or in a list: one of each device; rounded down."""

    def _read(self, value: Any, parameter: str) -> Any:
        amounts = _each(value, partial(self._amount, parameter=parameter))
        if amounts == ():
            raise InputError("names nothing", parameter=parameter, remedy="give one amount at least")
        return amounts

    def _amount(self, value: Any, parameter: str) -> int:
        amount: int = Quantity(round_down=True).read(value, parameter)
        if amount == 0:
            raise InputError("must be above zero", parameter=parameter)
        return amount


class Duration(Quantity):
    """Time in picoseconds, as such or as ``10us``; rounded up."""

    def __init__(self) -> None:
        super().__init__(0)

    def _parse(self, text: str) -> int:
        from mtpp.units import ceil_ratio, parse_duration

        ticks = parse_duration(text)
        return ceil_ratio(ticks.numerator, ticks.denominator)


class Cost(Kind):
    """Cost of a stage: a text such as ``5ms``, or a number in a graph whose costs have no unit."""

    def _read(self, value: Any, parameter: str) -> Any:
        from fractions import Fraction

        if isinstance(value, str | Fraction):
            return value
        if not given.is_number(value):
            raise InputError(f"{given.shortened(value)} is not a time", parameter=parameter, remedy='write "5ms"')
        return str(value)


class Ratio(Kind):
    """Exact ratio from 1 on, a float as the decimal number that it is written as."""

    def _read(self, value: Any, parameter: str) -> Any:
        from fractions import Fraction

        number = given.real(value)
        if number is None:
            raise InputError(f"{given.shortened(value)} is not a number", parameter=parameter)
        if not math.isfinite(number):
            raise InputError(f"{value} is not a finite number", parameter=parameter)
        if value < 1:
            raise InputError(f"{value} is out of range", parameter=parameter, remedy="it must be at least 1")
        return Fraction(str(value))


class Seconds(Kind):
    """Finite number of seconds above zero; None is no limit."""

    def _read(self, value: Any, parameter: str) -> float | None:
        if value is None:
            return None
        number = given.real(value)
        if number is None or not math.isfinite(number):
            raise InputError(f"{given.shortened(value)} is not a number of seconds", parameter=parameter)
        if number <= 0:
            raise InputError(f"{number:g} is not above zero", parameter=parameter, remedy="leave it out for no limit")
        return number


class Counts(Kind):
    """Whole numbers from 0 to *most*, one for each device."""

    def __init__(self, most: int) -> None:
        self.most = most

    def _read(self, value: Any, parameter: str) -> Sequence[int]:
        return _listed(value, parameter, lambda one: given.whole(one, parameter, least=0, most=self.most))


class Number(Kind):
    """Exact number above zero: an int, a fraction, a float as it prints, or a decimal text.

    Parameters
    ----------
    several
        Whether there may be one for each device, in a list or with commas.
    """

    largest, finest = 10**6, 10**9
    """The largest value and the largest denominator: times and sizes are multiplied and divided by such numbers."""

    def __init__(self, *, several: bool = False) -> None:
        self.several = several

    def _read(self, value: Any, parameter: str) -> Any:
        one = partial(self._number, parameter=parameter)
        return _each(value, one) if self.several else one(value)

    def _number(self, value: Any, parameter: str) -> Any:
        number = self._exact(value, parameter)
        if not 0 < number <= self.largest:
            remedy = f"it must be above 0 and at most {self.largest:,}"
            raise InputError(f"{given.shortened(value)} is out of range", parameter=parameter, remedy=remedy)
        if number.denominator > self.finest:
            problem = f"{given.shortened(value)} has too many digits"
            raise InputError(problem, parameter=parameter, remedy="round it to nine")
        return number

    def _exact(self, value: Any, parameter: str) -> Any:
        from fractions import Fraction

        from mtpp.units import exact_decimal

        if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return value
        try:
            return exact_decimal(str(value))
        except ValueError:
            raise InputError(f"{given.shortened(value)} is not a number", parameter=parameter) from None


def _listed(value: Any, parameter: str, one: Callable[[Any], int]) -> Sequence[int]:
    """Return whole numbers that *one* reads, of anything that holds some but a text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{given.shortened(value)} is no list of whole numbers", parameter=parameter)
    return tuple(map(one, value))


def _each(value: Any, one: Callable[[Any], Any]) -> Any:
    """Return one value, or several that are given as a list or as a text with commas."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    elif isinstance(value, bytes) or not isinstance(value, Iterable):
        value = [value]
    read = tuple(map(one, value))
    return read[0] if len(read) == 1 else read
