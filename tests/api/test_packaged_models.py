"""Models that ship inside well-known packages: partitioned, verified and split at the first try, with proposed sizes.

The packages are never imported: their files are read where they are installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import mtpp

MODELS = {
    "ddddocr/common.onnx": {"image_width": 256},
    "ddddocr/common_det.onnx": {},
    "ddddocr/common_old.onnx": {"image_width": 256},
    "magika/models/standard_v3_3/model.onnx": {"unk__214": 1},
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": {
        "p2o.DynamicDimension.0": 1, "p2o.DynamicDimension.1": 640, "p2o.DynamicDimension.2": 640,
    },
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": {
        "p2o.DynamicDimension.0": 1, "x:2": 48, "p2o.DynamicDimension.1": 192,
    },
    "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x:0": 1, "x:2": 256, "x:3": 256},
    "silero_vad/data/silero_vad.onnx": {"input:0": 1, "input:1": 320, "state:1": 1},
    "silero_vad/data/silero_vad_16k_op15.onnx": {"batch": 1, "sequence": 576},
    "silero_vad/data/silero_vad_16k_sequence.onnx": {"sequence_length": 128},
    "silero_vad/data/silero_vad_half.onnx": {"batch": 1, "sequence": 576},
    "silero_vad/data/silero_vad_op18_ifless.onnx": {"batch": 1, "sequence": 576},
    "silero_vad/data/silero_vad_openvino_16k.onnx": {},
}  # fmt: skip
"""Sizes proposed, by the path in a package.

Of ddddocr 1.6.1, magika 1.0.3, rapidocr-onnxruntime 1.4.4 and silero-vad 6.2.3.
"""


def _installed(path: str) -> Path:
    package, _, inside = path.partition("/")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    file = Path(spec.submodule_search_locations[0]) / inside
    if not file.is_file():
        pytest.skip(f"this version of {package} has no {inside}")
    return file


@pytest.mark.slow
@pytest.mark.parametrize(("path", "sizes"), MODELS.items())
def test_a_packaged_model_goes_through_at_the_first_try(path: str, sizes: dict[str, int], tmp_path: Path) -> None:
    """Proposed sizes are the ones expected, the plan verifies, and its stages compute the same bit for bit."""
    pytest.importorskip("onnxruntime")
    model = mtpp.read(_installed(path), dims="auto")
    assert model.dims == sizes
    assert set(model.proposed_dims) == set(sizes)
    plan = mtpp.partition(model, 4)
    assert plan.optimal
    plan.save(tmp_path / "plan.json")
    assert mtpp.verify(tmp_path / "plan.json", str(model.source.path)).passed
    split = mtpp.split(model, plan, tmp_path / "stages", check=True)
    assert split.passed
    check = split.stages.check
    assert check is not None
    assert all(output.identical for output in check.outputs)


@pytest.mark.slow
def test_a_branch_for_another_rate_is_left_out(tmp_path: Path) -> None:
    """At 576 samples only the branch for 16 kHz can run: inputs that are made up choose it."""
    pytest.importorskip("onnxruntime")
    model = mtpp.read(_installed("silero_vad/data/silero_vad.onnx"), dims={"input:1": 576, "*": 1})
    assert model.graph.metadata["assumptions"] == [
        "If_0: else_branch cannot run with these sizes: then_branch counted",
        "1 state kept between requests, 1 KiB for each sequence: state → stateN",
    ]
    plan = mtpp.partition(model, 2)
    split = mtpp.split(model, plan, tmp_path / "stages", check=True)
    assert split.passed
    assert [tensor.limits for tensor in split.manifest.inputs] == [None, None, (16000, 16000)]
    assert mtpp.run_pipeline(tmp_path / "stages", batches=2, warmup=0).agrees
    assert mtpp.profile(model, warmup=0, repeats=1).graph.op_count == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["ddddocr/common_old.onnx", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"]
)
def test_a_model_that_a_session_saved_goes_through_too(path: str, tmp_path: Path) -> None:
    """At the last optimisation level: blocked channels, fused and quantised ops."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    options.log_severity_level = 4
    ort.InferenceSession(str(_installed(path)), options, providers=["CPUExecutionProvider"])
    model = mtpp.read(tmp_path / "saved.onnx", dims="auto")
    assert model.graph.metadata["not_modelled"] == {}
    assert mtpp.split(model, mtpp.partition(model, 4), tmp_path / "stages", check=True).passed
