"""One ONNX model per stage of a partition."""

from __future__ import annotations

from mtpp.formats.onnx.stages.splitting import Split, split_model

__all__ = ["Split", "split_model"]
