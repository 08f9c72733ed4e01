"""Cost rules of Fourier transforms in ATen; transforms of real signals count like complex ones."""

from __future__ import annotations

import math

from mtpp.formats.modelled.flop_counts import fourier_flops
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.cost_rule import CostRule


def _fourier(*default: int) -> CostRule:
    """Return the rule of transforms along axes, by default these; along all if there are none."""

    def rule(call: CallView) -> NodeCost:
        x, y = call.first(), call.output()
        larger = x if x.count >= y.count else y
        named = call.value("dim", list(default) or list(range(len(larger.shape))))
        axes = named if isinstance(named, list) else [named]
        length = math.prod(larger.shape[axis] for axis in axes)
        return NodeCost(flops=larger.count // max(1, length) * fourier_flops(length))

    return rule


def _frames(call: CallView) -> NodeCost:
    """Multiply each frame with the window, and transform it; frames are the last axis, or before parts of numbers."""
    made = call.output()
    spectrum = made.shape if made.name.startswith("complex") else made.shape[:-1]
    length, frames = int(call.value("n_fft", 1)), math.prod(spectrum[:-2]) * spectrum[-1]
    return NodeCost(flops=frames * (fourier_flops(length) + length))


def _signal(call: CallView) -> NodeCost:
    """Transform each frame back, multiply it with the window, add it to the signal and to the sum of windows."""
    spectrum = call.first().shape
    length, frames = int(call.value("n_fft", 1)), math.prod(spectrum[:-2]) * spectrum[-1]
    return NodeCost(flops=frames * (fourier_flops(length) + 3 * length) + call.output().count)


RULES: dict[str, CostRule] = {
    **dict.fromkeys(("_fft_c2c", "_fft_c2r", "_fft_r2c"), _fourier(-1)),
    **dict.fromkeys(("fft_fft", "fft_hfft", "fft_ifft", "fft_ihfft", "fft_irfft", "fft_rfft"), _fourier(-1)),
    **dict.fromkeys(("fft_fft2", "fft_hfft2", "fft_ifft2", "fft_ihfft2", "fft_irfft2", "fft_rfft2"), _fourier(-2, -1)),
    **dict.fromkeys(("fft_fftn", "fft_hfftn", "fft_ifftn", "fft_ihfftn", "fft_irfftn", "fft_rfftn"), _fourier()),
    "istft": _signal,
    "stft": _frames,
}
