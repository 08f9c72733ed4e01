"""Completion as shells ask for it: the scripts that they load, and the words that they send."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

VARIABLE = "_MTPP_COMPLETE"
"""Set by a shell that asks for completions, as ``bash_complete``."""

_BREAKS = frozenset("=:")
"""Characters at which bash breaks words that are one for every program."""


class WholeWords(BashComplete):
    """Completion in bash, for words with ``=`` and ``:`` in them: ``--format=json``, ``--dim batch=1``."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one; what bash completes is its last part."""
        args, incomplete = super().get_completion_args()
        *before, last = rejoined([*args, incomplete])
        return before, last

    @staticmethod
    def _check_version() -> None:
        """Leave the version of another bash alone: the script may be for a container, or for a newer one."""


class ValuesOfOptions(ZshComplete):
    """Completion in zsh, where ``--format=js`` is one word: its value is completed."""

    source_template = ZshComplete.source_template.replace(
        "    for type key descr", "    [[ ${words[CURRENT]} == --*=* ]] && compset -P 1 '*='\n\n    for type key descr"
    ).replace("compadd -U", "compadd")  # which would put the value in the place of the option, too


class WholeValues(FishComplete):
    """Completion in fish, for values with commas in them and those after ``=``: ``--bounds=node,simple``."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the completions of the word, whole where it is an option with its value."""
        found = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("--"):
            return [CompletionItem(f"{option}={item.value}", item.type, item.help) for item in found]
        return found


def rejoined(words: Iterable[str]) -> list[str]:
    """Put words together that bash has broken at ``=`` and ``:``."""
    whole: list[str] = []
    broken = False
    for word in words:
        breaks = bool(word) and _BREAKS.issuperset(word)
        if whole and (breaks or broken):
            whole[-1] += word
        else:
            whole.append(word)
        broken = breaks
    return whole


def prepare() -> None:
    """Take the place of what click has for these shells."""
    for completion in (WholeWords, ValuesOfOptions, WholeValues):
        add_completion_class(completion)


def script(shell: str, command: click.Command) -> str:
    """Return what a shell has to load to complete *command*: ``bash``, ``zsh`` or ``fish``."""
    prepare()
    completion = get_completion_class(shell)
    assert completion is not None
    return completion(command, {}, "mtpp", VARIABLE).source()
