"""Parameters that stored tensors stand for: buffers and scales none, packed weights more than their elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mtpp.formats.checkpoints.stored_tensor import StoredTensor

_BUFFER = re.compile(
    r"(^|\.)((attn|attention)\.(masked_)?bias|inv_freq|original_inv_freq|e_score_correction_bias|position_ids"
    r"|rope_freqs\.weight|rope_factors_(long|short)\.weight|exp_probs_b(\.bias)?|embed_positions|mup_vector|slope_rate"
    r"|num_batches_tracked|running_(mean|var))$"
)
_CAUSAL = re.compile(r"(attn|attention)\.bias$")
_SCALES = re.compile(
    r"(\.(qzeros|g_idx|scales|zeros|SCB|weight_format|biases|weight_scale|weight_scale_inv|weight_scale_2|weight_shape"
    r"|weight_zero_point|weight_g_idx|weight_global_scale|input_scale|input_scale_inv|output_scale|input_global_scale"
    r"|k_scale|v_scale|q_scale|kv_scale|activation_scale|qscale_weight|qscale_act|scale_inv)"
    r"|_scales|_scale_inv|_weight_scale|_input_scale|_scale|\.absmax|\.nested_absmax|\.quant_map|\.nested_quant_map)$"
    r"|\.quant_state\."
)
_WIDTH = {"I32": 32, "U32": 32, "I16": 16, "U16": 16, "U8": 8, "I8": 8, "I64": 64}


class PackedWeights:
    """Counting of parameters by the names and types of a module's tensors.

    Parameters
    ----------
    tensors
        All of a checkpoint.
    configuration
        Its ``quantization_config`` has the bits of a weight.
    """

    def __init__(self, tensors: Iterable[StoredTensor], configuration: Mapping[str, Any]) -> None:
        self._names = {tensor.name for tensor in tensors}
        self._bits = bits_of(configuration)
        self.packed = False
        """Whether a packed weight was met."""
        self.buffer_bytes = 0

    def parameters(self, tensor: StoredTensor) -> int:
        """Return the number of parameters that a tensor stands for."""
        name, count = tensor.name, tensor.elements
        if name.endswith(".weight") and tensor.type not in _WIDTH and "rope_f" not in name:
            return count
        if _BUFFER.search(name) and not (_CAUSAL.search(name) and len(tensor.shape) < 2):
            self.buffer_bytes += tensor.bytes
            return 0
        stem = name.rpartition(".")[0]
        if name.endswith((".qweight", ".weight_packed")):
            return self._unpacked(tensor, 4 if tensor.type == "U8" else self._bits)
        if name.endswith("_blocks") and f"{name.removesuffix('_blocks')}_scales" in self._names:
            return self._unpacked(tensor, 4)
        if _SCALES.search(name) and not name.endswith(".scale.weight"):
            return 0
        if name.endswith(".weight") and tensor.type in _WIDTH:
            if tensor.type == "U32" and f"{stem}.scales" in self._names:  # MLX
                return self._unpacked(tensor, self._bits)
            if (
                f"{name}.absmax" in self._names
                or f"{stem}.weight_scale_2" in self._names
                or (tensor.type == "U8" and f"{stem}.weight_scale" in self._names)
            ):  # bitsandbytes, NVFP4
                return self._unpacked(tensor, 4)
        return count

    def _unpacked(self, tensor: StoredTensor, bits: int) -> int:
        self.packed = True
        return tensor.elements * _WIDTH.get(tensor.type, 8) // bits


def bits_of(configuration: Mapping[str, Any]) -> int:
    """Return the bits of a packed weight: 4 where a configuration does not say."""
    for key in ("quantization_config", "quantization", "compression_config"):
        found = configuration.get(key)
        if isinstance(found, dict):
            groups = found.get("config_groups")
            listed = list(groups.values()) if isinstance(groups, dict) else []
            weights = [one.get("weights") for one in listed if isinstance(one, dict)]
            numbers = [one.get("num_bits") for one in weights if isinstance(one, dict)]
            for bits in (found.get("bits"), found.get("w_bit"), *numbers):
                if type(bits) is int and 1 <= bits <= 8:
                    return bits
    return 4


def quantization_of(configuration: Mapping[str, Any]) -> str | None:
    """Return the name of the method that weights are packed by, if the configuration names one."""
    for key in ("quantization_config", "compression_config", "quantization"):
        found = configuration.get(key)
        if isinstance(found, dict):
            return str(found.get("quant_method", found.get("mode", "packed")))[:40]
    return None
