"""Models that documents name: looked for where a document says, in its folder and in the working folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mtpp.errors import InputError
from mtpp.wording import one_of


class RecordedModel(NamedTuple):
    """The files that a document is about, as they were found; *why* says why its model was not.

    Attributes
    ----------
    path
        Of the model; None where no file has the SHA-256 that the document says.
    costs
        Of its measured costs; None where there are none.
    adapters
        Paths of adapters of a language model.
    changed
        Whether a file of the model's name is there, with another SHA-256.
    """

    path: str | None
    costs: str | None = None
    adapters: tuple[str, ...] = ()
    why: str = ""
    changed: bool = False


@dataclass
class NamedFiles:
    """Files that documents name, each digested once.

    Attributes
    ----------
    max_bytes
        Larger files are passed over; a device or a pipe may never come to an end.
    """

    max_bytes: int
    _digests: dict[tuple[str, tuple[str, ...]], str | None] = field(default_factory=dict)

    def digest(self, path: str, adapters: Sequence[str] = ()) -> str | None:
        """Return the SHA-256 of a file, or of a language model's description; None if there is no such file."""
        from mtpp.api.inputs.language_models import names_language_model
        from mtpp.api.inputs.model_source import model_sha256

        key = (path, tuple(adapters))
        if key not in self._digests:
            self._digests[key] = None
            with suppress(InputError, OSError, ValueError):
                file = Path(path)
                small = file.is_file() and file.stat().st_size <= self.max_bytes
                if small or (file.exists() and names_language_model(path)):
                    self._digests[key] = model_sha256(path, adapters)
        return self._digests[key]

    def find(self, sha256: str, named: str, document: Path | None, adapters: Sequence[str] = ()) -> str | None:
        """Return the path of the file with a SHA-256 among the places that a document's path can mean."""
        places = places_of(named, document)
        return next((place for place in places if self.digest(place, adapters) == sha256), None)


def places_of(named: str, document: Path | None) -> list[str]:
    """Return where a path in a document can be: seen from its folder, in its folder, seen from here, and here.

    Parameters
    ----------
    document
        Path of the document's file; None for one that is in none, which lies in the working folder.
    """
    folders = [Path() if document is None else document.parent, Path()]
    return list(dict.fromkeys(str(folder / path) for folder in folders for path in (named, Path(named).name)))


def plan_of(claims: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the plan that a document is, or the first one of a range of plans."""
    plans = claims.get("plans")
    if not isinstance(plans, Sequence) or isinstance(plans, str):
        return claims
    return plans[0] if plans and isinstance(plans[0], Mapping) else {}


def recorded_model(
    stated: Mapping[str, Any], document: Path | None, files: NamedFiles, adapters: Sequence[str] = ()
) -> RecordedModel:
    """Find the model that a document records, by SHA-256.

    Parameters
    ----------
    stated
        The document's part on its model.
    document
        Path of its file; None for one that is in none.
    files
        Files that were looked at.
    adapters
        Paths of adapters of a language model; none: those that the document records.
    """
    wanted, named = stated.get("sha256"), stated.get("path")
    if not isinstance(wanted, str) or not isinstance(named, str):
        return RecordedModel(None, why="it names no file")
    chosen = tuple(adapters) or tuple(_adapters(stated, document))
    path = files.find(wanted, named, document, chosen)
    if path is None:
        there = [place for place in places_of(named, document) if files.digest(place, chosen) is not None]
        why = f"{there[0]} has changed: its SHA-256 is no longer {wanted}" if there else _missing(named, document)
        return RecordedModel(None, why=why, changed=bool(there))
    measured = stated.get("costs_sha256")
    costs = files.find(measured, str(stated.get("costs_path", "")), document) if isinstance(measured, str) else None
    if measured is not None and costs is None:
        return RecordedModel(None, why=f"its measured costs, {stated.get('costs_path')}, are not there or have changed")
    return RecordedModel(path, costs, chosen)


def _adapters(stated: Mapping[str, Any], document: Path | None) -> Iterator[str]:
    listed = stated.get("adapters")
    for one in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        if isinstance(one, str):
            places = places_of(one, document)
            yield next((place for place in places if Path(place).exists()), places[0])


def _missing(named: str, document: Path | None) -> str:
    """Say where the file of a model was looked for."""
    places = dict.fromkeys(_seen_from_here(place) for place in places_of(named, document))
    return f"its model is not at {one_of(list(places))}"


def _seen_from_here(place: str) -> str:
    """Write a path as short as it goes: in the working folder without that."""
    path = os.path.normpath(place)
    below = os.path.relpath(path) if os.path.isabs(path) else path
    return path if below.startswith(os.pardir) else below
