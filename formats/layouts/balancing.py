"""Limits of devices lowered so that GPUs share a model evenly, before they are filled in order.

``get_balanced_memory`` of accelerate 1.15 and of transformers 5.24. Every GPU but the last may hold its part of the
model and a buffer: 1.25 times the larger of a block and a leaf. accelerate takes the first block of each class and the
mean leaf, transformers the largest block and the largest leaf.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from mtpp.formats.layouts.filling import CPU, DISK, MPS, Device, Sizes
from mtpp.formats.layouts.request import refusal
from mtpp.language_models.modules import Modules, ModuleTensor

_UNITS = {"GIB": 2**30, "MIB": 2**20, "KIB": 2**10, "GB": 10**9, "MB": 10**6, "KB": 10**3}
_MOST_BYTES = 2**62


def bytes_of_size(size: Any) -> int:
    """Bytes of a number or of a text such as ``10GB`` and ``10GiB``; a small b at the end means bits.

    Examples
    --------
    >>> bytes_of_size("10GB"), bytes_of_size("1GiB")
    (10000000000, 1073741824)
    """
    wrong = (
        f"`size` {size} is not in a valid format. Use an integer for bytes, or a string with an unit (like '5.0GB')."
    )
    if isinstance(size, int) and not isinstance(size, bool):
        number = min(size, _MOST_BYTES)
    else:
        text = str(size)
        unit = next((unit for unit in _UNITS if text.upper().endswith(unit)), None)
        try:
            number = int(float(text[: -len(unit)]) * _UNITS[unit]) if unit else -1
        except (ValueError, OverflowError):
            raise refusal("ValueError", wrong) from None
        if unit and len(unit) == 2 and text.endswith("b"):
            number //= 8
    if number < 0:
        raise refusal("ValueError", wrong)
    return min(number, _MOST_BYTES)


def limits_in_order(given: Mapping[Any, Any]) -> dict[Device, int]:
    """Bytes by device: GPUs by number, then ``mps``, ``cpu`` and ``disk``."""
    limits: dict[Device, int] = {}
    for key, size in given.items():
        device = int(key) if isinstance(key, str) and re.fullmatch(r"[0-9]+", key, re.ASCII) else key
        if device not in (MPS, CPU, DISK) and (isinstance(device, bool) or not isinstance(device, int)):
            known = "available devices are integers(for GPU/XPU), 'mps', 'cpu' and 'disk'"
            raise refusal("ValueError", f"Device {key} is not recognized, {known}")
        limits[device] = bytes_of_size(size)
    gpus: list[Device] = sorted(device for device in limits if isinstance(device, int))
    return {device: limits[device] for device in gpus + [name for name in (MPS, CPU, DISK) if name in limits]}


def sizes_for_accelerate(modules: Modules, element_bytes: int | None) -> dict[str, int]:
    """Bytes of all modules and tensors once loaded, tied parameters at their first name; parameters come first."""
    return _summed(_in_order(modules), lambda tensor: tensor.nbytes_in(element_bytes))


def sizes_for_transformers(modules: Modules, element_bytes: int | None) -> dict[str, int]:
    """Bytes of all modules and tensors of a model built in a type."""

    def nbytes(tensor: ModuleTensor) -> int:
        if element_bytes is None or tensor.fixed or not tensor.floating:
            return tensor.nbytes
        return tensor.elements * element_bytes

    return _summed(_in_order(modules), nbytes)


def _in_order(modules: Modules) -> list[tuple[str, ModuleTensor]]:
    """Parameters and then buffers, each parameter at one name."""
    tensors = [(name, tensor) for name, tensor in modules.root.named_tensors() if name not in modules.aliases]
    return sorted(tensors, key=lambda named: named[1].buffer)


def _summed(tensors: Any, nbytes: Any) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, tensor in tensors:
        size = nbytes(tensor)
        sizes[""] = sizes.get("", 0) + size
        end = name.find(".")
        while end >= 0:
            sizes[name[:end]] = sizes.get(name[:end], 0) + size
            end = name.find(".", end + 1)
        sizes[name] = sizes.get(name, 0) + size
    return sizes


def balanced_limits(
    modules: Modules,
    limits: Mapping[Device, int],
    sizes: Sizes,
    undividable: Collection[str],
    *,
    transformers: bool = False,
    low_zero: bool = False,
) -> dict[Device, int]:
    """Limits with all GPUs but the last lowered to an even part and a buffer.

    Parameters
    ----------
    modules, limits, sizes, undividable
        As :class:`~mtpp.formats.layouts.filling.Filling` takes them.
    transformers
        The rule of transformers 5 instead of accelerate's.
    low_zero
        As little as can be on GPU 0.
    """
    changed = dict(limits)
    if not transformers and DISK in limits:
        raise refusal("RuntimeError", "torch.device does not know 'disk' (balancing takes GPUs, 'mps' and 'cpu')")
    counted = [d for d in limits if isinstance(d, int) or (transformers and d == MPS)]
    number = sum(limits[device] > 0 for device in counted)
    if number == 0:
        return changed
    low_zero = low_zero and number > 1
    total = sizes.get("", 0)
    buffer = _buffer_of_transformers if transformers else _buffer_of_accelerate
    each = total // (number - low_zero) + buffer(modules, sizes, undividable)
    gpus = [device for device, limit in limits.items() if isinstance(device, int) and limit > 0]
    for device in gpus[:-1]:
        changed[device] = min(changed[0] if low_zero and device == 0 else each, changed[device])
    if low_zero:
        missing = next((device for device in range(number) if device not in changed), None)
        if missing is not None:
            raise refusal("KeyError", f"{missing} (balanced_low_0 takes GPUs 0 to {number - 1})")
        left = max(0, total - sum(changed[device] for device in range(1, number)))
        changed[0] = min(left, changed[0])
    return changed


def _buffer_of_accelerate(modules: Modules, sizes: Sizes, undividable: Collection[str]) -> int:
    """1.25 times the larger of the first blocks of each class and the mean leaf module."""
    first: dict[str, int] = {}
    for name, size in sizes.items():
        module = modules.by_name.get(name) if name else None
        if module and module.class_name in undividable:
            first.setdefault(module.class_name, size)
    inner = _without_leaves(sizes)
    leaves = [inner[name] for name in inner.keys() - _without_leaves(inner).keys()]
    mean = int(sum(leaves) / max(len(leaves), 1))
    return int(1.25 * max(max(first.values(), default=0), mean))


def _without_leaves(sizes: Sizes) -> dict[str, int]:
    """Names that have others below them, and the model itself."""
    parents = {name.rsplit(".", 1)[0] for name in sizes if "." in name}
    return {name: size for name, size in sizes.items() if name == "" or name in parents}


def _buffer_of_transformers(modules: Modules, sizes: Sizes, undividable: Collection[str]) -> int:
    """1.25 times the larger of the largest block and the largest sum of a module's own tensors."""
    blocks = [sizes.get(name, 0) for name, module in modules.by_name.items() if module.class_name in undividable]
    if undividable and not blocks:
        raise refusal("ValueError", "max() iterable argument is empty (no module is of a class that stays whole)")
    own: dict[str, int] = {}
    for name, _ in _in_order(modules):
        parent, dot, _ = name.rpartition(".")
        if dot:
            own[parent] = own.get(parent, 0) + sizes[name]
    return int(1.25 * max(max(blocks, default=0), max(own.values(), default=0)))
