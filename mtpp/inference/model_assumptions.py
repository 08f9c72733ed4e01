"""Assumptions that readers of models made, as tables of several models tell them."""

from __future__ import annotations

from collections.abc import Iterable

from mtpp.wording import first_of

_MODELS_NAMED = 2
_LISTED = 8


def assumptions_of_models(models: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Return each assumption once; with names of models where it is not about all of them.

    Parameters
    ----------
    models
        Names, one of them any number of times, with what was assumed of each.
    """
    names: dict[str, None] = {}
    about: dict[str, dict[str, None]] = {}
    for name, assumed in models:
        names[name] = None
        for text in assumed:
            about.setdefault(text, {})[name] = None
    texts = [
        text if len(of) == len(names) else f"{first_of(list(of), _MODELS_NAMED)}: {text}" for text, of in about.items()
    ]
    more = [f"… {len(texts) - _LISTED} more"] if len(texts) > _LISTED else []
    return [*texts[:_LISTED], *more]
