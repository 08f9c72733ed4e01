"""ONNX models as cost graphs: shapes, parameters and modelled work, read without a single weight."""

from mtpp.formats.onnx.loading import looks_like_onnx
from mtpp.formats.onnx.reader import read_onnx

__all__ = ["looks_like_onnx", "read_onnx"]
