"""Options of ``mtpp verify`` and ``mtpp report``: without those of a system it is the result's own choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mtpp.api.options.kinds import Choice, Flag
from mtpp.api.options.machine import OnMachine, System
from mtpp.api.options.option import Options, option
from mtpp.api.options.reading import Formats
from mtpp.api.options.verifying import Verifying
from mtpp.cli.options.made import options

if TYPE_CHECKING:
    from mtpp.api.verify import Verification

F = TypeVar("F", bound=Callable[..., Any])

MODELS = "The model that a plan is for, if it embeds none. Models of a table, or folders of them; repeatable."
"""Help of ``--model``."""

FALSE, UNCHECKED = 1, 3
"""Exit codes."""


def verifying_options() -> Callable[[F], F]:
    """Add the terms of a verification, and what a document can be held to."""
    return options(
        Verifying,
        System,
        OnMachine,
        Formats,
        system="Preset or TOML file that it has to be for, with these overrides:",
        bandwidth="The link between stages has to be that, such as 25GB/s.",
        fast_memory="The fast memory of a stage has to be that.",
        activation_reserve="The part of it kept for activations.",
        peak="How activations have to be counted.",
        stage_memory="The limit on the memory of a stage has to be that.",
        machine="Devices that it has to be for.",
    )


class Requirements(Options):
    """Requirements on a result, which decide on the exit code."""

    accept_unchecked: bool = option(False, Flag(), "Exit 0 in place of 3.")
    require_tier: str | None = option(
        None, Choice(("exact", "enumerated", "solver")), "Exit 1 if a bound is less trusted."
    )

    def unmet(self, found: Verification) -> list[str]:
        """Say what is unmet of them."""
        tier = self.require_tier
        return [f"--require-tier {tier}: {why}" for why in found.unmet(tier)] if tier else []

    def exit_code(self, found: Verification, unmet: Sequence[str]) -> int:
        """Return the exit code of a run on one result."""
        if unmet:
            return FALSE
        return 0 if self.accept_unchecked and found.exit_code == UNCHECKED else found.exit_code
