"""GPUs that are present, as PyTorch sees them."""

from __future__ import annotations


def free_bytes() -> dict[int, int]:
    """Free memory of each GPU by its number; empty where there is none, or no PyTorch."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    return {number: torch.cuda.mem_get_info(number)[0] for number in range(torch.cuda.device_count())}
