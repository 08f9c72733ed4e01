"""The model and the stages that a layout is read for, and ways to look into one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mtpp.errors import InputError, renamed
from mtpp.formats.io.json_text import json_fault
from mtpp.language_models.language_model import LanguageModel
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
    described
        The model by its files and its configuration; None if it is not given.
    path
        Its folder or file, as an engine's command takes it.
    """

    layers: int
    stages: int | None = None
    heads: int | None = None
    mtp: int = 0
    tied: bool = False
    model_type: str | None = None
    vision: bool = False
    modules: Callable[[], Modules] | None = None
    described: LanguageModel | None = None
    path: str = "MODEL"

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
    r"""Value of a name in a text; a text without one is a value itself.

    Names stand in lines such as ``NAME=value``, ``--name "value"`` or ``NAME=value command --flag``, beside others.

    Examples
    --------
    >>> value_in("# a comment\nA=1 B=2,3 run --size 4", "B")
    '2,3'
    >>> value_in("B: 2, 3", "B")
    '2, 3'
    """
    for line in uncommented(text).splitlines():
        for name in names:
            match = re.search(rf"(?:^|\s){re.escape(name)}(?=[\s:=])", line)
            if match:
                return _word(line[match.end() :].lstrip(" \t:="))
    return text


def _word(rest: str) -> str:
    """Quoted beginning of a line; the first word of one that goes on with other words, else all of it."""
    quote = rest[:1]
    if quote and quote in "\"'":
        return rest[1:].partition(quote)[0]
    word = rest.split(maxsplit=1)
    return word[0] if len(word) > 1 and re.search(r"(?:^|\s)-*[A-Za-z]", word[1]) else rest.strip()


def uncommented(text: str) -> str:
    """Lines of a text without comments; all of one that has nothing else."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join(lines) if any(line.strip() for line in lines) else text


def json_in(text: str, name: str, expected: str) -> Any:
    """Value in JSON of a name in a text, to its end on whatever line; a text without the name is one itself."""
    found = re.search(rf"(?:^|\s){re.escape(name)}\s*[:=]\s*", uncommented(text))
    if found is None:
        return json_text(text, expected)
    try:
        return json.JSONDecoder().raw_decode(uncommented(text), found.end())[0]
    except (ValueError, RecursionError) as error:
        raise InputError(f"is {json_fault(error)}", parameter="layout", remedy=f"give {expected}") from None


def json_text(text: str, expected: str) -> Any:
    """Value of a text in JSON."""
    try:
        return json.loads(uncommented(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is {json_fault(error)}", parameter="layout", remedy=f"give {expected}") from None


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
