"""Headers of safetensors files: read without data, and refused where they are broken."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import header_of, safetensors_bytes, write_safetensors

from mtpp.errors import InputError
from mtpp.formats.checkpoints.safetensors import read_safetensors

TENSORS = {"a": ("BF16", (2, 3)), "b": ("F8_E4M3", (4,)), "c": ("F32", ()), "d": ("F4", (8,))}


def _refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_safetensors(path)
    return str(caught.value)


def test_tensors_are_listed_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    """Names, types, shapes and bytes are those of the header, which may be all that there is."""
    header = read_safetensors(write_safetensors(tmp_path / "x.safetensors", TENSORS))
    assert [(one.name, one.type, one.shape, one.bytes) for one in header.tensors] == [
        ("a", "BF16", (2, 3), 12),
        ("b", "F8_E4M3", (4,), 4),
        ("c", "F32", (), 4),
        ("d", "F4", (8,), 4),
    ]
    assert header.missing_bytes == 0


def test_data_that_is_not_all_there_is_said(tmp_path: Path) -> None:
    """A download that broke off lacks so many bytes; a whole file none."""
    path = write_safetensors(tmp_path / "x.safetensors", TENSORS)
    head = path.read_bytes()
    path.write_bytes(head + b"\0" * 10)
    assert read_safetensors(path).missing_bytes == 14
    path.write_bytes(head + b"\0" * 24)
    assert read_safetensors(path).missing_bytes == 0


def _with(name: str, **entry: Any) -> bytes:
    document = header_of(TENSORS)
    document[name] = {**document.get(name, {}), **entry}
    return safetensors_bytes(document)


BROKEN = {
    "nothing": (b"", "ends before its header"),
    "seven bytes": (b"1234567", "ends before its header"),
    "truncated": (safetensors_bytes(header_of(TENSORS))[:-5], "truncated"),
    "above the cap": ((2**28 + 1).to_bytes(8, "little") + b"{}", "above 256 MiB"),
    "of 2⁶³": ((2**63).to_bytes(8, "little") + b"{}", "above 256 MiB"),
    "no JSON": ((3).to_bytes(8, "little") + b"{]}", "no JSON"),
    "no object": ((2).to_bytes(8, "little") + b"[]", "no JSON object"),
    "deeply nested": (safetensors_bytes(0)[:0] + (200_000).to_bytes(8, "little") + b"[" * 200_000, "nested too deeply"),
    "no text": ((2).to_bytes(8, "little") + b"\xff\xfe", "no JSON"),
    "a name twice": ((15).to_bytes(8, "little") + b'{"a":{},"a":{}}', "stands twice"),
    "metadata": (safetensors_bytes({"__metadata__": {"a": 1}}), "__metadata__"),
    "entry": (safetensors_bytes({"a": 1}), "a: is no object"),
    "unknown type": (_with("a", dtype="F99"), "a: the type 'F99' is unknown"),
    "negative shape": (_with("a", shape=[-2, -3]), "a: has the shape [-2, -3]"),
    "fractional shape": (_with("a", shape=[1.5, 4]), "a: the shape is no list of whole numbers"),
    "boolean shape": (_with("a", shape=[True, 6]), "a: the shape is no list of whole numbers"),
    "huge shape": (_with("a", shape=[2**61, 2**61]), "a: has 5.32e+36 elements"),
    "wrong size": (_with("a", shape=[2, 4]), "a: data_offsets hold 12 bytes, type and shape 16"),
    "reversed offsets": (_with("a", data_offsets=[12, 0]), "a: data_offsets hold -12 bytes"),
    "negative offsets": (_with("a", data_offsets=[-12, 0]), "a: data_offsets hold 12 bytes"),
    "three offsets": (_with("a", data_offsets=[0, 6, 12]), "a: data_offsets are no two whole numbers"),
    "overlap": (_with("e", dtype="U8", shape=[4], data_offsets=[10, 14]), "overlaps with"),
    "gap": (_with("e", dtype="U8", shape=[4], data_offsets=[100, 104]), "belong to no tensor"),
    "infinite": ((70).to_bytes(8, "little") + b'{"a":{"dtype":"U8","shape":[Infinity],"data_offsets":[0,1]}}'.ljust(70),
                 "no JSON"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_headers_are_refused_in_one_line(tmp_path: Path, case: str) -> None:
    """With the file, the tensor where it is one's fault, and no more than a header read."""
    data, text = BROKEN[case]
    said = _refusal(tmp_path / "x.safetensors", data)
    assert text in said
    assert said.startswith(str(tmp_path)) or "…" in said


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(InputError, match=r"x\.safetensors: cannot be read"):
        read_safetensors(tmp_path / "x.safetensors")


@pytest.mark.parametrize("seed", range(4))
def test_mutated_headers_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    """Whatever bytes change: a result or an InputError."""
    draw = random.Random(seed)
    whole = bytearray(safetensors_bytes(header_of(TENSORS)))
    path = tmp_path / "x.safetensors"
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.8:
            data[:8] = whole[:8]
        path.write_bytes(data[: draw.randint(0, len(data))] if draw.random() < 0.2 else data)
        with suppress(InputError):
            read_safetensors(path)


def test_files_of_others_are_read_alike(shared_data: Path) -> None:
    """Tensors of real names and sizes, as huggingface_hub reads them."""
    hub = pytest.importorskip("huggingface_hub")
    path = shared_data / "llm" / "gpt2-xl" / "model.safetensors"
    read = hub.parse_local_safetensors_file_metadata(str(path)).tensors
    found = {one.name: (one.type, list(one.shape)) for one in read_safetensors(path).tensors}
    assert found == {name: (one.dtype, list(one.shape)) for name, one in read.items()}


def test_lengths_and_json_are_all_that_is_read(tmp_path: Path) -> None:
    """A sparse file of a terabyte costs no more than its header."""
    path = write_safetensors(tmp_path / "x.safetensors", {"a": ("BF16", (2**39,))})
    with path.open("r+b") as file:
        try:
            file.truncate(path.stat().st_size + 2**40)
        except OSError:
            pytest.skip("no sparse files of a terabyte here")
    assert read_safetensors(path).tensors[0].bytes == 2**40
