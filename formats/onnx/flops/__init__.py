"""Cost rules of ONNX operators, by family."""
