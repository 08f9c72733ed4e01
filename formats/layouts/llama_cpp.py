"""``llama.cpp``: shares of devices by ``--tensor-split``, layers on GPUs by ``--n-gpu-layers``.

``llama_model::load_tensors`` in ``src/llama-model.cpp`` and ``common/arg.cpp``. Slots are the blocks and the output
(final norm and head) behind them. A slot goes to the first device whose cumulated share, in float32, is above the
slot's place among those on GPUs.
"""

from __future__ import annotations

import math
import re
import shlex
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtpp.errors import InputError
from mtpp.formats.layouts.counts import check_counts
from mtpp.formats.layouts.placed_stages import check_ends, device_notes, gpus, numbering, refuse_tensor_degrees, refused
from mtpp.formats.layouts.request import (
    LayoutRequest,
    Setting,
    check_keys,
    integer,
    named,
    natural,
    refusal,
    uncommented,
)
from mtpp.formats.layouts.written import WrittenLayout
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.layout import Layout

SPLIT = ("--tensor-split", "-ts", "tensor_split")
LAYERS = ("--n-gpu-layers", "-ngl", "--gpu-layers", "n_gpu_layers")
OVERRIDE = ("--override-tensor", "-ot", "override_tensor")
CPU_MOE, SOME_CPU_MOE = ("--cpu-moe", "-cmoe"), ("--n-cpu-moe", "-ncmoe")
MODE = ("--split-mode", "-sm")
FREE = ("free_memory",)
KEYS = (*SPLIT, *LAYERS, *OVERRIDE, *CPU_MOE, *SOME_CPU_MOE, *MODE, *FREE, "--fit", "--device", "-dev", "-c")
_MOST_DEVICES = 16
_SEPARATOR = re.compile(r"[,/]+")
_NUMBER = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:0x[0-9a-f]+(?:\.[0-9a-f]*)?(?:p[+-]?[0-9]+)?"
    r"|inf(?:inity)?|nan|[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?))",
    re.IGNORECASE,
)
"""Beginning of a text that C reads as a number."""
_BUFFER = re.compile(r"CPU|Metal|OpenCL|BLAS|RPC\d*\[.+\]|(?:CUDA|ROCm|Vulkan|SYCL|MUSA|CANN|MTL|HIP|GPU)(\d+)")
_LEAST = 2.0**-126
"""Least normal number of float32."""
_EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that llama.cpp makes of its options."""
    setting = options_of_line(setting) if isinstance(setting, str) else setting
    findings = check_keys(setting, KEYS)
    text, free = named(setting, *SPLIT), named(setting, *FREE)
    if free is not None and not isinstance(free, list | tuple):
        raise InputError(f"free_memory is {free!r}, not memory of each device", parameter="layout")
    shares, read_as = _shares(text) if text is not None else (None, [])
    known = shares if shares is not None else free
    devices = natural(request.stage_count(len(known) if known is not None else 1), "the number of devices")
    findings += [*read_as, *_share_faults(shares, devices)]
    overrides = _overrides(setting, devices)
    split = _split(shares, free, devices)
    blocks = request.layers + request.mtp
    on_gpus = _layers_on_gpus(named(setting, *LAYERS), blocks) if devices else 0
    places = devices_of_slots(split, blocks + 1, on_gpus)
    notes = ["the token embedding is on the CPU" + (", the tied head is a second copy" if request.tied else "")]
    if named(setting, *MODE, default="layer") not in ("layer", "none"):
        notes.append("--split-mode cuts tensors: devices hold parts of all layers by these shares")
    return _layout(places, devices, overrides, request, findings, notes)


def options_of_line(text: str) -> Setting:
    """Options of a command line; a text without any is ``--tensor-split``, one that begins with a number too."""
    text = uncommented(text)
    words = _words(text)
    if words and not words[0].startswith("-") and set(words) & {*KEYS}:
        words = words[next(i for i, word in enumerate(words) if word.startswith("-")) :]
    elif not text.lstrip().startswith("-") or _NUMBER.match(text):
        return {SPLIT[0]: text}
    if not set(words) & {*KEYS}:
        raise refusal("std::invalid_argument", f"error: invalid argument: {words[0]}")
    found: dict[str, Any] = {}
    while words:
        option = words.pop(0)
        if option in CPU_MOE:
            found[option] = True
        elif option in KEYS:
            if not words:
                raise refusal("std::invalid_argument", f"error: expected value for argument: {option}")
            value = words.pop(0)
            found[option] = f"{found[option]},{value}" if option in OVERRIDE and option in found else value
        elif option.startswith("-"):
            found[option] = ""  # nothing is known of its value
    return found


def _words(text: str) -> list[str]:
    """Words of a line, those in quotation marks whole."""
    if '"' not in text and "'" not in text:
        return text.split()
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    try:
        return list(lexer)
    except ValueError as error:
        raise InputError(f"is no line of a shell: {error}", parameter="layout") from None


def _shares(text: Any) -> tuple[list[float], list[str]]:
    """Shares that a text gives, and findings about how words are read."""
    if isinstance(text, list | tuple):
        text = ",".join(map(str, text))
    words = _SEPARATOR.split(str(text))
    if len(words) > 1 and not words[-1]:
        words.pop()
    if len(words) >= _MOST_DEVICES:
        many = f"got {len(words)} input configs, but system only has {_MOST_DEVICES} devices"
        raise refusal("std::invalid_argument", many)
    shares, findings = [], []
    for word in words:
        match = _NUMBER.match(word)
        if match is None:
            raise refusal("std::invalid_argument (stof)", f"{word!r} is no number")
        shares.append(_float(match[1]))
        if match.end() < len(word.rstrip()):
            findings.append(f"share {word!r} is read as {match[1]}")
    return shares, findings


def _float(text: str) -> float:
    """Value of a number in float32; one that is too large or too small for it is refused as C++ refuses it."""
    try:
        value = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        value = math.inf
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    overflow = math.isinf(single) and "inf" not in text.lower()
    if overflow or (single != value and abs(single) < _LEAST):
        raise refusal("std::out_of_range (stof)", f"{text!r} is no number of float32")
    return single


def _share_faults(shares: Sequence[float] | None, devices: int) -> list[str]:
    if shares is None:
        return []
    found = [f"share {i} is {share:g}" for i, share in enumerate(shares) if not 0 <= share < math.inf]
    if len(shares) > devices:
        found.append(f"{len(shares)} shares for {devices} devices: those beyond are ignored")
    return found


def _split(shares: Sequence[float] | None, free: Any, devices: int) -> list[float]:
    """Shares of the devices; their free memory where none is above nothing."""
    given = [*(shares or ()), *[0.0] * devices][:devices]
    if any(given) or not devices:
        return given
    if devices == 1:
        return [1.0]
    if free is None:
        raise InputError("free memory by device decides", parameter="layout", remedy="give 'free_memory' or shares")
    if len(free) != devices:
        raise InputError(f"free_memory has {len(free)} devices, not {devices}", parameter="layout")
    if not all(isinstance(amount, int | float) and 0 <= amount < math.inf for amount in free) or not any(free):
        raise InputError(f"free_memory is {free!r}, not memory of each device", parameter="layout")
    return [float(amount) for amount in free]


def _layers_on_gpus(given: Any, blocks: int) -> int:
    if isinstance(given, str) and given not in ("auto", "all"):
        try:
            given = int(given)
        except ValueError:
            raise refusal("std::invalid_argument (stoi)", f"{given!r} is no number") from None
    number = None if isinstance(given, str) else integer(given, LAYERS[0])
    return blocks + 1 if number is None or number < 0 else min(number, blocks + 1)


def devices_of_slots(shares: Sequence[float], slots: int, on_gpus: int) -> list[int | None]:
    """Device of each slot by its number, None for the CPU.

    Examples
    --------
    >>> devices_of_slots([3, 1], 4, 4)
    [0, 0, 0, 1]
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        points = np.cumsum(np.asarray(shares, dtype=np.float32), dtype=np.float32)
        points = (points / points[-1] if len(points) else points).tolist()
    start = slots - on_gpus
    found = [bisect_right(points, float(np.float32(slot) / np.float32(on_gpus))) for slot in range(on_gpus)]
    if max(found, default=-1) >= len(points):
        raise refusal("std::out_of_range (vector::at)", f"shares {list(shares)} leave a layer without a device")
    return [*[None] * start, *found]


