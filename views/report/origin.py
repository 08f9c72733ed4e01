"""Origin of a plan: the model, the system and the search, as its document records them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mtpp.views.report.page import Section, TableBlock
from mtpp.views.report.stated import StatedPlan
from mtpp.views.table import Column, Table
from mtpp.wording import counted


def origin_section(document: Mapping[str, Any], shown: StatedPlan) -> Section:
    """Return the section on a plan."""
    model = document["model"]
    facts = [
        ("model", f"{model['name']}: {model['ops']:,} ops, {model['tensors']:,} tensors"),
        ("SHA-256 of its file", model["sha256"] or "none: the model came from no file"),
        ("sizes", ", ".join(f"{name} = {size}" for name, size in model["dims"].items()) or "none to set"),
        ("system", shown.system.describe()),
        ("algorithm", f"{document['algorithm']}, seed {document['seed']}"),
        ("found by", _found_by(document)),
        ("ended by", str(document.get("stopped", "unknown"))),
    ]
    if "costs_sha256" in model:
        facts.insert(2, ("SHA-256 of its costs", model["costs_sha256"]))
    if document["together"]:
        facts.append(("kept together", f"{counted(len(document['together']), 'group')} of ops"))
    return facts_section("origin", "Where it comes from", "What the file records of the model and of the search", facts)


def facts_section(name: str, title: str, caption: str, facts: Iterable[tuple[str, str]]) -> Section:
    """Return a section with a table of names and what they stand for."""
    columns = [Column(header, left=True) for header in ("what", "value")]
    return Section(name, title, [TableBlock(f"{name}-table", Table(caption, columns, list(facts)))])


def _found_by(document: Mapping[str, Any]) -> str:
    found = str(document.get("found_by", document["algorithm"]))
    return f"{found} after {document['evaluations']:,} evaluations" if "evaluations" in document else found
