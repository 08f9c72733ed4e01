"""Observers that keep what they are told."""

from __future__ import annotations

from mtpp.api.observer import Observer


class Heard(Observer):
    """Observer that keeps warnings, reasons to wait, phases, partitions or plans, bounds and steps."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.said: list[str] = []
        self.phases: list[str] = []
        self.incumbents: list[int] = []
        self.bounds: list[int] = []
        self.shown: list[tuple[int, int | None]] = []

    def warn(self, text: str) -> None:
        """Keep a warning."""
        self.warnings.append(text)

    def say(self, text: str) -> None:
        """Keep a reason to wait."""
        self.said.append(text)

    def phase(self, name: str) -> None:
        """Keep the name of a phase."""
        self.phases.append(name)

    def incumbent(self, bottleneck: int) -> None:
        """Keep a bottleneck or an iteration, in ticks."""
        self.incumbents.append(bottleneck)

    def bound(self, value: int) -> None:
        """Keep a bound, in ticks."""
        self.bounds.append(value)

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Keep how many steps are done, and of how many."""
        self.shown.append((done, total))
