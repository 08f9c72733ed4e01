"""Functions that an ONNX model defines itself: attributes bound to what a call gives them, calls replaced by bodies."""
