"""A layout in an engine's own form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class WrittenLayout:
    """A layout for an engine.

    Attributes
    ----------
    setting
        Keys and values as the reader of that engine takes them.
    text
        Lines to paste.
    notes
        Facts that the engine adds of its own accord: weights that it holds twice, a part on the CPU.
    """

    setting: dict[str, Any]
    text: str
    notes: list[str] = field(default_factory=list)

    @property
    def commented(self) -> str:
        """Text below its notes, a comment each."""
        return "".join(f"# {note}\n" for note in self.notes) + self.text
