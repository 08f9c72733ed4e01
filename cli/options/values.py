"""Values of options that are texts: sizes with units, lists of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from mtpp.ranges import MOST_CORES, MOST_STAGE_COUNTS, MOST_STAGES
from mtpp.wording import did_you_mean


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN, which every comparison lets through, and without infinity."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number or fail."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class OneOf(click.Choice):  # type: ignore[type-arg]  # generic in new versions of click only
    """One of a few words; of a mistyped one it says which is meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the words to choose from, and the nearest."""
        near = did_you_mean(value, map(str, self.choices), "")
        return "; ".join(filter(None, (super().get_invalid_choice_message(value, ctx).rstrip("."), near)))


class StageCounts(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Numbers of stages and ranges of them with commas between, in the order given; one given twice counts once."""

    name = "stage counts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Read the list or fail, naming the part that is wrong."""
        if isinstance(value, tuple):
            return value
        counts: dict[int, None] = {}
        for part in (part.strip() for part in str(value).split(",")):
            if not part:
                self.fail(f"a number is missing in {value!r}; write 2,4,8 or 1-16", param, ctx)
            ends = part.split("-")
            digits = [end.isascii() and end.isdecimal() and len(end) <= 2 * len(str(MOST_STAGES)) for end in ends]
            if len(ends) > 2 or not all(digits):
                self.fail(f"{part!r} is neither a number of stages nor a range; write 2,4,8 or 1-16", param, ctx)
            low, high = int(ends[0]), int(ends[-1])
            for end in (low, high):
                if not 1 <= end <= MOST_STAGES:
                    self.fail(f"{end} is not in the range 1<=k<={MOST_STAGES}", param, ctx)
            if low > high:
                self.fail(f"{part} is a range that ends before it begins", param, ctx)
            if high - low >= MOST_STAGE_COUNTS:
                self.fail(f"{part} has {high - low + 1:,} numbers, more than {MOST_STAGE_COUNTS:,}", param, ctx)
            counts |= dict.fromkeys(range(low, high + 1))
        return tuple(counts)


def whole_numbers(most: int) -> Callable[[click.Context, click.Parameter, str | None], list[int] | None]:
    """Return the callback of an option whose value is a list such as ``8,16,32-64`` of whole numbers above zero."""

    def read(ctx: click.Context, param: click.Parameter, text: str | None) -> list[int] | None:
        return None if text is None else parse_whole_numbers(text, most)

    return read


def parse_whole_numbers(text: str, most: int, hint: str = "") -> list[int]:
    """Read a list such as ``8,16,32-64`` of whole numbers above zero; ascending, each once.

    Raises
    ------
    click.BadParameter
        If it is none; *hint* ends what it says of a word that is no number.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        ends = part.strip().split("-")
        if len(ends) > 2 or not all(end.isascii() and end.isdecimal() for end in ends):
            raise click.BadParameter(f"{part.strip()!r} is neither a whole number nor a range; write 8,16,32-64{hint}")
        if max(map(len, ends)) > len(str(most)) or int(ends[-1]) > most:
            raise click.BadParameter(f"{part.strip()} is above {most:,}")
        low, high = int(ends[0]), int(ends[-1])
        if not 1 <= low <= high:
            wrong = "does not go up from at least 1" if len(ends) > 1 else "is below 1"
            raise click.BadParameter(f"{part.strip()} {wrong}")
        numbers.update(range(low, high + 1))
    return sorted(numbers)


def counts(ctx: click.Context, param: click.Parameter, text: str | None) -> list[int] | None:
    """Read a list such as ``2,1,0``, in the order in which it is written."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) < 8 for word in words):
        raise click.BadParameter(f"{text!r} is no list of whole numbers, one for each device: write 2,1,0", ctx, param)
    return [int(word) for word in words]


def size(least: int, most: int) -> Callable[[click.Context, click.Parameter, str], tuple[int, int]]:
    """Return the callback of an option whose value is a whole number, or two with a hyphen between them."""

    def read(ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, int]:
        parts = text.split("-")
        # isdecimal alone is true of digits of every script.
        if len(parts) > 2 or not all(part.isascii() and part.isdecimal() for part in parts):
            raise click.BadParameter(f"{text!r} is neither a whole number nor a range such as 50-200")
        if max(map(len, parts)) > len(str(most)) or max(map(int, parts)) > most:
            raise click.BadParameter(f"{text} is above {most:,}")
        low, high = int(parts[0]), int(parts[-1])
        if low > high:
            raise click.BadParameter(f"{text} is a range that ends before it begins")
        if low < least:
            raise click.BadParameter(f"{low} is below {least}, the least there is")
        return low, high

    return read


class CoreList(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Numbers of cores, separated by commas; ``all`` for those that this process may use."""

    name = "cores"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the numbers, or ``all``, or fail."""
        if value == "all" or isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isascii() and part.isdigit() and len(part) <= len(str(MOST_CORES)) for part in parts):
            self.fail(f"{value!r} is no list of cores: write --pin 0,1, or --pin after the folder", param, ctx)
        return tuple(map(int, parts))
