"""``petals``: the blocks of one server, as ``--block_indices 0:18`` or by their number and the swarm's throughput.

``server/server.py`` and ``server/block_selection.py``. Embedding, norm and head are at the client, and spans of servers
may overlap.
"""

from __future__ import annotations

import math
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, named, natural, refusal, value_in
from mtpp.language_models.layout import Layout

_INDICES = ("--block_indices", "block_indices")
_NUMBER = ("--num_blocks", "num_blocks")
_MEMORY = ("memory_bytes", "hidden_size", "block_bytes", "cache_bytes_per_block")
_AUTOGRAD_BYTES, _AUTOGRAD_HIDDEN = 2 * 2**30, 14336
"""Memory that a backward pass takes, measured on a model of that hidden size."""


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Blocks that a server takes."""
    setting = {_INDICES[0]: value_in(setting, _INDICES[0])} if isinstance(setting, str) else setting
    indices, number = named(setting, *_INDICES), named(setting, *_NUMBER)
    if indices is not None and number is not None:
        raise refusal("AssertionError", "Please specify num_blocks or block_indices, not both")
    findings = check_keys(setting, [*_INDICES, *_NUMBER, *_MEMORY, "throughputs"])
    if indices is not None:
        start, end = _span(str(indices))
        findings += _faults(start, end, request.layers)
    else:
        blocks = _blocks_that_fit(setting) if number is None else natural(number, "num_blocks", 1)
        start, end = _least_served(named(setting, "throughputs"), min(blocks, request.layers), request.layers)
    return Layout(
        engine="petals",
        ranges=[[start, end]],
        layers=[max(end - start, 0)],
        start=start,
        end=end,
        embedding_on="client",
        final_norm_on="client",
        head_on="client",
        findings=findings,
    )


def _span(text: str) -> tuple[int, int]:
    try:
        start, end = (int(word.strip()) for word in text.split(":"))
    except ValueError:
        wrong = f"Failed to parse `--block_indices {text}`, must be start:end (e.g. 0:18)"
        raise refusal("ValueError", wrong) from None
    return start, end


def _faults(start: int, end: int, layers: int) -> list[str]:
    if end <= start:
        return [f"blocks {start}:{end} are none"]
    return [f"blocks {start}:{end} are not all among 0:{layers}"] if start < 0 or end > layers else []


def _blocks_that_fit(setting: Setting) -> int:
    """Count the blocks that fit into the memory of the server's devices."""
    missing = [key for key in _MEMORY if key not in setting]
    if missing:
        raise InputError(f"{missing[0]} is needed", parameter="layout", remedy="or give num_blocks or block_indices")
    devices, hidden, block, cache = (_positive(setting[key], key) for key in _MEMORY)
    if max(devices) / min(devices) > 1.5:
        raise refusal(
            "ValueError", "GPU devices have highly uneven memory, which makes tensor parallelism inefficient."
        )
    backward = _AUTOGRAD_BYTES * len(devices) / _AUTOGRAD_HIDDEN * hidden[0]
    free = min(devices) * len(devices) - backward
    blocks: int = math.floor(free / (block[0] + cache[0]))
    if blocks < 1:
        raise refusal("AssertionError", "Your GPU does not have enough memory to serve at least one block")
    return blocks


def _positive(given: Any, name: str) -> list[int]:
    """Numbers above 0, one or several."""
    numbers = list(given) if isinstance(given, list | tuple) else [given]
    return [natural(number, name, 1, 2**62) for number in numbers or [0]]


def _least_served(throughputs: Any, blocks: int, layers: int) -> tuple[int, int]:
    """Window whose sorted throughputs are least, the first of equal ones."""
    rates = [0] * layers if throughputs is None else throughputs
    if not isinstance(rates, list | tuple) or not all(isinstance(rate, int | float) for rate in rates):
        raise InputError("throughputs are no list of numbers", parameter="layout")
    if len(rates) != layers:
        raise InputError(f"throughputs are of {len(rates)} blocks, the model has {layers}", parameter="layout")
    _, start = min((sorted(rates[i : i + blocks]), i) for i in range(layers - blocks + 1))
    return start, start + blocks
