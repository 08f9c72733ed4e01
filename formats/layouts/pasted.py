"""Layouts as people have them at hand: lines of a shell, of YAML or TOML, JSON, and dictionaries of Python.

The texts that writers make are among them. Beside the layout such lines say the number of stages, the order of devices
and the tensor degree.
"""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.layouts import (
    accelerate,
    deepspeed,
    llama_cpp,
    megatron,
    megatron_flags,
    sglang,
    tensorrt_llm,
    torchtitan,
    vllm,
)
from mtpp.formats.layouts.request import MOST, Setting, uncommented

DEFAULT = "default"
"""Word for an engine's own rule."""

_STAGES = (
    "pipeline_parallel_size", "pp_size", "pp", "pipeline_model_parallel_size", "pipeline_parallel_degree", "num_stages",
)  # fmt: skip
_TENSOR = ("tensor_parallel_size", "tp_size", "tp", "tensor_model_parallel_size", "tensor_parallel_degree")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
_DEVICES = ("dev", "device")
_DEVICE = re.compile(r"(?:[A-Za-z]+)?([0-9]+)", re.ASCII)
_STARTED = re.compile(r"(?m)^#.*\b(?:CUDA|HIP)_VISIBLE_DEVICES=([0-9,]+)", re.ASCII)
"""Order of devices in a comment above a text that has no place for it."""
_NAME_AND_VALUE = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)=(.*)", re.DOTALL)
_METHOD = re.compile(r"partition_method\s*=\s*([\"'])(.*?)\1")
_NUM_STAGES = re.compile(r"(?:num_stages|num_pp)\s*=\s*([0-9]{1,6})", re.ASCII)
_NUM_GPUS = re.compile(r"num_mp\s*=\s*([0-9]{1,6})", re.ASCII)
_LIST = re.compile(r"pp_partition\s*[:=]\s*\[([^\]]*)\]")
_BLOCK_LIST = re.compile(r"pp_partition\s*:\s*\n((?:\s*-\s*-?[0-9]+\s*\n?)+)")
_OPTION = re.compile(r"(?:^|(?<=\s))--?[a-z]")
_UNRELATED = (
    "-m", "--model", "-c", "--ctx-size", "-b", "--batch-size", "-ub", "--ubatch-size", "-np", "--parallel", "-t",
    "--threads", "-fa", "--flash-attn", "-ctk", "--cache-type-k", "-ctv", "--cache-type-v", "--host", "--port", "-hf",
)  # fmt: skip
"""Options of llama.cpp that place nothing."""
_SIZE = r"(?m)^\s*(?:{})\s*[:=]\s*([0-9]{{1,6}})\b"


