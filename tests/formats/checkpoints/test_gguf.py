"""Headers of GGUF files: keys and tensors, long arrays passed over, and broken ones refused."""

from __future__ import annotations

import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from checkpoint_files import gguf_bytes, gguf_text

from mtpp.errors import InputError
from mtpp.formats.checkpoints.gguf import read_gguf
from mtpp.formats.checkpoints.gguf_types import BLOCK_TYPES

KEYS = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.ratio": 0.5,
    "llama.flag": True,
    "llama.heads": [4, 0, 4],
    "tokenizer.ggml.tokens": ["<s>", "a", "b"],
    "tokenizer.ggml.scores": [0.5] * 70_000,
}
TENSORS = {"token_embd.weight": ("Q4_K", (3, 512)), "blk.0.attn_q.weight": ("F32", (2, 5)), "x": ("Q8_0", (4, 2, 64))}
WHOLE = gguf_bytes(KEYS, TENSORS)


def _refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_gguf(path)
    return str(caught.value)


def test_keys_and_tensors_are_read(tmp_path: Path) -> None:
    """Dimensions are turned round, bytes are those of blocks; of texts and long arrays the length is kept."""
    path = tmp_path / "x.gguf"
    path.write_bytes(WHOLE)
    header = read_gguf(path)
    assert [(one.name, one.type, one.shape, one.bytes) for one in header.tensors] == [
        ("token_embd.weight", "Q4_K", (3, 512), 864),
        ("blk.0.attn_q.weight", "F32", (2, 5), 40),
        ("x", "Q8_0", (4, 2, 64), 544),
    ]
    assert header.keys["llama.heads"] == [4, 0, 4]
    assert header.keys["tokenizer.ggml.tokens"] == 3
    assert header.keys["tokenizer.ggml.scores"] == 70_000
    assert (header.keys["llama.ratio"], header.keys["llama.flag"]) == (0.5, True)


def _started(version: int = 3, tensors: int = 0, keys: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def _tensor(name: str, sizes: list[int], kind: int, at: int = 0) -> bytes:
    return gguf_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, at)


BROKEN = {
    "no magic": (b"GGML" + WHOLE[4:], "is no GGUF file"),
    "nothing": (b"", "is no GGUF file"),
    "magic alone": (b"GGUF", "truncated"),
    "version 1": (_started(1), "version 1 is not read"),
    "version 9": (_started(9), "version 9 is not read"),
    "2²² tensors and more": (_started(tensors=2**22 + 1), "4,194,305 tensors, more than"),
    "2⁶³ keys": (_started(keys=2**63), "keys, more than"),
    "a text of 2⁶³": (_started(keys=1) + struct.pack("<Q", 2**63), "more than the file has bytes"),
    "a value of 2⁶³": (_started(keys=1) + gguf_text("k") + struct.pack("<IQ", 8, 2**63), "more than the file has"),
    "an array of 2⁶³": (
        _started(keys=1) + gguf_text("k") + struct.pack("<IIQ", 9, 10, 2**63), "more than the file has bytes",
    ),
    "nested arrays": (_started(keys=1) + gguf_text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 40,
                      "nested too deeply"),
    "an unknown value": (_started(keys=1) + gguf_text("k") + struct.pack("<I", 77), "type 77 of a value is unknown"),
    "a key twice": (_started(keys=2) + 2 * (gguf_text("k") + struct.pack("<II", 4, 1)), "k: stands twice"),
    "an unknown type": (_started(tensors=1) + _tensor("t", [32], 99), "t: the type 99 is unknown"),
    "half a block": (_started(tensors=1) + _tensor("t", [33], 8), "t: rows of 33 are no blocks of 32 (Q8_0)"),
    "an odd begin": (_started(tensors=1) + _tensor("t", [32], 0, 7), "t: begins at 7"),
    "overlap": (_started(tensors=2) + _tensor("t", [64], 0) + _tensor("u", [64], 0, 32), "u: overlaps with 't'"),
    "one name": (_started(tensors=2) + _tensor("t", [8], 0) + _tensor("t", [8], 0, 32), "t: stands twice"),
    "many dimensions": (_started(tensors=1) + gguf_text("t") + struct.pack("<I", 2**31), "t: has 2,147,483,648"),
    "huge sizes": (_started(tensors=1) + _tensor("t", [2**60, 2**60], 0), "t: has 1.33e+36 elements"),
    "alignment": (_started(keys=1) + gguf_text("general.alignment") + struct.pack("<II", 4, 33), "no power of two"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_headers_are_refused_in_one_line(tmp_path: Path, case: str) -> None:
    """With the file, and the key or the tensor at fault."""
    data, text = BROKEN[case]
    assert text in _refusal(tmp_path / "x.gguf", data)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """Up to the last byte of the header."""
    data = gguf_bytes({"general.architecture": "llama", "llama.heads": [1, 2]}, TENSORS)
    for length in range(len(data)):
        assert _refusal(tmp_path / "x.gguf", data[:length])


@pytest.mark.parametrize("seed", range(4))
def test_mutated_headers_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    """Whatever bytes change: a result or an InputError."""
    draw = random.Random(seed)
    whole = gguf_bytes({key: value for key, value in KEYS.items() if "scores" not in key}, TENSORS)
    path = tmp_path / "x.gguf"
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(4, len(data))] = draw.choice((0, 255, draw.randrange(256)))
        path.write_bytes(data)
        with suppress(InputError):
            read_gguf(path)


def test_types_are_those_of_the_format() -> None:
    """Elements and bytes of blocks, by the package of the format's authors."""
    gguf = pytest.importorskip("gguf")
    for number, (name, elements, size) in BLOCK_TYPES.items():
        try:
            kind = gguf.GGMLQuantizationType(number)
        except ValueError:  # a type that this version does not have
            continue
        assert (kind.name, *gguf.GGML_QUANT_SIZES[kind]) == (name, elements, size)
