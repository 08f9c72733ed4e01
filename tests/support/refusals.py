"""Errors of input that a call has to end with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtpp.errors import InputError


def refusal(call: Callable[..., Any], *arguments: Any, **named: Any) -> InputError:
    """Call a function with arguments that it has to refuse, and return the error."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    return caught.value
