"""``transformers``: ``device_map=`` of ``from_pretrained``, whose ``auto`` is a rule of its own since release 5."""

from __future__ import annotations

from mtpp.formats.layouts import accelerate
from mtpp.formats.layouts.request import LayoutRequest, Setting
from mtpp.language_models.layout import Layout


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout of a map, or of the rule of transformers 5."""
    return accelerate.read(setting, request, transformers=True)
