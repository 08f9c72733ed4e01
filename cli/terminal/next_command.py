"""The command line that goes on where one has stopped short of a proof."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mtpp.api.partitioning.next_step import limit_of_all

if TYPE_CHECKING:
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.cli.terminal.console import Console

_STAGES = ("-k", "--stages")
_LIMIT = ("--time-limit",)


def tell_next(plans: Sequence[PartitionPlan], given_s: float | None, console: Console) -> None:
    """Tell which command is likely to prove the plans that are not proven to be optimal, and how long it takes.

    Parameters
    ----------
    given_s
        Time limit of the search that found them all; None: there was none.
    """
    each = None if given_s is None else given_s / len(plans)
    found = limit_of_all(plans, each)
    if not found:
        return
    options: dict[Sequence[str], str] = {_LIMIT: str(sum(found.values()))}
    if len(plans) > 1:
        options[_STAGES] = ",".join(map(str, found))
    words = with_options(sys.argv[1:], options)
    of = "" if len(plans) == 1 else f" of k = {', '.join(map(str, found))}"
    gaps = "gap" if len(found) == 1 else "gaps"
    console.say(f"likely to close the {gaps}{of}, within {sum(found.values())} s: {shlex.join(['mtpp', *words])}")


def with_options(words: Iterable[str], options: Mapping[Sequence[str], str]) -> list[str]:
    """Return the words of a command line with other values of options, each of which goes by several names."""
    names = {name: names for names in options for name in names}
    kept: list[str] = []
    given = iter(words)
    for word in given:
        name, equals, _ = word.partition("=")
        short = word[:2] if word[:2] in names and not word.startswith("--") else ""
        if name in names:
            if not equals:
                next(given, None)
        elif not short:
            kept.append(word)
    return [*kept, *(word for names, value in options.items() for word in (names[0], value))]
