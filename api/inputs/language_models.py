"""Language models from paths; architectures that the table does not have are counted by transformers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.formats.language_models.skeleton import Skeleton
    from mtpp.language_models.language_model import LanguageModel


def names_language_model(source: Any) -> bool:
    """Return whether a source is the path of a folder, a configuration or a checkpoint of a language model."""
    from mtpp.formats.language_models.reader import is_language_model

    if not isinstance(source, str | os.PathLike) or os.fspath(source) in ("-", ""):
        return False
    try:
        return is_language_model(Path(os.fsdecode(source)))
    except ValueError:  # a null byte
        return False


def language_model(path: str | os.PathLike[str], adapters: Iterable[str] = ()) -> LanguageModel:
    """Read a language model, and the weights of adapters with it.

    Raises
    ------
    InputError
        If headers or configuration are broken or incomplete, or its architecture is unknown and transformers is not
        installed or does not know it either.
    """
    from mtpp.formats.language_models.adapters import with_adapter
    from mtpp.formats.language_models.reader import read_language_model

    model = read_language_model(Path(os.fsdecode(path)), _counted)
    for adapter in adapters:
        model = with_adapter(model, Path(adapter))
    return model


def described_language_model(values: Mapping[str, Any], source: str) -> LanguageModel:
    """Return the language model that keys of a configuration describe.

    Parameters
    ----------
    source
        Name of the configuration in messages.

    Raises
    ------
    InputError
        As :func:`language_model`.
    """
    from mtpp.formats.language_models.described import described_model
    from mtpp.formats.language_models.reader import text_configuration

    text, towers = text_configuration(values)
    return described_model(source, str(text.get("model_type", ""))[:80], text, source, towers, _counted)


def _counted(values: Mapping[str, Any], source: str, element_bytes: int) -> tuple[Skeleton, str] | None:
    from mtpp.runtime.pytorch.transformers_models import counted

    return counted(values, source, element_bytes)
