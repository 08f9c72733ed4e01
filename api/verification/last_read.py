"""Models as they were read last, for the next plan of the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")


@dataclass
class LastRead:
    """What was read last of each kind, with all that it depends on within one verification.

    One of each kind is kept: models of the next plan are like those of the last one, or like none.
    """

    _kept: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def read(self, kind: str, key: Any, make: Callable[[], T]) -> T:
        """Return what *make* returns, or what it returned the last time if *key* was the same."""
        kept = self._kept.get(kind)
        if kept is None or kept[0] != key:
            kept = self._kept[kind] = (key, make())
        return cast("T", kept[1])
