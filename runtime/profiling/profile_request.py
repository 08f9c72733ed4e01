"""The request for a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mtpp.array_types import Array
from mtpp.formats.modelled.size_terms import SizeTerms
from mtpp.machine.device import Device
from mtpp.runtime.profiling.timing import ProfileChoices


@dataclass(frozen=True)
class ProfileRequest:
    """Terms of a profile.

    Attributes
    ----------
    dims
        Sizes of symbolic dimensions; see :mod:`mtpp.formats.modelled.size_terms`.
    arrays
        Contents of inputs.
    system
        Models the costs that measured ones are compared with.
    memory_bytes
        That may be taken; None for no limit.
    backward
        Whether the backward pass of each op is measured too.
    """

    choices: ProfileChoices
    system: Device
    dims: SizeTerms = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    seed: int = 0
    memory_bytes: int | None = None
    backward: bool = False
