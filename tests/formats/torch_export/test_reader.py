"""Exported programs as graphs: costs, folding, symbolic sizes, modules, and files that are broken."""

from __future__ import annotations

import io
import json
import zipfile
from random import Random
from typing import Any

import pytest
from exported_programs import INT64, archive, node, program, ref, symbol, tensor
from refusals import refusal

from mtpp.datasets import sample_path
from mtpp.errors import InputError
from mtpp.formats.torch_export import ProgramReading, looks_like_archive, read_with_modules
from mtpp.machine.presets import load_device

SYSTEM = load_device()


def read(document: Any, **options: Any) -> ProgramReading:
    """Read a document, or the bytes of a file."""
    data = document if isinstance(document, bytes) else archive(document)
    return read_with_modules(data, source="m.pt2", system=SYSTEM, name="m", **options)


def sample(name: str, **dims: int) -> ProgramReading:
    """Read a shipped program."""
    given = {key.replace("__", ":"): size for key, size in dims.items()}
    return read(sample_path(name, "pt2").read_bytes(), dims=given)


MLP = program(
    {"x": tensor(4, 8), "w": tensor(16, 8), "b": tensor(16), "y": tensor(4, 16), "z": tensor(4, 16)},
    [
        node("linear", ["y"], "layers.0.up", input="x", weight="w", bias="b"),
        node("gelu", ["z"], "layers.0.act", self="y"),
    ],
    stored={"w": "parameter", "b": "parameter"},
    outputs=["z"],
)


def test_costs_follow_from_types() -> None:
    """FLOPs, traffic and parameters of a layer, by hand; modules and nodes by op."""
    reading = read(MLP)
    graph = reading.graph
    assert graph.op_names == ("layers.0.up", "layers.0.act")
    assert graph.op_kinds == ("aten.linear", "aten.gelu")
    assert graph.metadata["macs"] == 4 * 16 * 8
    assert graph.metadata["flops"] == 2 * 4 * 16 * 8 + 5 * 4 * 16
    assert list(graph.param_bytes) == [4 * (16 * 8 + 16), 0]
    moved = 4 * (4 * 8 + 16 * 8 + 16 + 4 * 16)
    assert graph.work[0] == SYSTEM.modelled_work_ps(2 * 4 * 16 * 8, moved)
    assert graph.metadata["parameter_bytes"] == 4 * (16 * 8 + 16)
    assert reading.modules == {"layers.0.up": "layers.0.up", "layers.0.act": "layers.0.act"}
    assert reading.nodes == (("y",), ("z",))
    assert (graph.metadata["format"], graph.metadata["producer"]) == ("torch-export", "PyTorch 2.13.0")


def test_shipped_programs() -> None:
    """Multiply-accumulates as the papers and the ONNX samples have them; views take no time."""
    graph = sample("resnet50").graph
    assert (graph.metadata["macs"], graph.metadata["in_place"]) == (4_089_184_256, {})
    assert graph.metadata["parameter_bytes"] == 4 * (25_557_032 + 2 * 26_560) + 8 * 53
    reading = sample("gpt2", token_ids__0=1, token_ids__1=128)
    assert reading.graph.metadata["macs"] == pytest.approx(16.1e9, rel=0.01)
    assert reading.graph.metadata["parameter_bytes"] == 4 * 124_439_808
    assert {path.split(".")[1] for path in reading.modules.values() if path.startswith("blocks.")} == {
        str(block) for block in range(12)
    }
    views = [v for v, kind in enumerate(reading.graph.op_kinds) if kind in ("aten.transpose", "aten.split")]
    assert views
    assert all(reading.graph.work[v] == 0 for v in views)
    shared = reading.graph.metadata["shared_parameters"]
    assert shared[0]["name"] == "tokens.weight"
    assert len(shared[0]["ops"]) == 2


