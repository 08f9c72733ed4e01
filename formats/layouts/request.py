"""The model and the stages that a layout is read for, and ways to look into one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.errors import InputError, renamed
from mtpp.language_models.modules import Modules
from mtpp.terminal_safe import terminal_safe

Setting = Mapping[str, Any]
"""A layout with an engine's own keys."""

MOST = 100_000
"""Layers, stages, devices and the like of a layout."""


@dataclass(frozen=True, kw_only=True)
class LayoutRequest:
    """A model's layers and the stages that share them.

    Attributes
    ----------
    layers
        Number of decoder layers.
    stages
        Number of stages, or of devices where an engine names these; None if unknown.
    heads
        Number of attention heads, None if unknown.
    mtp
        Number of layers that predict further tokens.
    tied
        The head shares the weights of the embedding.
    model_type
        Architecture by its name in ``config.json``, None if unknown.
    vision
        The model has a tower for pictures.
    modules
        Returns the tree of the model's modules; None if no model is given.
    """

    layers: int
    stages: int | None = None
    heads: int | None = None
    mtp: int = 0
    tied: bool = False
    model_type: str | None = None
    vision: bool = False
    modules: Callable[[], Modules] | None = None

    def stage_count(self, alternative: int | None = None) -> int:
        """Return the number of stages; the alternative if it was not said.

        Raises
        ------
        InputError
            If neither is known.
        """
        count = self.stages if self.stages is not None else alternative
        if count is None:
            raise InputError("the number of stages is needed", parameter="stages")
        return count


class EngineRefusal(InputError):
    """A layout that its engine refuses.

    Parameters
    ----------
    kind
        Class of the engine's error.
    text
        The engine's own words, with all their blanks.
    """

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text
        super().__init__(f"refused: {kind}: {text}", parameter="layout")

    def told(self, name_of: Callable[[str], str]) -> str:
        """Return the line with the names that a front end has for parameters; blanks of the layout stay."""
        text = terminal_safe(f"{renamed(str(self.source), name_of)}: {self.problem}")
        return text if len(text) <= self.longest else f"{text[: self.longest * 2 // 3]} … {text[-self.longest // 3 :]}"


def refusal(kind: str, text: str) -> EngineRefusal:
    """Error that an engine raises, by its class and in its own words."""
    return EngineRefusal(kind, text)


def named(setting: Setting, *names: str, default: Any = None) -> Any:
    """Value of the first of several names of one key."""
    return next((setting[name] for name in names if name in setting), default)


def check_keys(setting: Setting, known: Iterable[str]) -> list[str]:
    """Name keys that nothing is known of."""
    known = {*known, "note", "named", "stages"}
    return [f"key {key!r} is not read" for key in setting if key not in known]


def value_in(text: str, *names: str) -> str:
    """Value in a line such as ``NAME=value`` or ``--name "value"``; a text without a name is one itself."""
    line = text.strip()
    for name in names:
        if line.startswith(name):
            return line.removeprefix(name).lstrip(" \t:=").strip("\"'")
    return text


def json_text(text: str, expected: str) -> Any:
    """Value of a text in JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", parameter="layout", remedy=f"give {expected}") from None


def natural(value: Any, name: str, least: int = 0, most: int = MOST) -> int:
    """Whole number between the least and the most allowed."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name} is {value!r}, not a whole number from {least} to {most}", parameter="layout")
    return value


def integer(value: Any, name: str) -> int | None:
    """Whole number of either sign, None where nothing is said."""
    return None if value is None else natural(value, name, -MOST)


def listed(numbers: Iterable[int]) -> str:
    """Numbers in words: ``2``, ``2 and 3``, ``2, 3 and 5``."""
    texts = [str(number) for number in numbers]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
