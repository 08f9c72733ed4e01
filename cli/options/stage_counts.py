"""Several numbers of stages in one option: ``-k 2,4,8``."""

from __future__ import annotations

from typing import Any

import click

from mtpp.ranges import MOST_STAGES


class StageCounts(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Numbers of stages with commas between them, in the order given; one given twice counts once."""

    name = "stage counts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Read the list or fail, naming the part that is wrong."""
        if isinstance(value, tuple):
            return value
        counts = []
        for part in (part.strip() for part in str(value).split(",")):
            if not part:
                self.fail(f"a number is missing in {value!r}; write them one by one, such as 2,4,8", param, ctx)
            if not part.isdecimal() or len(part) > 2 * len(str(MOST_STAGES)):
                self.fail(f"{part!r} is not a number of stages; write them one by one, such as 2,4,8", param, ctx)
            if not 1 <= int(part) <= MOST_STAGES:
                self.fail(f"{part} is not in the range 1<=k<={MOST_STAGES}", param, ctx)
            counts.append(int(part))
        return tuple(dict.fromkeys(counts))
