"""PyTorch itself: the one place that imports it, and its messages on one line."""

from __future__ import annotations

import logging
import warnings
from importlib import import_module
from typing import Any

from mtpp.errors import InputError

LEAST_VERSION = (2, 13)
"""Older ones were not tried: layouts of archives and names in graphs differ."""

_REGISTERED_BY = {"quantized_decomposed": "torch.ao.quantization.fx._decomposed"}
"""Modules of PyTorch that have to be imported before it knows operators of its own."""


def pytorch() -> Any:
    """Return the module ``torch``; raise InputError if it is not installed, or older than :data:`LEAST_VERSION`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torch
    except ImportError:
        raise InputError("PyTorch is not installed", remedy="pip install 'mtpp[torch]'") from None
    version = torch.__version__.partition("+")[0].split(".")
    if tuple(int(part) if part.isdigit() else 0 for part in version[:2]) < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise InputError(f"PyTorch {torch.__version__} is older than {least}", remedy=f"pip install 'torch>={least}'")
    for name in ("torch.export", "torch._export"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return torch


def has_operator(target: str) -> bool:
    """Say whether PyTorch has what a node of an exported program calls, such as ``torch.ops.aten.relu.default``."""
    if not target.startswith("torch.ops."):
        return True
    found: Any = pytorch().ops
    parts = target.split(".")[2:]
    if parts[0] in _REGISTERED_BY:
        import_module(_REGISTERED_BY[parts[0]])
    for part in parts:
        found = getattr(found, part, None)
    return found is not None


def program_text(exported: Any) -> bytes:
    """Return the JSON text of an exported program, as ``torch.export.save`` puts it into its archive.

    PyTorch has no public function that leaves the weights out.
    """
    pytorch()
    from torch._export.serde.serialize import serialize

    written = serialize(exported, serialize_state_dict=False, serialize_constants=False, serialize_example_inputs=False)
    text: bytes = written.exported_program
    return text


def first_line(error: BaseException) -> str:
    """Return what an error of PyTorch says first, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]
