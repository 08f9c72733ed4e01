"""Docstrings of this project as Sphinx takes them: numpydoc whose section ``Returns`` holds sentences, no types."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring

CONSTRUCTED = (
    "mtpp.Observer",
    *(f"mtpp.{name}" for name in ("Equi", "GraphPipe", "Pfeife", "PipeDream2BW", "Piper", "Reading")),
    *(f"mtpp.api.recipes.{name}" for name in ("Chain", "InTree", "MultiBranch", "RegalStyle", "Transformer")),
    *(f"mtpp.api.recipes.{name}" for name in ("TransformerTraining", "MultiModalTransformer", "Dlrm", "CandleUno")),
)
"""Classes that callers make themselves: only their signatures are shown."""

_CONFIG = Config(napoleon_use_ivar=True, napoleon_use_rtype=False)


class ProseDocstring(NumpyDocstring):
    """A docstring in numpydoc's format; what is returned is said in sentences, its type is the annotation's."""

    def _parse_returns_section(self, section: str) -> list[str]:
        return self._format_block(":returns: ", self._dedent(self._consume_to_next_section()))

    def _consume_fields(
        self, parse_type: bool = True, prefer_type: bool = False, multiple: bool = False
    ) -> list[tuple[str, str, list[str]]]:
        """Say of parameters that share a text once what it is."""
        found: list[tuple[str, str, list[str]]] = []
        first: dict[int, str] = {}
        for name, kind, text in super()._consume_fields(parse_type, prefer_type, multiple):
            known = first.setdefault(id(text), name)
            found.append((name, kind, text if known == name else [f"See *{known}*."]))
        return found


_WORDS = {" -- ": " – ", "Variables": "Attributes"}


def _reworded(app: Sphinx, doctree: nodes.document) -> None:
    """Write a dash between a parameter and its text, where Sphinx has two hyphens, and call attributes by that name."""
    for text in list(doctree.findall(nodes.Text)):
        if text.astext() == " -- " or (text.astext() in _WORDS and isinstance(text.parent, nodes.field_name)):
            text.parent.replace(text, nodes.Text(_WORDS[text.astext()]))


def _process_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = ProseDocstring(lines, _CONFIG, app, what, name, obj, options).lines()


def _process_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str, None] | None:
    hidden = signature is not None and what in ("class", "exception") and name not in CONSTRUCTED
    return ("", None) if hidden else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to autodoc."""
    app.connect("autodoc-process-docstring", _process_docstring)
    app.connect("autodoc-process-signature", _process_signature)
    app.connect("doctree-read", _reworded)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
