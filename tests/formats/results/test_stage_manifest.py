"""Manifests of folders of stages: written, read back, and refused where they contradict themselves."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.results.stage_manifest import manifest_of, manifest_text, read_manifest

DOCUMENT: dict[str, Any] = {
    "format": "mtpp-stages",
    "version": 1,
    "model": {"name": "m", "sha256": "0" * 64, "ops": 3},
    "k": 4,
    "time_unit": "ps",
    "ticks_per_unit": 1,
    "bottleneck": 9,
    "work": 12,
    "inputs": [
        {"name": "x", "dtype": "float32", "shape": [1, 3]},
        {"name": "u", "dtype": "int64", "shape": [None], "limits": [0, 76]},
    ],
    "outputs": [{"name": "z", "dtype": "float32", "shape": [1, 3]}, {"name": "u", "dtype": "int64", "shape": [None]}],
    "stages": [
        {
            "index": 0,
            "file": "stage-0.onnx",
            "ops": 2,
            "cost": 9,
            "work": 8,
            "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 3], "from": -1}],
            "outputs": [{"name": "y", "dtype": "float32", "shape": [1, 3], "to": [2], "result": False}],
        },
        {
            "index": 2,
            "file": "stage-2.onnx",
            "ops": 1,
            "cost": 5,
            "work": 4,
            "inputs": [{"name": "y", "dtype": "float32", "shape": [1, 3], "from": 0}],
            "outputs": [{"name": "z", "dtype": "float32", "shape": [1, 3], "to": [], "result": True}],
        },
    ],
    "direct": [{"output": "u", "input": "u"}],
    "imports": ["my_ops", "package.ops"],
}


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    """A manifest survives its own text, and the files that it names have to be there."""
    manifest = manifest_of(DOCUMENT, "manifest.json")
    assert manifest.to_document() == DOCUMENT
    (tmp_path / "manifest.json").write_text(manifest_text(manifest))
    with pytest.raises(InputError, match=r"/stages/0/file: there is no file 'stage-0.onnx'"):
        read_manifest(tmp_path)
    for stage in manifest.stages:
        (tmp_path / stage.file).touch()
    assert read_manifest(tmp_path) == manifest


@pytest.mark.parametrize(
    ("pointer", "value", "where"),
    [
        ("/stages/0/file", "../stage-0.onnx", "/stages/0/file"),
        ("/stages/0/file", "/etc/passwd.onnx", "/stages/0/file"),
        ("/stages/0/file", "a\n.onnx", "/stages/0/file"),
        ("/stages/1/file", "STAGE-0.onnx", "/stages/1/file"),
        ("/bottleneck", 10**400, "/bottleneck"),
        ("/work", 2**62, "/work"),
        ("/ticks_per_unit", 2**62, "/ticks_per_unit"),
        ("/stages/1/index", 0, "/stages/1/index"),
        ("/stages/1/index", 4, "/stages/1/index"),
        ("/stages/1/inputs/0/from", -1, "/stages/1/inputs/0/from"),
        ("/stages/1/inputs/0/from", 2, "/stages/1/inputs/0/from"),
        ("/stages/1/inputs/0/from", -2, "/stages/1/inputs/0/from"),
        ("/stages/1/inputs/0/shape", [3], "/stages/1/inputs/0"),
        ("/stages/1/inputs/0/shape", [-1], "/stages/1/inputs/0/shape/0"),
        ("/stages/0/outputs/0/to", [], "/stages/1/inputs/0/from"),
        ("/stages/0/outputs/0/to", [2, 3], "/stages/0/outputs/0/to/1"),
        ("/stages/0/outputs/0/to", [2, 2], "/stages/0/outputs/0/to"),
        ("/stages/0/outputs/0/result", 1, "/stages/0/outputs/0/result"),
        ("/stages/0/outputs/0/result", True, "/stages/0/outputs/0/result"),
        ("/stages/1/outputs/0/result", False, "/outputs/0"),
        ("/direct", [], "/outputs/1"),
        ("/direct/0/input", "w", "/direct/0/input"),
        ("/direct/0/output", "z", "/direct/0/output"),
        ("/bottleneck", -1, "/bottleneck"),
        ("/k", "8", "/k"),
        ("/version", 2, "/version"),
        ("/inputs/1/name", "x", "/inputs/1/name"),
        ("/inputs/1/limits", [3], "/inputs/1/limits"),
        ("/inputs/1/limits", [3, 2], "/inputs/1/limits"),
        ("/inputs/1/limits", [0, "9"], "/inputs/1/limits/1"),
        ("/inputs/1/limits", [0, 2**62], "/inputs/1/limits"),
        ("/stages/0/extra", 1, "/stages/0"),
        ("/imports", "my_ops", "/imports"),
        ("/imports/1", "my_ops; rm", "/imports/1"),
    ],
)
def test_contradictions_are_refused_with_their_place(pointer: str, value: Any, where: str) -> None:
    """One wrong value anywhere is one line that names it."""
    document = copy.deepcopy(DOCUMENT)
    *parents, last = pointer.strip("/").split("/")
    place: Any = document
    for part in parents:
        place = place[int(part) if isinstance(place, list) else part]
    place[int(last) if isinstance(place, list) else last] = value
    with pytest.raises(InputError) as caught:
        manifest_of(document, "manifest.json")
    assert (caught.value.source, caught.value.where) == ("manifest.json", where)


CONSTANTS = [("none", None), ("bool", True), ("int", -7), ("float", 2.5), ("float", "inf"), ("str", "text")]


def test_results_that_no_stage_makes_read_back() -> None:
    """Numbers, texts and None keep their place among the results, and a tensor may stand there twice."""
    document = copy.deepcopy(DOCUMENT)
    constants = [
        {"name": f"r{i}", "dtype": dtype, "shape": [], "value": value} for i, (dtype, value) in enumerate(CONSTANTS)
    ]
    document["outputs"] = [constants[0], *document["outputs"], *constants[1:], document["outputs"][0]]
    manifest = manifest_of(json.loads(json.dumps(document)), "manifest.json")
    assert manifest.to_document() == document
    assert [tensor.name for tensor in manifest.tensors_out] == [row["name"] for row in DOCUMENT["outputs"]]
    assert manifest_of(json.loads(manifest_text(manifest)), "manifest.json") == manifest


@pytest.mark.parametrize(
    ("dtype", "value"), [("int", True), ("int", 2.5), ("none", 0), ("float", "much"), ("float32", 1.5), ("str", 1)]
)
def test_results_of_another_type_are_refused(dtype: str, value: Any) -> None:
    """A value that is not of the type beside it is one line that names it."""
    document = copy.deepcopy(DOCUMENT)
    document["outputs"].append({"name": "r", "dtype": dtype, "shape": [], "value": value})
    assert refusal(manifest_of, document, "manifest.json").where == f"/outputs/{len(document['outputs']) - 1}/value"


def test_one_name_is_one_result() -> None:
    """A tensor that stands twice among the results has one type."""
    document = copy.deepcopy(DOCUMENT)
    document["outputs"].append({**document["outputs"][0], "dtype": "int64"})
    with pytest.raises(InputError, match="two different results"):
        manifest_of(document, "manifest.json")


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    """A folder that is none, one without a manifest, and one whose manifest is no JSON are refused."""
    with pytest.raises(InputError, match="no such folder"):
        read_manifest(tmp_path / "none")
    with pytest.raises(InputError, match=r"no manifest.json in it"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(DOCUMENT)[:-5])
    with pytest.raises(InputError, match="not valid JSON"):
        read_manifest(tmp_path)
