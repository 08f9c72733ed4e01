"""Shape rules of operators that onnx has no schema for, or leaves something open of: by family."""
