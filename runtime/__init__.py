"""Models run with ONNX Runtime and PyTorch: measured, compared and pipelined."""