def test_constants_fold_into_their_readers() -> None:
    """What depends on no input is a parameter of its readers; a transposed weight is the weight."""
    types = {
        "x": tensor(4, 8),
        "w": tensor(16, 8),
        "wt": tensor(8, 16),
        "m": tensor(4, 16),
        "c": tensor(4, 16),
        "d": tensor(4, 16),
        "y": tensor(4, 16),
        "z": tensor(4, 16),
    }
    nodes = [
        node("t", ["wt"], self="w"),
        node("ones", ["c"], size={"as_ints": [4, 16]}),
        node("cos", ["d"], self="c"),
        node("mm", ["y"], self="x", mat2="wt"),
        node("torch.ops.aten.add.Tensor", ["z"], self="y", other="d"),
    ]
    graph = read(program(types, nodes, stored={"w": "parameter"}, outputs=["z"])).graph
    assert graph.op_names == ("y", "z")
    assert list(graph.param_bytes) == [4 * 16 * 8, 4 * 4 * 16]
    assert graph.metadata["folded_constants"] == 3
    assert graph.metadata["parameter_bytes"] == 4 * 16 * 8


def test_operators_without_a_rule_are_bound_by_memory() -> None:
    """They are counted by kind."""
    types = {"x": tensor(4, 8), "y": tensor(4, 8)}
    graph = read(program(types, [node("torch.ops.mine.blur.default", ["y"], image="x")], outputs=["y"])).graph
    assert graph.metadata["not_modelled"] == {"mine.blur": 1}
    assert graph.work[0] == SYSTEM.modelled_work_ps(0, 2 * 4 * 4 * 8)


SYMBOLIC = program(
    {
        "x": tensor(symbol("s7", 4), 8),
        "y": tensor({"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s7', positive=True, integer=True))"}}, 4),
        "n": tensor(symbol("u0"), 2, dtype=INT64),
    },
    [
        node("torch.ops.aten.view.default", ["y"], self="x", size={"as_sym_ints": [{"as_name": "twice"}]}),
        node("nonzero", ["n"], self="y"),
    ],
    outputs=["n"],
    ranges={"s7": {"min_val": 2, "max_val": 64}, "u0": {"min_val": 0, "max_val": None}},
    whole={"twice": {"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s7', integer=True))", "hint": {"as_int": 8}}}},
)


def test_symbolic_sizes() -> None:
    """By symbol, or by input and axis; the size that it was exported with is proposed."""
    for key in ("s7", "x:0"):
        graph = read(SYMBOLIC, dims={key: 6, "u0": 5}).graph
        assert graph.metadata["outputs"] == [{"name": "n", "shape": [5, 2], "dtype": "int64", "bytes": 80}]
        assert graph.metadata["dims"] == {key: 6, "u0": 5}
    assert int(graph.tensor_bytes[0]) == 4 * 12 * 4
    for dims, words in (
        ({}, "'x:0' (batch, as exported), 'u0' (depends on data); set dims={'x:0': 4, 'u0': 1}"),
        ({"s7": 4}, "'u0' (depends on data)"),
        ({"s7": 1, "u0": 1}, "exported for sizes from 2 to 64"),
        ({"s7": 65, "u0": 1}, "exported for sizes from 2 to 64"),
        ({"s7": 4, "x:0": 5}, "'s7' is 4 and 5"),
        ({"s7": 4, "batch": 5}, "no symbolic size 'batch'; it has: x:0, u0"),
        ({"s7": -4}, "not a positive size"),
    ):
        assert words in str(refusal(read, SYMBOLIC, dims=dims))
    assert read(SYMBOLIC, dims={"s7": 4, "u0": 3, "batch": 5}, spare_dims=True).graph.op_count == 2


def test_sizes_that_are_not_named() -> None:
    """Proposed ones are those that it was exported with, and said to be so; one size may be that of all others."""
    proposed = read(SYMBOLIC, dims={"*": "auto"}).graph.metadata
    assert (proposed["dims"], proposed["proposed_dims"]) == ({"x:0": 4, "u0": 1}, ["x:0", "u0"])
    some = read(SYMBOLIC, dims={"s7": 6, "*": "auto"}).graph.metadata
    assert (some["dims"], some["proposed_dims"]) == ({"s7": 6, "u0": 1}, ["u0"])
    same = read(SYMBOLIC, dims={"*": 3}).graph.metadata
    assert same["dims"] == {"x:0": 3, "u0": 3}
    assert "proposed_dims" not in same
    with pytest.raises(InputError, match="dims x:0: the program was exported for sizes from 2 to 64"):
        read(SYMBOLIC, dims={"*": 65})


