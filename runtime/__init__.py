"""Models run with ONNX Runtime: measured, compared and pipelined."""
