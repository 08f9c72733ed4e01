"""Models of transformers with two kinds of inputs, as functions build them: Whisper and CLIP, small and random."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("transformers", reason="needs transformers")

import mtpp

MODULE = """
import torch
from transformers import CLIPConfig, CLIPModel, WhisperConfig, WhisperForConditionalGeneration

def whisper():
    config = WhisperConfig(
        vocab_size=200, d_model=32, encoder_layers=3, decoder_layers=3, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=20,
        max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
    )
    tokens = torch.tensor([[3, 5, 6, 7]])
    given = {"input_features": torch.randn(1, 16, 40), "decoder_input_ids": tokens, "use_cache": False}
    return WhisperForConditionalGeneration(config).eval(), (), given

def clip():
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2}
    text = {**sizes, "vocab_size": 100, "max_position_embeddings": 16, "eos_token_id": 2, "bos_token_id": 0}
    config = CLIPConfig(text_config=text, vision_config={**sizes, "image_size": 32, "patch_size": 8}, projection_dim=24)
    mask = torch.ones(2, 8, dtype=torch.long)
    given = {"input_ids": torch.randint(3, 99, (2, 8)), "pixel_values": torch.randn(2, 3, 32, 32)}
    return CLIPModel(config).eval(), (), {**given, "attention_mask": mask}
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mtpp.api.observer.MtppWarning")
@pytest.mark.parametrize("name", ["whisper", "clip"])
def test_stages_compute_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of three stages verifies; split and run, they give what the whole model gives, bit for bit."""
    (tmp_path / "towers_of_two.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    model = f"towers_of_two:{name}"
    try:
        plan = mtpp.partition(mtpp.read(model, from_format="torch"), 3)
        assert plan.optimal
        assert mtpp.split(model, plan, "stages", check=True, from_format="torch").passed
        run = mtpp.run_pipeline("stages", model=model, from_format="torch", batches=3, warmup=0)
    finally:
        sys.modules.pop("towers_of_two", None)
    assert run.agrees
    outputs = run.document()["outputs"]
    assert outputs["unsplit"]["exact"] == outputs["unsplit"]["compared"] > 0
    assert outputs["pipeline"]["exact"] == outputs["pipeline"]["compared"] > 0
