"""Constants of ONNX models of which the contents matter."""
