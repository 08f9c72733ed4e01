"""Trees of modules as transformers 5 builds them, from a configuration alone."""
