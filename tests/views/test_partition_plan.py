"""Figures of plans for people."""

from __future__ import annotations

from pathlib import Path

import pytest

import mtpp

GRAPH = {
    "format": "mtpp-graph", "version": 1, "name": "line", "time_unit": "ps",
    "ops": [{"name": name, "work": work, "param_bytes": 10} for name, work in zip("abcd", (4, 2, 3, 7), strict=True)],
    "tensors": [
        {"name": f"t{u}", "producer": u, "consumers": [v], "bytes": size}
        for u, v, size in (("a", "b", 2), ("b", "c", 3), ("c", "d", 1))
    ],
}  # fmt: skip

MACHINE = """
order = "{order}"
[[device]]
name = "small"
memory = "20B"
[[device]]
name = "large"
speed = 9
"""


@pytest.mark.parametrize(
    ("cuts", "order", "table", "page"),
    [
        (
            "c",
            "free",
            "the fullest device (stage 1) holds 10 B of 20 B",
            "10 B <small>of the fullest stage (1), of 20 B",
        ),
        ("d", "free", "at most 40 B per stage (stage 0)", "40 B <small>of the fullest stage (0)<"),
        (
            "a",
            "fixed",
            "the fullest device (stage 0) holds 10 B of 20 B",
            "10 B <small>of the fullest stage (0), of 20 B",
        ),
    ],
)
def test_the_fullest_stage_is_that_of_the_page(tmp_path: Path, cuts: str, order: str, table: str, page: str) -> None:
    """The largest share of a limit; of a device without limit only where the others hold nothing."""
    machine = tmp_path / "machine.toml"
    machine.write_text(MACHINE.format(order=order))
    plan = mtpp.evaluate(mtpp.read(GRAPH, machine=machine), cuts=cuts)
    assert f"memory             {table}\n" in plan.text("table")
    assert page in mtpp.report(plan.document(embed=True)).html