def test_graphs_of_modes_are_inlined_and_conditions_are_one_op() -> None:
    """``no_grad`` leaves its nodes; of a condition the more expensive branch counts, and is said to."""
    inner = {
        "inputs": [ref("a")],
        "outputs": [ref("b")],
        "nodes": [node("cos", ["b"], self="a")],
        "tensor_values": {"a": tensor(4, 8), "b": tensor(4, 8)},
    }
    dear = {
        **inner,
        "nodes": [node("cos", ["c"], self="a"), node("softmax", ["b"], self="c")],
        "tensor_values": {**inner["tensor_values"], "c": tensor(4, 8)},
    }
    wrap = node("torch.ops.higher_order.wrap_with_set_grad_enabled", ["y"])
    wrap["inputs"] = [
        {"name": "", "arg": one}
        for one in ({"as_bool": False}, {"as_graph": {"name": "submod", "graph": inner}}, ref("x"))
    ]
    cond = node("torch.ops.higher_order.cond", ["z"])
    cond["inputs"] = [
        {"name": "", "arg": one}
        for one in (
            ref("y"),
            {"as_graph": {"name": "true", "graph": inner}},
            {"as_graph": {"name": "false", "graph": dear}},
            {"as_tensors": [{"name": "y"}]},
        )
    ]
    types = {"x": tensor(4, 8), "y": tensor(4, 8), "z": tensor(4, 8)}
    graph = read(program(types, [wrap, cond], outputs=["z"])).graph
    assert graph.op_kinds == ("aten.cos", "higher_order.cond")
    assert graph.metadata["flops"] == 32 + 32 * 6
    (entry,) = graph.metadata["control_flow"]
    assert entry["note"] == "the more expensive branch counted"
    assert graph.metadata["assumptions"] == [f"{entry['op']}: {entry['note']}"]


def test_what_is_written_in_place_is_one_op_where_it_must_be() -> None:
    """A buffer with all that touch it; an activation in place stands by itself."""
    types = {name: tensor(4, 8) for name in ("x", "h", "y", "z", "s", "t", "u")}
    nodes = [
        node("cos", ["y"], self="x"),
        node("relu_", ["z"], self="y"),
        node("torch.ops.aten.add_.Tensor", ["s"], self="h", other="z"),
        node("sin", ["t"], self="z"),
        node("torch.ops.aten.mul.Tensor", ["u"], self="h", other="t"),
    ]
    reading = read(program(types, nodes, stored={"h": "buffer"}, outputs=["u"]))
    assert reading.nodes == (("y",), ("z",), ("s", "u"), ("t",))
    assert reading.graph.metadata["in_place"] == {"s": ["s", "u"]}
    told = "2 ops around tensors written in place merged into 1: no stage can be cut there"
    kept = "1 state kept between requests, 128 B for each sequence: h"
    assert reading.graph.metadata["assumptions"] == [told, kept]


