"""Descriptions of language models, by their first bytes: read where language models are."""

from __future__ import annotations

FORMAT = "mtpp-language-model"

_HEAD = f'{{"format": "{FORMAT}"'.encode()


def looks_like_description(data: bytes) -> bool:
    """Return whether some bytes begin like the description of a language model."""
    return data.startswith(_HEAD)
