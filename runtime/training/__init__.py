"""Pipelines trained by PyTorch: a process for each device, held against the model that was not split."""
