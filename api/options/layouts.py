"""Layouts of engines that are audited, and the search that they are held against."""

from __future__ import annotations

from typing import Any

from mtpp.api.options.kinds import Names, Repeated, Seconds, StageCounts, Whole
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.names import LAYOUT_RULES
from mtpp.ranges import MOST_STAGES


class Auditing(Options):
    """Stages of a layout, and the search for the best plan that it is held against."""

    k: int | None = option(
        None, Whole(1, MOST_STAGES), "Number of stages, or of devices [default: as the layout or the machine says].",
        also="--stages",
    )  # fmt: skip
    time_limit_s: float | None = option(None, Seconds(), "Of the search for the best plan.", "S")


class Ruling(Options):
    """Rules of engines that are compared, and machines that they are compared on."""

    layouts: tuple[str, ...] | None = option(
        None, Names(("all", *LAYOUT_RULES)),
        "Compare the layouts of language models that these engines make by themselves, or all of them.", "ENGINE,…",
    )  # fmt: skip
    machines: tuple[Any, ...] | None = option(
        None, Repeated(InputPath("a machine", other="Machine")),
        "A machine that ‹layouts› are compared on; may be repeated.", "FILE",
        more="Paths, or objects of :class:`mtpp.Machine`.",
    )  # fmt: skip
    k: tuple[int, ...] | None = option(
        None, StageCounts(), "Numbers of stages [of a machine: its devices].", "K,K-K,…", also="--stages"
    )
    time_limit_s: float | None = option(None, Seconds(), "Of each search for the best plan.", "S")
