"""Copies that PyTorch may load hold nothing pickled and nothing that it would evaluate."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

from mtpp.datasets import sample_path
from mtpp.errors import InputError
from mtpp.formats.torch_export.loadable import loadable_copy
from mtpp.formats.torch_export.symbols import check_arithmetic

EVIL = "__import__('os').system('true')"


def _changed(change: Callable[[dict[str, Any]], None], part: str) -> bytes:
    """Return the sample GPT-2 with one of its JSON files changed."""
    written = io.BytesIO()
    with zipfile.ZipFile(sample_path("gpt2", "pt2")) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(part):
                document = json.loads(data)
                change(document)
                data = json.dumps(document).encode()
            new.writestr(name, data)
    return written.getvalue()


def test_copies_have_our_sample_inputs_and_no_guards() -> None:
    """Of the file's own only the program, its weights and its constants are left."""
    ours = pickle.dumps(((), {}))
    with loadable_copy(Path(sample_path("gpt2", "pt2")).read_bytes(), "gpt2.pt2", ours) as copy:
        archive = zipfile.ZipFile(copy)
        assert archive.read("program/data/sample_inputs/model.pt") == ours
        assert json.loads(archive.read("program/models/model.json"))["guards_code"] == []
        assert {name.partition("/")[0] for name in archive.namelist()} == {"program"}
        assert not [
            name for name in archive.namelist() if name.endswith((".pt", ".pkl")) and "sample_inputs" not in name
        ]


def _foreign_results(document: dict[str, Any]) -> None:
    signature = document["graph_module"]["module_call_graph"][0]["signature"]
    protocol, tree = json.loads(signature["out_spec"])
    kind, context = "nowhere.modeling_outputs.Result", json.dumps(["logits"])
    signature["out_spec"] = json.dumps([protocol, {"type": kind, "context": context, "children_spec": [tree]}])


def test_results_in_containers_of_other_packages_are_read_as_tuples() -> None:
    """Programs of transformers return such ones: PyTorch alone could not load them."""
    pytest.importorskip("torch")
    from mtpp.runtime.pytorch.loading import load_program

    changed = _changed(_foreign_results, "models/model.json")
    own = load_program(Path(sample_path("gpt2", "pt2")).read_bytes(), "gpt2.pt2").exported.call_spec
    loaded = load_program(changed, "changed.pt2").exported.call_spec
    assert (loaded.out_spec.type, loaded.out_spec.children()) == (tuple, [own.out_spec])
    assert loaded.in_spec == own.in_spec


def _pickled(document: dict[str, Any]) -> None:
    document["config"]["tokens.weight"]["use_pickle"] = True


def _elsewhere(document: dict[str, Any]) -> None:
    document["config"]["tokens.weight"]["path_name"] = "custom_obj_0"


def _evil_size(document: dict[str, Any]) -> None:
    values = document["graph_module"]["graph"]["tensor_values"]
    entry = next(one for one in values.values() if any("as_expr" in size for size in one["sizes"]))
    size = next(size for size in entry["sizes"] if "as_expr" in size)
    size["as_expr"]["expr_str"] = EVIL


def _evil_call(document: dict[str, Any]) -> None:
    document["graph_module"]["graph"]["nodes"][3]["target"] = "torch.load"


@pytest.mark.parametrize(
    ("change", "part", "says"),
    [
        (_pickled, "model_weights_config.json", "weight 'tokens.weight' is pickled"),
        (_elsewhere, "model_weights_config.json", "is not unpickled"),
        (_evil_size, "models/model.json", "is no arithmetic of sizes"),
        (_evil_call, "models/model.json", "a node calls 'torch.load'"),
    ],
)
def test_what_pytorch_would_run_is_refused(change: Callable[[dict[str, Any]], None], part: str, says: str) -> None:
    """PyTorch unpickles such weights, evaluates such sizes, and calls such functions."""
    assert says in str(refusal(loadable_copy, _changed(change, part), "gpt2.pt2", b""))


def test_a_copy_that_has_no_room_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of temporary files is full, not that of the stages."""

    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda _: Full())
    with pytest.raises(InputError, match=r"gpt2\.pt2: .* a copy of it, .*: No space left on device; have TMPDIR name"):
        loadable_copy(Path(sample_path("gpt2", "pt2")).read_bytes(), "gpt2.pt2", b"")


@pytest.mark.parametrize(
    "text",
    [
        "Symbol('s0', positive=True, integer=True)",
        "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(-1))",
        "GreaterThan(Symbol('s0', integer=True), Integer(2))",
        "-3",
        "int_oo",
    ],
)
def test_arithmetic_of_sizes_passes(text: str) -> None:
    """What SymPy prints of sizes and conditions on them is let through."""
    check_arithmetic(text)


@pytest.mark.parametrize(
    "text",
    [
        EVIL,
        "eval('1')",
        "Symbol('a b')",
        "[x for x in ()]",
        "Symbol.__class__",
        "Integer",
        "f'{1}'",
        "lambda: 1",
        "open",
    ],
)
def test_other_text_does_not(text: str) -> None:
    """Nothing else reaches PyTorch, which evaluates these as Python."""
    with pytest.raises(ValueError, match="not known"):
        check_arithmetic(text)