@dataclass(frozen=True)
class PastedLayout:
    """A layout and the facts beside it.

    Attributes
    ----------
    setting
        Text or keys as the reader of the engine takes them; empty for its own rule.
    stages
        Number of stages, None where nobody said it.
    devices
        Numbers of the GPUs of all stages in order; None where stages follow the list of devices.
    tensor_parallel
        GPUs of each stage, None where nobody said it.
    """

    engine: str
    setting: Setting | str
    stages: int | None = None
    devices: tuple[int, ...] | None = None
    tensor_parallel: int | None = None

    @property
    def own_rule(self) -> bool:
        """Whether the engine decides."""
        return not self.setting or (isinstance(self.setting, str) and self.setting in accelerate.MODES)

    @property
    def first_gpus(self) -> tuple[int, ...] | None:
        """Number of the first GPU of each stage; None where stages follow the list of devices."""
        degree, gpus = self.tensor_parallel or 1, self.devices
        if gpus is None or len(gpus) % degree or self.stages not in (None, len(gpus) // degree):
            return gpus
        return gpus[::degree]


def pasted_layout(engine: str, given: Any, source: str | None = None) -> PastedLayout:
    """Layout of a text, of the content of a file, or of keys and values.

    Parameters
    ----------
    given
        ``"default"`` for the engine's own rule.
    source
        File that a text comes from.

    Raises
    ------
    InputError
        If lines cannot be told apart, or what stands beside the layout is wrong; the layout itself is not looked at.

    Examples
    --------
    >>> pasted_layout("vllm", "VLLM_PP_LAYER_PARTITION=16,32 vllm serve m -pp 2 -tp 4")
    PastedLayout(engine='vllm', setting='16,32', stages=2, devices=None, tensor_parallel=4)
    """
    if not isinstance(given, str):
        return PastedLayout(engine, _keyed(engine, given))
    text = given.strip("\ufeff") if source is None else given.strip("\ufeff \t\r\n")
    if text.strip() in (DEFAULT, "{}"):
        return PastedLayout(engine, {})
    is_table = engine == "torchtitan" and "=" in text
    if engine != "llama.cpp" and not is_table and text.lstrip()[:1] in ("{", "["):
        return PastedLayout(engine, _keyed(engine, _parsed(text, source)))
    found = _READERS.get(engine, PastedLayout)(engine, text)
    started = _STARTED.search(text) if found.devices is None else None
    return found if started is None else replace(found, devices=_device_numbers(started[1]))


def _keyed(engine: str, value: Any) -> Setting:
    """Keys and values that a value of JSON stands for."""
    if isinstance(value, Mapping):
        return {str(key): one for key, one in value.items()}
    key = {"torchtitan": torchtitan.KEY, "tensorrt-llm": tensorrt_llm.KEY, "exo": "ram_available_gb"}.get(engine)
    key = megatron.FLAG if engine in ("megatron", "megatron-bridge") else key
    if key is None and engine in ("vllm", "sglang") and isinstance(value, list):
        variable = (vllm if engine == "vllm" else sglang).VARIABLE
        return {variable: ",".join(map(str, value))}
    if key is None or not isinstance(value, list):
        raise InputError(f"is {type(value).__name__}, neither a text nor keys and values", parameter="layout")
    return {"pipeline_model_parallel_layout" if engine == "megatron-bridge" else key: value}


def _parsed(text: str, source: str | None) -> Any:
    """Value of JSON, or of a dictionary as Python shows it."""
    try:
        return _plain(parse_json(text.encode(errors="replace"), source or "‹layout›"))
    except InputError as error:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            raise error from None


def _plain(value: Any) -> Any:
    """Value with numbers of Python's own kinds."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return float(value) if hasattr(value, "limit_denominator") and not isinstance(value, int) else value


@dataclass(frozen=True)
class _Words:
    """Words of a command line."""

    variables: Mapping[str, str]
    flags: Mapping[str, str]

    def said(self, layout: PastedLayout) -> PastedLayout:
        """Layout with the number of stages, the order of devices and the tensor degree of the words."""
        visible = next((self.variables[name] for name in _VISIBLE if name in self.variables), None)
        order = visible if visible is not None else self.flag(*_DEVICES)
        return replace(
            layout,
            stages=_count(self.flag(*_STAGES), "the number of stages"),
            tensor_parallel=_count(self.flag(*_TENSOR), "the tensor degree"),
            devices=None if order is None else _device_numbers(order),
        )

    def flag(self, *names: str) -> str | None:
        """Value of the first of several flags."""
        return next((self.flags[name] for name in names if name in self.flags), None)


def _count(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 7 and 1 <= int(text) <= MOST):
        raise InputError(f"{name} is {text!r}, not a whole number from 1 to {MOST}", parameter="layout")
    return int(text)


def _device_numbers(text: str) -> tuple[int, ...]:
    """Numbers of devices in a list such as ``1,0`` or ``CUDA1,CUDA0``."""
    found = [_DEVICE.fullmatch(word.strip()) for word in text.split(",")]
    numbers = [int(match[1]) for match in found if match is not None and len(match[1]) < 7]
    if len(numbers) < len(found) or len(set(numbers)) < len(numbers):
        raise InputError(f"devices {text!r} are not numbers, each once", parameter="layout")
    return tuple(numbers)


def _words(text: str) -> _Words:
    """Variables and flags of a text; a flag without a value has an empty one."""
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InputError(f"is no line of a shell: {error}", parameter="layout") from None
    variables: dict[str, str] = {}
    flags: dict[str, str] = {}
    for word, after in zip(words, [*words[1:], "-"], strict=True):
        name, value = _flag(word)
        if name:
            follows = after if value is None and not _flag(after)[0] and after != "-" else ""
            flags.setdefault(name, follows if value is None else value)
        elif (match := _NAME_AND_VALUE.fullmatch(word)) is not None:
            variables.setdefault(match[1], match[2])
    return _Words(variables, flags)


def _flag(word: str) -> tuple[str, str | None]:
    """Name of a flag as a key, and the value behind its sign; no name where a word is none."""
    if not word.startswith("-") or _is_number(word):
        return "", None
    name, sign, value = word.partition("=")
    return name.lstrip("-").rpartition(".")[2].replace("-", "_"), value if sign else None


def _is_number(word: str) -> bool:
    return word[1:2].isdigit()


def _of_variable(engine: str, text: str) -> PastedLayout:
    """Layout of vLLM or SGLang, in lines that set the variable, or counts alone."""
    variable = (vllm if engine == "vllm" else sglang).VARIABLE
    if not ("--" in text or "=" in text or "-pp" in text or ":" in text):
        return PastedLayout(engine, text)
    words = _words(re.sub(rf"({variable})\s*[:=]\s*", r"\1=", text))
    counts = words.variables.get(variable)
    return words.said(PastedLayout(engine, {} if counts is None else {variable: counts}))


def _of_yaml(engine: str, text: str) -> PastedLayout:
    """Layout of TensorRT-LLM, in lines of its arguments, or counts alone."""
    inline, block = _LIST.search(text), _BLOCK_LIST.search(text)
    sizes = [re.search(_SIZE.format("|".join(names)), text) for names in (_STAGES, _TENSOR)]
    stages, tensor = (None if size is None else _count(size[1], "a size") for size in sizes)
    setting: Setting | str = text
    if inline is not None:
        setting = inline[1]
    elif block is not None:
        setting = ",".join(re.findall(r"-\s*(-?[0-9]+)", block[1]))
    elif stages is not None:
        setting = {}
    return PastedLayout(engine, setting, stages, None, tensor)


def _of_megatron(engine: str, text: str) -> PastedLayout:
    """Layout of Megatron, as a text of letters or in a line of flags."""
    if "--" not in text:
        return PastedLayout(engine, text)
    words = _words(text)
    known = {name.lstrip("-").replace("-", "_"): name for name in (*megatron.KEYS, *megatron_flags.KEYS)}
    setting: dict[str, Any] = {}
    for name, value in words.flags.items():
        if name in known and name not in _STAGES:
            setting[known[name]] = True if not value else int(value) if value.isdecimal() else value
    return words.said(PastedLayout(engine, setting))


def _of_toml(engine: str, text: str) -> PastedLayout:
    """Layout of torchtitan, in lines of its configuration or in flags."""
    try:
        found = dict(_leaves(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        if "--" not in text:
            raise InputError(f"is no TOML: {error}", parameter="layout") from None
        found = dict(_words(text).flags)
        if isinstance(found.get(torchtitan.KEY), str):
            found[torchtitan.KEY] = _parsed(found[torchtitan.KEY], None)
    except RecursionError:
        raise InputError("is nested too deeply", parameter="layout") from None
    sizes = [next((str(found[name]) for name in names if name in found), None) for names in (_STAGES, _TENSOR)]
    setting = {name: _number(found[name]) for name in torchtitan.KEYS if name in found}
    stages, tensor = _count(sizes[0], "the number of stages"), _count(sizes[1], "the tensor degree")
    return PastedLayout(engine, setting, stages, None, tensor)


def _leaves(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield name, value


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _of_call(engine: str, text: str) -> PastedLayout:
    """Layout of DeepSpeed, a method alone or in the call that makes a pipeline."""
    method, stages = _METHOD.search(text), _NUM_STAGES.search(text)
    if "PipelineModule" not in text and method is None:
        return PastedLayout(engine, text)
    setting = {} if method is None else {deepspeed.METHOD: method[2]}
    count, tensor = None if stages is None else _count(stages[1], "num_stages"), _NUM_GPUS.search(text)
    return PastedLayout(engine, setting, count, None, None if tensor is None else _count(tensor[1], "num_mp"))


def _of_map(engine: str, text: str) -> PastedLayout:
    """Layout of accelerate, the name of a rule or a map behind its name."""
    text = uncommented(text)
    value = text.partition("=")[2] if text.lstrip().startswith("device_map") else text
    if value.lstrip().startswith("{"):
        return PastedLayout(engine, _keyed(engine, _parsed(value.strip(), None)))
    return PastedLayout(engine, value.strip().strip("\"'"))


def _of_options(engine: str, text: str) -> PastedLayout:
    """Layout of llama.cpp, shares alone or options; a program before them and options of other things are left out."""
    if _OPTION.match(text) is None and _OPTION.search(text) is None:
        return PastedLayout(engine, text)
    line = text[_OPTION.search(text).start() :].replace("\\\n", " ")  # type: ignore[union-attr]
    variables = _words(text.replace("\\", "\\\\")).variables
    options = {name: value for name, value in llama_cpp.options_of_line(line).items() if name not in _UNRELATED}
    order = next((variables[name] for name in _VISIBLE if name in variables), None)
    order = next((str(options[name]) for name in ("-dev", "--device") if name in options), order)
    return PastedLayout(engine, options, None, None if order is None else _device_numbers(order))


def _of_server(engine: str, text: str) -> PastedLayout:
    """Blocks of a server of Petals, alone or in a line of flags."""
    if "--" not in text:
        return PastedLayout(engine, text)
    flags = _words(text).flags
    found = {name: flags[name] for name in ("block_indices", "num_blocks") if name in flags}
    return PastedLayout(engine, {name: value if ":" in value else _number(value) for name, value in found.items()})


_READERS = {
    "vllm": _of_variable,
    "sglang": _of_variable,
    "tensorrt-llm": _of_yaml,
    "megatron": _of_megatron,
    "megatron-flags": _of_megatron,
    "torchtitan": _of_toml,
    "deepspeed": _of_call,
    "accelerate": _of_map,
    "transformers": _of_map,
    "llama.cpp": _of_options,
    "petals": _of_server,
}
