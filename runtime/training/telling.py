"""Answers of a process to questions about what it computed, until it is told to go on."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from mtpp.runtime.pytorch.tensors import as_array
from mtpp.runtime.training.results import Key


def answer(parent: Connection, tensors: Mapping[Key, Any]) -> None:
    """Send ``arrays``, the contents of the tensors asked for as far as they are here, until None is."""
    while (asked := parent.recv()) is not None:
        found = {key: tensors[key] for key in asked if key in tensors}
        parent.send(("arrays", {key: None if one is None else as_array(one) for key, one in found.items()}))
