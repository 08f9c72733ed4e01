"""Generators of synthetic graphs, and the small models that the package ships."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from mtpp.errors import InputError

SAMPLES = ("resnet50", "gpt2")
"""Names of the shipped models; ``samples/README.md`` says what each is."""


def sample_path(name: str, suffix: str = "onnx") -> Path:
    """Return the path of a shipped model, one of :data:`SAMPLES`.

    Parameters
    ----------
    suffix
        ``onnx``, or ``pt2`` for the program that PyTorch exported.

    Raises
    ------
    InputError
        If no sample has that name.
    """
    if name not in SAMPLES:
        raise InputError(f"no sample model is called {name!r}", remedy=f"use one of {', '.join(SAMPLES)}")
    folder = ("samples", "pytorch") if suffix == "pt2" else ("samples",)
    return Path(str(files("mtpp.datasets").joinpath(*folder, f"{name}.{suffix}")))