def test_a_buffer_that_becomes_a_result_keeps_its_readers_together() -> None:
    """Without writes in place, what a buffer is at the end stands before the results."""
    types = {name: tensor(4, 8) for name in ("x", "h", "y", "z", "s", "t")}
    nodes = [
        node("torch.ops.aten.add.Tensor", ["y"], self="x", other="h"),
        node("cos", ["z"], self="y"),
        node("sin", ["s"], self="z"),
        node("tanh", ["t"], self="s"),
    ]
    document = program(types, nodes, stored={"h": "buffer"}, outputs=["s", "t"])
    document["graph_module"]["signature"]["output_specs"] = [
        {"buffer_mutation": {"arg": {"name": "s"}, "buffer_name": "h"}},
        {"user_output": {"arg": ref("t")}},
    ]
    reading = read(document)
    assert reading.nodes == (("y", "z", "s"), ("t",))
    assert [one["name"] for one in reading.graph.metadata["outputs"]] == ["t"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04 and no more", "truncated or damaged"),
        (archive(MLP)[:-40], "truncated or damaged"),
        (archive(None, {"m/data.pkl": b"x"}), "are not unpickled"),
        (archive(None, {"m/serialized_exported_program.json": b"{}"}), "layout of PyTorch 2.6"),
        (archive(None, {"m/inner.pt2": b"x"}), "unpack the archive within"),
        (archive(None), "a zip file without an exported program"),
        (archive(MLP, {"m/models/other.json": b"{}"}), "holds 2 programs"),
        (archive(MLP, {"m/../../etc/passwd": b"x"}), "leads out of it"),
        (archive(MLP, {"/etc/passwd": b"x"}), "leads out of it"),
        (archive(MLP, {"C:/passwd": b"x"}), "leads out of it"),
        (archive([1]), "must be an object"),
        (archive({**MLP, "schema_version": {"major": 9}}), "schema version 9"),
        (archive({**MLP, "schema_version": None}), "schema version"),
        (archive(None, {"m/models/model.json": b"{" * 100_000}), "models/model.json"),
        (archive({**MLP, "graph_module": {}}), "malformed: missing 'graph'"),
    ],
    ids=lambda one: one if isinstance(one, str) else "file",  # an archive holds the time that it was made at
)
def test_broken_files(data: bytes, words: str) -> None:
    """One line with the place; nothing is unpacked but the program."""
    assert looks_like_archive(data)
    with pytest.raises(InputError) as caught:
        read(data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_unpack_to_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds whatever the archive says of its sizes."""
    monkeypatch.setattr("mtpp.formats.torch_export.archive.LARGEST_TEXT_BYTES", 1 << 20)
    with pytest.raises(InputError, match="unpacks to more than 1 GiB"):
        read(archive(None, {"m/models/model.json": b" " * (1 << 21)}))


def test_sizes_that_are_known_beforehand_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that says itself that it is too large is not read at all."""
    monkeypatch.setattr("mtpp.formats.torch_export.archive.LARGEST_TEXT_BYTES", 1 << 20)
    monkeypatch.setattr("zipfile.ZipExtFile.read", lambda self, count=-1: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match="unpacks to more than 1 GiB"):
        read(archive(None, {"m/models/model.json": b" " * (1 << 21)}))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_bytes_that_are_not_what_they_were(method: int) -> None:
    """A damaged archive is read or refused in one line, whatever is damaged: contents or the list of files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as zipped:
        zipped.writestr("m/models/model.json", json.dumps(MLP))
        zipped.writestr("m/data/weights/model_weights_config.json", b'{"config": {}}')
    whole, refused = written.getvalue(), []
    for seed in range(300):
        rng = Random(seed)
        data = bytearray(whole)
        first = len(data) - 300 if seed % 2 else 4
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(first, len(data))] = rng.randrange(256)
        try:
            read(bytes(data))
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert not any("\n" in text for text in refused)


def _mutated(rng: Random, value: Any) -> Any:
    """Return a document with something else at one place."""
    wrong = (None, -1, 2**70, "x", [], {}, True, [None], {"as_int": -3}, 0.5)
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: _mutated(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], _mutated(rng, value[place]), *value[place + 1 :]]
    return rng.choice(wrong)


def _refusal(data: bytes, dims: dict[str, int]) -> str | None:
    """Return why a file is refused, None if it is read."""
    try:
        read(data, dims=dims, spare_dims=True)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("document", [MLP, SYMBOLIC], ids=["mlp", "symbolic"])
def test_no_document_crashes_the_reader(document: Any) -> None:
    """A thousand documents with something wrong are read, or refused in one line."""
    rng = Random(7)
    dims = {"s7": 4, "u0": 3} if document is SYMBOLIC else {}
    texts = [_refusal(archive(_mutated(rng, document)), dims) for _ in range(1000)]
    assert sum(text is not None for text in texts) > 200
    assert not any("\n" in text for text in texts if text is not None)


def test_no_byte_crashes_the_reader() -> None:
    """Nor do files with changed bytes."""
    rng, whole = Random(8), archive(MLP)
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        assert "\n" not in (_refusal(bytes(data), {}) or "")


def test_the_text_may_lie_without_a_folder() -> None:
    """As some packers write it."""
    assert read(archive(MLP, root="")).graph.op_count == 2
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as zipped:
        zipped.writestr("a/models/model.json", json.dumps(MLP))
    assert read(written.getvalue()).graph.op_count == 2
