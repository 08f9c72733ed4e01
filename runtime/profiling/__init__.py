"""Models measured op by op with ONNX Runtime's profiler."""
