"""A format of graph files: recognition, reading, writing, and the options that its reader takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.io.source import Source
from mtpp.formats.modelled.size_terms import SizeTerms
from mtpp.inference.graph import CostGraph
from mtpp.inference.plan import Plan
from mtpp.machine.device import Device
from mtpp.names import TIME_UNITS

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Content:
    """A source, and its JSON document if it is JSON (parsed when first asked for, at most once)."""

    source: Source

    @cached_property
    def is_json(self) -> bool:
        """Whether it starts like a JSON object or array; no other format does."""
        head = self.source.data[:4096].removeprefix(_BOM).lstrip()
        return head[:1] in (b"{", b"[")

    @cached_property
    def document(self) -> Any:
        """The parsed document."""
        return parse_json(self.source.data, self.source.display)

    def has(self, *keys: str) -> bool:
        """Return whether it is a JSON object with all of *keys*."""
        return self.is_json and isinstance(self.document, dict) and all(key in self.document for key in keys)


@dataclass(frozen=True)
class ReadOptions:
    """What a caller says about a file beyond its bytes.

    Attributes
    ----------
    dims
        Values of symbolic dimensions; see :mod:`mtpp.formats.modelled.size_terms`.
    system
        Models the work of ops in formats that bring none.
    spare_dims
        Whether *dims* may name dimensions that this model has not.
    time_unit
        Unit of the times in a file that does not name it.
    backward
        Whether the backward pass counts, where a file tells it from the forward pass.
    loading_time
        Whether loading data counts, where a file has nodes that do so.
    """

    dims: SizeTerms = field(default_factory=dict)
    system: Device | None = None
    spare_dims: bool = False
    time_unit: str | None = None
    backward: bool = False
    loading_time: bool = False

    def check(self) -> None:
        """Check what a user may have written wrong."""
        if self.time_unit is not None and self.time_unit not in TIME_UNITS:
            raise InputError(
                f"unknown unit of time {self.time_unit!r}",
                parameter="time_unit",
                remedy=f"use one of {', '.join(TIME_UNITS)}",
            )


@dataclass(frozen=True)
class GraphFormat:
    """One format of graph files.

    Attributes
    ----------
    name
        As ``--from`` and ``--to`` call it.
    suffixes
        Lower case, without ``.gz``; the first is the usual one.
    shared_suffixes
        Those that its files have and others too: they decide nothing.
    recognises
        Whether some content is in this format, cheap and without complaint.
    read
        Makes a graph of a :class:`Content` and of *takes* by name, or raises InputError; None where there is no reader.
    write
        Returns the text of a file with a graph; None where there is no such writer.
    write_stages
        Returns the text of a file with the stages of a plan; None where the format has no place for stages.
    takes
        What of :class:`ReadOptions` has an effect on it: ``dims``, ``time_unit``, …
    assumes
        Whether its reader makes assumptions, which are then in ``metadata["assumptions"]``.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Content], bool]
    read: Callable[..., CostGraph] | None = None
    write: Callable[[CostGraph], str] | None = None
    write_stages: Callable[[Plan], str] | None = None
    takes: frozenset[str] = frozenset()
    shared_suffixes: tuple[str, ...] = ()
    assumes: bool = False
