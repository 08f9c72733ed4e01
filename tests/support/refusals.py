"""Errors of input that a call has to end with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mtpp
from mtpp.errors import InputError


def refusal(call: Callable[..., Any], *arguments: Any, **named: Any) -> InputError:
    """Call a function with arguments that it has to refuse, and return the error."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    return caught.value


def refused_layout(engine: str, layout: Any, **of: Any) -> str:
    """Read a layout that its engine refuses, and return the engine's words."""
    return str(refusal(mtpp.read_layout, engine, layout, **of)).removeprefix("layout: refused: ")
