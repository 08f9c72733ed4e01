"""Pages of results in Python: whatever a well-formed document says has one, and says first what is false."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mtpp
from mtpp.api.cells.overlapping import bound_overlapping

ROOT = Path(__file__).resolve().parents[3]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where figures, names and flags of a document stand, but for those of proofs."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in ("proof", "lower_proof"):
                yield from places(one, (*path, key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from places(one, (*path, i))
    else:
        yield path


def changed(document: dict[str, Any], drawn: random.Random) -> dict[str, Any]:
    """Return a document one or two places of which say something else."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    for path in drawn.sample(list(places(copy)), drawn.randint(1, 2)):
        inside: Any = copy
        for key in path[:-1]:
            inside = inside[key]
        old = inside[path[-1]]
        if isinstance(old, bool):
            inside[path[-1]] = not old
        elif isinstance(old, str):
            inside[path[-1]] = drawn.choice(["", "x", "<script>"])
        else:
            inside[path[-1]] = drawn.choice([0, 1, -1, 2**60, 10**300, 0.5, None])
    return copy


def overlapping() -> dict[str, Any]:
    """Return a bound for overlapping ranges of 40 layers."""
    layers = [{"name": f"op{i}", "work": 1} for i in range(40)]
    cuts = [{"name": f"t{i}", "producer": f"op{i}", "consumers": [f"op{i + 1}"], "transfer": 0} for i in range(39)]
    head = {"format": "mtpp-graph", "version": 1, "name": "layers", "time_unit": "ms"}
    read = mtpp.read({**head, "ops": layers, "tensors": cuts}, machine=ROOT / "examples" / "measured-layers.toml")
    return bound_overlapping(read).document()


def test_bounds_for_overlapping_ranges_have_a_page() -> None:
    """It says the rate and what proves it first; of a forged bound, that it is false."""
    document = overlapping()
    page = mtpp.report(document)
    assert page.passed
    assert "Proven: at most 135.135 inferences/s, however ranges overlap" in page.html
    assert all(f">{price:,}<" in page.html for price in document["lower_bound"]["proof"]["prices"].values())
    document["lower_bound"]["proof"]["prices"] = {"large": 1, "<b>": 2}
    page = mtpp.report(document)
    assert page.false
    assert "Verification failed" in page.html
    assert "Proven:" not in page.html


@pytest.mark.parametrize("kind", ["plan", "table", "simulation", "overlapping"])
@pytest.mark.slow
def test_changed_documents(kind: str) -> None:
    """A document that was tampered with is refused as malformed, or has a page; nothing else happens."""
    sample = mtpp.datasets.sample_path("resnet50")
    model: Any = mtpp.read(sample)
    if kind == "plan":
        document = mtpp.partition(model, 3).document()
    elif kind == "table":
        document, model = mtpp.certify([str(sample)], [2]).document(), [str(sample)]
    elif kind == "overlapping":
        document, model = overlapping(), None
    else:
        model = ROOT / "datasets" / "samples" / "three-towers.json"
        document = mtpp.simulate(model).document()
    drawn = random.Random(7)
    verdicts = set()
    for _ in range(25):
        tampered = changed(document, drawn)
        try:
            page = mtpp.report(tampered, None, model, shallow=True)
        except mtpp.InputError:
            continue
        verdicts.add(str(page.verification.verdict))
        assert f'data-verdict="{page.verification.verdict}"' in page.html
    assert "false" in verdicts


@pytest.mark.slow
def test_no_file_but_a_report_is_written_over(tmp_path: Path) -> None:
    """An earlier report is, and the model and other files stay."""
    sample = mtpp.datasets.sample_path("resnet50")
    plan = mtpp.partition(sample, 2)
    mtpp.report(plan, tmp_path / "page.html", sample)
    mtpp.report(plan, tmp_path / "page.html", sample)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(mtpp.InputError, match="is there, and no report of mtpp"):
        mtpp.report(plan, tmp_path / "mine.txt", sample)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    mtpp.report(plan, tmp_path / "page.html.gz", sample)
    document = plan.document()
    del document["model"]["path"]
    with pytest.raises(mtpp.InputError, match="the plan embeds no graph"):
        mtpp.report(document)


def test_a_table_for_a_machine_names_its_devices(tmp_path: Path) -> None:
    """Not the system with the best figures of any."""
    path = tmp_path / "machine.toml"
    path.write_text('[[device]]\nname = "slow"\n[[device]]\nname = "fast"\nspeed = 2\nlink_speed = 4\n')
    resnet = mtpp.datasets.sample_path("resnet50")
    table = mtpp.certify(mtpp.read(resnet, machine=path), bounds="simple", objective="latency", jobs=1)
    page = mtpp.report(table.document(), model=resnet)
    assert page.passed
    assert "machine machine: slow (20 TFLOP/s" in page.html
    assert "link 100 GB/s" not in page.html