def _overrides(setting: Setting, devices: int) -> list[list[str]]:
    """Patterns and buffers, in the order in which they are tried."""
    found = []
    given = named(setting, *OVERRIDE)
    texts = [given] if isinstance(given, str) else given or []
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{OVERRIDE[0]} is {given!r}, not a text", parameter="layout")
    for text in texts:
        for part in text.split(","):
            pattern, separator, buffer = part.partition("=")
            if not separator:
                raise refusal("std::invalid_argument", f"invalid value ({part!r} has no =)")
            known = _BUFFER.fullmatch(buffer)
            if not known or int(known[1] or 0) >= max(devices, 1):
                raise refusal("std::invalid_argument", f"unknown buffer type ({buffer!r})")
            found.append([_checked(pattern), buffer])
    if named(setting, *CPU_MOE):
        found.append([_EXPERTS, "CPU"])
    some = named(setting, *SOME_CPU_MOE, default=0)
    some = int(some) if isinstance(some, str) and some.isdecimal() else some
    return [*found, *([rf"blk\.{i}{_EXPERTS}", "CPU"] for i in range(natural(some, SOME_CPU_MOE[0])))]


def _checked(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise refusal("std::regex_error", f"{error} in {pattern!r}") from None
    return pattern


def _layout(
    places: Sequence[int | None],
    devices: int,
    overrides: list[list[str]],
    request: LayoutRequest,
    findings: list[str],
    notes: list[str],
) -> Layout:
    names = ["CPU" if place is None else f"GPU{place}" for place in places]
    blocks = names[:-1]
    runs = [name for name in ("CPU", *(f"GPU{i}" for i in range(devices))) if name in blocks]
    return Layout(
        engine="llama.cpp",
        devices=runs,
        ranges=[[blocks.index(name), len(blocks) - blocks[::-1].index(name)] for name in runs],
        layers={f"GPU{i}": blocks.count(f"GPU{i}") for i in range(devices)},
        cpu_layers=blocks.count("CPU"),
        devices_of_layers=["CPU" if place is None else place for place in places[:-1]],
        output_on=names[-1],
        token_embedding_on="CPU",
        embedding_on="CPU",
        final_norm_on=names[-1],
        head_on=names[-1],
        mtp_on=",".join(dict.fromkeys(blocks[request.layers :])) or None,
        overrides=overrides or None,
        findings=[*findings, *_empty_devices(names, devices)],
        notes=notes,
    )


def _empty_devices(names: Sequence[str], devices: int) -> list[str]:
    """Name GPUs without a layer or the output, where others have some."""
    if names[-1] == "CPU":
        return []
    return [f"GPU{i} holds nothing" for i in range(devices) if f"GPU{i}" not in names]


def write(stages: Sequence[LayerStage], request: LayoutRequest) -> WrittenLayout:
    """Options that place the blocks of a plan, those of MTP layers included, and the output behind them."""
    refuse_tensor_degrees(stages, "llama.cpp", "cuts tensors of all layers or of none")
    check_ends(stages, "llama.cpp")
    counts = [stage.count + stage.mtp for stage in stages]
    empty = next((stage for stage, count in zip(stages, counts, strict=True) if not count and not stage.head), None)
    if empty is not None:
        problem = f"stage {empty.number} has the embedding alone, and llama.cpp keeps it on the CPU"
        raise refused(problem, layers_only=True)
    check_counts(counts, LayoutRequest(layers=request.layers + request.mtp, stages=request.stages), least=0)
    if len(counts) >= _MOST_DEVICES:
        raise refused(f"{len(counts)} devices, where llama.cpp takes less than {_MOST_DEVICES} shares")
    blocks = sum(counts)
    split = ",".join(map(str, [*counts[:-1], counts[-1] + 1]))
    setting = {SPLIT[0]: split, LAYERS[0]: blocks + 1}
    wanted: list[int | str] = [device for device, count in enumerate(counts) for _ in range(count)]
    asked = LayoutRequest(layers=request.layers, stages=len(counts), mtp=request.mtp)
    if read(setting, asked).devices_of_layers != wanted:
        raise refused(f"shares {split} are rounded to another layout in float32")
    shown = ",".join(f"CUDA{gpu}" for gpu in gpus(stages))
    notes = device_notes(stages, started=True)
    if before := numbering(stages):
        notes.append(f"start it with {before}: devices are numbered so")
    notes.append("the token embedding is on the CPU" + (", the tied head is a second copy" if request.tied else ""))
    return WrittenLayout(setting, f"-dev {shown} -ngl {blocks + 1} -ts {split}\n", notes)
