"""Exported PyTorch programs measured op by op, forward and backward."""
