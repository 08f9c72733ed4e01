"""Boards by the names that nvidia-smi has for them, and their figures."""

from __future__ import annotations

from mtpp.machine.presets import preset_tables

RATES = ("peak_flops", "memory_bandwidth", "bandwidth")
"""Figures that a device needs for models without times of their own."""

_BOARDS: dict[str, tuple[str, dict[str, str]]] = {
    "A100-SXM4-80GB": ("a100", {}),
    "A100-SXM-80GB": ("a100", {}),
    "A100-SXM4-40GB": ("a100", {"memory_bandwidth": "1555GB/s", "fast_memory": "40GB"}),
    "A100-SXM-40GB": ("a100", {"memory_bandwidth": "1555GB/s", "fast_memory": "40GB"}),
    "A100 80GB PCIe": ("a100", {"memory_bandwidth": "1935GB/s", "bandwidth": "32GB/s"}),
    "A100-PCIE-40GB": ("a100", {"memory_bandwidth": "1555GB/s", "bandwidth": "32GB/s", "fast_memory": "40GB"}),
    "H100 80GB HBM3": ("h100", {}),
    "H100 PCIe": ("h100", {"peak_flops": "756TFLOP/s", "memory_bandwidth": "2000GB/s", "bandwidth": "64GB/s"}),
    "V100-SXM2-32GB": ("v100", {}),
    "V100-SXM2-16GB": ("v100", {"fast_memory": "16GB"}),
    "V100-PCIE-32GB": ("v100", {"peak_flops": "112TFLOP/s", "bandwidth": "16GB/s"}),
    "V100-PCIE-16GB": ("v100", {"peak_flops": "112TFLOP/s", "bandwidth": "16GB/s", "fast_memory": "16GB"}),
    "H200": ("h200", {}),
    "B200": ("b200", {}),
    "L4": ("l4", {}),
    "L40S": ("l40s", {}),
    "A10": ("a10", {}),
    "GeForce RTX 3090": ("rtx-3090", {}),
    "GeForce RTX 4090": ("rtx-4090", {}),
    "GeForce RTX 5090": ("rtx-5090", {}),
    "T4": ("t4", {}),
}
"""Preset of each board, and figures in which the board differs by NVIDIA's data sheets of A100, H100 and V100.

Links are per direction, as those of presets.
"""

_MAKERS = ("NVIDIA ", "Tesla ")


def board_of(name: str) -> tuple[str, dict[str, str]] | None:
    """Return the preset of a board and the figures in which it differs; None for an unknown name."""
    return _BOARDS.get(plain_name(name))


def rates_of(preset: str, differing: dict[str, str]) -> dict[str, str]:
    """Return the figures of a board as a table of a machine file has them."""
    table = preset_tables()[preset]
    figures = {key: str(table[key]) for key in (*RATES, "fast_memory") if key in table}
    return figures | differing


def plain_name(name: str) -> str:
    """Return the name of a board without those of its maker and product line."""
    for maker in _MAKERS:
        name = name.removeprefix(maker)
    return name
