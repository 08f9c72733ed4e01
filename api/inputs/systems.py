"""Presets of systems: devices with links that the package knows by name, and the sources of their figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.api.output import ShownResult

if TYPE_CHECKING:
    from mtpp.views.terminal import Medium


class Systems(ShownResult):
    """Presets with their figures; one alone with the source of each."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    @property
    def names(self) -> list[str]:
        """Names of the presets."""
        return [str(row["name"]) for row in self._document["systems"]]

    def _said(self) -> Mapping[str, Any]:
        return self._document

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.systems import systems_text

        return systems_text(self._document, medium)


def systems(name: str | None = None) -> Systems:
    """List the presets that ``system=`` takes, with peak rate, memory bandwidth, link and memory of each.

    Parameters
    ----------
    name
        One preset alone, with the sources of its figures. Case, blanks, punctuation and the maker's name do not count.

    Raises
    ------
    InputError
        If no preset has the name.

    Examples
    --------
    >>> import mtpp
    >>> mtpp.systems("RTX 4090").document()["systems"][0]["fast_memory_bytes"]
    24000000000
    """
    from mtpp.api import parameters
    from mtpp.errors import InputError
    from mtpp.machine.preset_document import systems_document
    from mtpp.machine.presets import preset_named, preset_tables, unknown_preset

    if name is None:
        return Systems(systems_document(list(preset_tables()), sources=False))
    preset = preset_named(parameters.text(name, "name"))
    if preset is None:
        raise InputError(f"no preset is called {name!r}", parameter="name", remedy=unknown_preset(name))
    return Systems(systems_document([preset], sources=True))
