"""Names stand in one module: a registry has an entry for each of its names, in their order."""

from __future__ import annotations

import ast
from pathlib import Path

from mtpp import names
from mtpp.formats.exporters.registry import EMITTERS
from mtpp.formats.graphs.registry import FORMATS
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, PLANNERS, SPLIT_PLANNERS
from mtpp.solvers.registry import PARTITIONERS
from mtpp.units import PICOSECONDS


def test_registries_have_an_entry_for_each_name() -> None:
    """Help, completion and messages list what there is."""
    assert tuple(PARTITIONERS) == names.PARTITIONERS
    assert set(names.ALGORITHMS) == {*names.PARTITIONERS, *names.PARTITIONER_ALIASES}
    assert tuple(BOUNDS) == names.BOUNDS
    assert (*PLANNERS, *GRAPH_PLANNERS, *SPLIT_PLANNERS) == names.PLANNERS
    assert tuple(one.name for one in FORMATS if one.read) == names.FORMATS_READ
    assert tuple(one.name for one in FORMATS if one.write or one.write_stages) == names.FORMATS_WRITTEN
    assert tuple(one.name for one in EMITTERS) == names.EXPORTERS
    assert tuple(unit for unit in PICOSECONDS if unit.isascii()) == names.TIME_UNITS


def test_nothing_is_imported() -> None:
    """A TAB or a page of help costs no reader and no solver."""
    tree = ast.parse(Path(names.__file__).read_text(encoding="utf-8"))
    imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    assert [getattr(one, "module", "") for one in imports] == ["__future__"]
