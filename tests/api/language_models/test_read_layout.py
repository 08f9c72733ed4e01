"""``mtpp.read_layout``: the cases of the reference, its figures, and parameters of the wrong kind."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mtpp

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
TOLD = ("error", "says", "what", "silent", "audit", "warning")
GPUS = {n: {str(i): "80GB" for i in range(n)} for n in (2, 4)}


@cache
def _cases() -> list[dict[str, Any]]:
    path = SHARED / "reference" / "engine_layouts.json"
    return json.loads(path.read_text(encoding="utf-8"))["cases"] if path.exists() else []


def _model(name: str, data: Path) -> Path | None:
    found = (data / "llm" / name, data / "llm" / "configs" / f"{name}.json")
    return next((path for path in found if path.exists()), None)


def _read(case: dict[str, Any], data: Path) -> Any:
    model = case["model"]
    named = ("accelerate", "transformers", "deepspeed")
    return mtpp.read_layout(
        case["engine"],
        case["layout"],
        layers=model["layers"],
        stages=case["stages"],
        heads=model["heads"],
        mtp=model["mtp"],
        tied=model["tied"],
        model=_model(model["name"], data) if case["engine"] in named else None,
    )


@pytest.mark.parametrize("engine", sorted({case["engine"] for case in _cases()}))
def test_layouts_are_those_of_the_reference(engine: str, shared_data: Path) -> None:
    """All that a case says of a layout, and the class and the words of errors."""
    for case in (case for case in _cases() if case["engine"] == engine):
        expected = case["expect"]
        if "error" in expected:
            with pytest.raises(mtpp.InputError) as caught:
                _read(case, shared_data)
            assert expected.get("says", "") in str(caught.value), case["id"]
            assert expected["error"] in str(caught.value), case["id"]
            continue
        layout = _read(case, shared_data)
        for key, value in expected.items():
            if key not in TOLD and value is not None:
                assert getattr(layout, key) == value, (case["id"], key)
        for key in ("audit", "warning"):
            assert key not in expected or any(expected[key] in text for text in layout.findings), case["id"]


@pytest.mark.parametrize(
    ("engine", "layers", "counts"),
    [
        ("vllm", 61, [7, 7, 8, 8, 8, 8, 8, 7]),
        ("sglang", 61, [7, 7, 7, 8, 8, 8, 8, 8]),
        ("tensorrt-llm", 61, [8, 8, 8, 8, 8, 7, 7, 7]),
        ("torchtitan", 32, [8, 9, 8, 7]),
    ],
)
def test_engines_share_a_remainder_each_in_its_way(engine: str, layers: int, counts: list[int]) -> None:
    """Of the same model on as many stages."""
    assert mtpp.read_layout(engine, "default", layers=layers, stages=len(counts)).layers == counts


@pytest.mark.parametrize(
    ("engine", "mode", "memory", "layers"),
    [
        ("accelerate", "auto", GPUS[2], {"0": 14, "1": 18}),
        ("accelerate", "auto", GPUS[4], {"0": 5, "1": 10, "2": 10, "3": 7}),
        ("accelerate", "balanced_low_0", GPUS[4], {"1": 11, "2": 13, "3": 8}),
        ("transformers", "auto", GPUS[2], {"0": 16, "1": 16}),
        ("transformers", "auto", GPUS[4], {"0": 7, "1": 12, "2": 12, "3": 1}),
        ("transformers", "auto", {"0": "24GB", "1": "16GB", "2": "8GB"}, {"0": 10, "1": 15, "2": 7}),
        ("transformers", "balanced_low_0", GPUS[4], {"1": 12, "2": 15, "3": 5}),
    ],
)
def test_figures_of_llama_3_8b(
    engine: str, mode: str, memory: dict[str, str], layers: dict[str, int], shared_data: Path
) -> None:
    """Both rules for ``device_map="auto"``, as published."""
    setting = {"mode": mode, "max_memory": memory, "dtype": "bfloat16"}
    layout = mtpp.read_layout(engine, setting, layers=32, model=shared_data / "llm" / "llama-8b")
    assert layout.layers == layers
    assert layout.findings == []


def test_tied_gemma_2_9b_on_two_devices(shared_data: Path) -> None:
    """The head goes with the embedding; transformers takes 23, accelerate 18 layers with them."""
    setting = {"mode": "auto", "max_memory": GPUS[2], "dtype": "bfloat16"}
    for engine, first in (("transformers", 23), ("accelerate", 18)):
        layout = mtpp.read_layout(engine, setting, layers=42, tied=True, model=shared_data / "llm" / "gemma2-9b")
        assert layout.layers == {"0": first, "1": 42 - first}
        assert (layout.embedding_on, layout.head_on, layout.final_norm_on) == ("0", "0", "1")


def test_exo_shares_by_memory() -> None:
    """64, 32 and 16 GB for 32 layers."""
    assert mtpp.read_layout("exo", {"ram_available_gb": [64, 32, 16]}, layers=32).layers == [18, 9, 5]


def test_a_configuration_is_enough(shared_data: Path) -> None:
    """A file, its folder, and bytes that are kept on slow devices."""
    setting = {"mode": "infer", "max_memory": {"0": "20GB", "cpu": "40GB"}, "dtype": "bfloat16"}
    layout = mtpp.read_layout("accelerate", setting, layers=36, model=shared_data / "llm" / "configs" / "qwen3-8b.json")
    assert layout.cpu_layers is None
    assert layout.ranges is None or layout.ranges[-1][-1] == 36
    folder = mtpp.read_layout("accelerate", setting, layers=32, model=shared_data / "llm" / "llama-8b")
    assert folder.offloaded_bytes is None or set(folder.offloaded_bytes) <= {"cpu", "disk"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"engine": "vlm"}, r"engine: 'vlm' is unknown; did you mean 'vllm'\?"),
        ({"layout": 3}, "layout: is int, neither a map nor a text"),
        ({"layers": 0}, "layers: 0 is out of range; it must be from 1 to 100,000"),
        ({"stages": 0}, "stages: 0 is out of range; it must be from 1 to 100,000"),
        ({"mtp": -1}, "mtp: -1 is out of range; it must be from 0 to 100,000"),
        ({"tied": 1}, "tied: 1 is neither True nor False"),
        ({"model": "no/config.json"}, "no/config.json: no such file; check the path"),
        ({"stages": None, "layout": {}}, "stages: the number of stages is needed"),
    ],
)
def test_wrong_parameters_are_named(changed: dict[str, Any], message: str) -> None:
    """In one line each."""
    right: dict[str, Any] = {"engine": "vllm", "layout": "3,4", "layers": 7, "stages": 2}
    with pytest.raises(mtpp.InputError, match=f"^{message}$"):
        mtpp.read_layout(**{**right, **changed})


def test_unknown_architectures_are_named(tmp_path: Path) -> None:
    """With the ones that are known."""
    (tmp_path / "config.json").write_text('{"model_type": "new-one"}')
    with pytest.raises(mtpp.InputError, match="modules of model_type 'new-one' are not known; known are gpt2, llama,"):
        mtpp.read_layout("accelerate", {"max_memory": {"0": 10}}, layers=3, model=tmp_path)


def test_layouts_have_documents() -> None:
    """Of all that is known, in JSON."""
    document = mtpp.read_layout("vllm", "3,4", layers=7).document()
    assert json.loads(json.dumps(document)) == document
    assert document["ranges"] == [[0, 3], [3, 7]]
    assert "device_map" not in document
