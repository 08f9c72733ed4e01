"""Verification of results: what is checked, for how long, and what it has to be for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.api.options.kinds import Flag, MemoryLimit, Quantity, Seconds, Sizes, Text
from mtpp.api.options.language_models import adapters_option
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import InputPath
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.formats.modelled.size_terms import SizeTerms


class Verifying(Options):
    """Terms of a verification."""

    costs: str | None = option(
        None, InputPath("the file of costs"), "Measured times of the ops, if it was made with them.", "FILE"
    )
    shallow: bool = option(
        False, Flag("deep"), "Run exhaustive searches again, or leave them out.",
        more="Claims that rest on searches left out are unchecked.",
    )  # fmt: skip
    time_limit_s: float | None = option(
        None, Seconds(), "Seconds from the start of the process; what is not checked by then is unchecked.", "S",
        more="In Python: from the call. Outside the main thread it ends searches alone.",
    )  # fmt: skip
    memory_limit: int | None = option(
        None, MemoryLimit(), "Of all processes together, at least 512MiB.", "SIZE",
        more="In Python: of an exhaustive search, which has a limit of its own by default.",
    )  # fmt: skip
    max_input_size: int | None = option(
        None, Quantity(), "Refuse larger inputs.", "SIZE", shown="2GiB for models, 256MiB for FILE",
        more="By default 2GiB for models, 256MiB for the result.",
    )  # fmt: skip
    adapters: tuple[str, ...] = adapters_option()
    dims: SizeTerms | None = option(
        None, Sizes("All others have to be what is proposed for the model."),
        "A dimension has to be that; '*=1': all others.", more="By default those of a model that is given as read.",
    )  # fmt: skip


class Titled(Options):
    """Wording of a page."""

    title: str | None = option(None, Text(), "Title of the page; by default the name of the model or file.", "TEXT")

    def __post_init__(self) -> None:
        """Refuse a title of blanks."""
        if self.title is not None and not self.title.strip():
            raise InputError("is empty", parameter="title", remedy="leave it out")
