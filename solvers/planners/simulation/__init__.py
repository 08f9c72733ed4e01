"""Static simulation of training pipelines: when each pass and each transfer begins."""
