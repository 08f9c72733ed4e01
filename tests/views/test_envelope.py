"""Bounds and figures of devices that differ: those of the best of all devices say so."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import mtpp

GRAPH: dict[str, Any] = {
    "format": "mtpp-graph", "version": 1, "name": "line", "time_unit": "ps",
    "ops": [{"name": name, "work": work} for name, work in zip("abcde", (40, 20, 30, 70, 10), strict=True)],
    "tensors": [{"name": f"t{u}", "producer": u, "consumers": [v], "transfer": 3} for u, v in pairwise("abcde")],
}  # fmt: skip
ON_ENVELOPE = "on equal devices with the best figures of any"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a file of a device and another one that is faster."""
    path = tmp_path / "machine.toml"
    path.write_text(
        '[[device]]\nname = "slow"\nsystem = "v100"\n[[device]]\nname = "fast"\nsystem = "a100"\nspeed = 2\n'
    )
    return path


def test_bounds_on_the_envelope_say_so(machine: Path) -> None:
    """Those whose proofs do, in tables of bounds and of certificates; of equal devices there is no such line."""
    for table in (mtpp.bound(mtpp.read(GRAPH, machine=machine)), mtpp.certify(mtpp.read(GRAPH, machine=machine))):
        (row,) = table.document()["rows"]
        proofs = {name: one["proof"] for name, one in row.get("proofs", {}).items()}
        proofs[row["lower_method"]] = row["lower_proof"]
        (said,) = re.findall(
            rf"^envelope +(.*): {ON_ENVELOPE}, which no device beats$", table.text("table"), re.MULTILINE
        )
        for name, proof in proofs.items():
            assert (name in said.split(", ")) == proof.get("envelope", False), name
        assert "node" in said.split(", ")
        assert not {"downset", "capacity"} & {*said.split(", ")}
    assert ON_ENVELOPE not in mtpp.bound(mtpp.read(GRAPH), 2).text("table")


def test_a_plan_says_where_its_bound_holds(machine: Path) -> None:
    """Beside the bound of a plan that rests on equal devices; one on the devices says nothing of them."""
    model = mtpp.read(GRAPH, machine=machine)
    document = mtpp.partition(model).document(embed=True)
    assert ON_ENVELOPE not in mtpp.load(document).text("table")
    document["lower_bound"] |= {"method": "node", "tier": "exact", "proof": {"envelope": True}}
    assert f"by node, tier exact, {ON_ENVELOPE}\n" in mtpp.load(document).text("table")


def test_the_system_of_devices_that_differ_is_named_after_no_device(machine: Path) -> None:
    """In documents, and in the rows of verification; equal devices keep the name of their system."""
    document = mtpp.partition(mtpp.read(GRAPH, machine=machine)).document(embed=True)
    assert document["system"]["name"] == "best of all devices"
    (said,) = (row.detail for row in mtpp.verify(document).rows if row.claim == "system")
    assert said == "best of all devices: models no costs, they are the model's own"
    machine.write_text('[[device]]\ncount = 2\nsystem = "a100"\n')
    assert mtpp.partition(mtpp.read(GRAPH, machine=machine)).document()["system"]["name"] == "a100"
