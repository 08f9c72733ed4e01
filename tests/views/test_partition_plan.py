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


def test_fewer_devices_than_there_are_are_said(tmp_path: Path) -> None:
    """In the title a limit on their number, and among the figures that no fewer would do, of a document as claimed."""
    machine = tmp_path / "machine.toml"
    machine.write_text(MACHINE.format(order="free"))
    model = mtpp.read(GRAPH, machine=machine)
    assert mtpp.partition(model).text("table").startswith("line: 4 ops, 3 tensors, 2 devices (")
    assert mtpp.partition(model, 1).text("table").startswith("line: 4 ops, 3 tensors, 2 devices, at most 1 used (")
    fewest = mtpp.partition(model, max_bottleneck="10ps")
    figure = "fewest devices     1 that keep to 10 ps, "
    assert f"{figure}proven\n" in fewest.text("table")
    assert f"{figure}claimed, not verified\n" in mtpp.load(fewest.document(embed=True)).text("table")


@pytest.mark.parametrize("limit", [None, "1KiB"])
def test_states_are_shown_with_and_without_a_limit(limit: str | None) -> None:
    """The fullest stage holds its parameters and its states, of two sequences here; without states no more is said."""
    states = [{"name": "s", "input": "past", "output": "present", "bytes": 100, "readers": ["d"]}]
    asked = {"sequences": 2} if limit is None else {"sequences": 2, "stage_memory": limit}
    plan = mtpp.evaluate(mtpp.read({**GRAPH, "states": states}, **asked), cuts="c")
    allowed, of = ("", "") if limit is None else (", 1 KiB allowed", ", of 1 KiB")
    assert f"memory             at most 210 B per stage (stage 1){allowed}, 200 B for states\n" in plan.text("table")
    page = mtpp.report(plan.document(embed=True)).html
    assert f"210 B <small>of the fullest stage (1){of}, 200 B for states<" in page
    assert "\nmemory " not in mtpp.evaluate(mtpp.read(GRAPH), cuts="c").text("table")
