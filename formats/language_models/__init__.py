"""Configurations and checkpoints of language models, read by one table of architectures."""
