"""Bad input of every kind: exit code 2, one line that says where and what, and nothing written."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx_text import built
from processes import refused, run

BAD = Path(__file__).resolve().parent / "data" / "bad"
TRAINED = BAD.with_name("bad_training")
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

FILES = {
    "cycle.json": ("/tensors", "a -> b -> a"),
    "duplicate-op.json": ("/ops/1/name", "duplicate name 'a'"),
    "duplicate-tensor.json": ("/tensors/1/name", "duplicate name 't'"),
    "duplicate-consumer.json": ("/tensors/0/consumers/1", "duplicate consumer 'b'"),
    "self-loop.json": ("/tensors/0/consumers/1", "self-loop"),
    "dangling-producer.json": ("/tensors/0/producer", "no op is called 'z'"),
    "dangling-consumer.json": ("/tensors/0/consumers/0", "no op is called 'z'"),
    "negative-work.json": ("/ops/1/work", "negative"),
    "negative-bytes.json": ("/tensors/0/bytes", "at least 0"),
    "negative-parameters.json": ("/ops/0/param_bytes", "at least 0"),
    "fractional-bytes.json": ("/tensors/0/bytes", "whole number"),
    "work-is-a-string.json": ("/ops/1/work", "number"),
    "work-is-true.json": ("/ops/1/work", "number"),
    "work-is-null.json": ("/ops/1/work", "number"),
    "name-is-a-number.json": ("/ops/1/name", "string"),
    "empty-name.json": ("/ops/1/name", "empty name"),
    "unknown-key.json": ("/ops/1", "unknown key 'flops'"),
    "unknown-top-level-key.json": ("unknown key 'comment'",),
    "missing-work.json": ("/ops/1", "missing key 'work'"),
    "missing-tensors.json": ("missing key 'tensors'",),
    "tensor-without-cost.json": ("/tensors/0", "bytes or transfer"),
    "wrong-version.json": ("/version", "version 1"),
    "wrong-format.json": ("/format", "some-graph", "mtpp-graph"),
    "wrong-time-unit.json": ("/time_unit", "ps, ns, us, ms, s, 1"),
    "bytes-in-abstract-graph.json": ("/tensors/0", "give transfer"),
    "no-ops.json": ("/ops", "no ops"),
    "ops-is-an-object.json": ("/ops", "array"),
    "too-large.json": ("/ops/1/work", "2^62"),
    "not-a-number.json": ("/ops/1/work", "NaN"),
    "infinity.json": ("/ops/1/work", "Infinity"),
    "float-overflow.json": ("/ops/1/work", "1e500", "out of range"),
    "duplicate-key.json": ("/ops/1/work", "duplicate key 'work'"),
    "syntax.json": ("line 1, column", "not valid JSON"),
    "truncated.json": ("truncated.json",),
    "latin-1.json": ("UTF-8",),
    "empty.json": ("empty",),
    "blank.json": ("blank.json",),
    "list.json": ("list.json",),
    "undirected.nodelink": ("directed",),
    "edge-to-nowhere.nodelink": ("/edges/0/target", "'z'"),
    "entities.graphml": ("line 2", "a document type"),
    "syntax.graphml": ("line 3, column 16", "no well-formed XML"),
    "edge-to-nowhere.graphml": ("line 3, target", "'z'"),
    "not-onnx.onnx": ("not an ONNX model",),
}
"""Broken graph → what the message has to hold besides the file's name."""

MODELS = {
    "piper-no-configurations.json": ("/nodes/1/TMPCs", "'b' has no configuration"),
    "piper-empty-configurations.json": ("/nodes/1/TMPCs", "'b' has no configuration"),
    "piper-missing-configurations.json": ("/nodes/1", "missing key 'TMPCs'"),
    "piper-degree-zero.json": ("/nodes/1/TMPCs/0", "at least 1"),
    "piper-degree-negative.json": ("/nodes/1/TMPCs/-1", "at least 1"),
    "piper-degree-word.json": ("/nodes/1/TMPCs/two", "'two' is not a degree of tensor parallelism"),
    "piper-degree-fraction.json": ("/nodes/1/TMPCs/1.5", "'1.5' is not a degree of tensor parallelism"),
    "piper-degree-padded.json": ("/nodes/1/TMPCs/01", "'01' is not a degree of tensor parallelism"),
    "piper-memory-of-zero.json": ("/maxMemoryPerDevice", "above zero"),
    "piper-bandwidth-of-zero.json": ("/bandwidth", "above zero"),
    "piper-cycle.json": ("/edges/0", "a cycle: a -> b -> a"),
    "piper-edge-to-nowhere.json": ("/edges/0/destId", "no node has the id 3"),
    "piper-duplicate-edge.json": ("/edges/1", "duplicate edge", "first at /edges/0"),
    "piper-duplicate-id.json": ("/nodes/1/id", "duplicate id 1", "/nodes/0"),
    "piper-sync-without-edge.json": ("/nodes/1/TMPCs/1/0/syncTimeBw/1", "an edge that does not exist"),
    "piper-sync-with-nobody.json": ("/nodes/1/TMPCs/1/0/syncTimeFw/9", "no node has the id 9"),
    "piper-sync-missing.json": ("/nodes/1/TMPCs/2/0/syncTimeFw", "no cost of synchronisation", "the edge from 1"),
    "piper-no-memory.json": ("/nodes/1/TMPCs/1/0", "missing key 'memoryUsageA'"),
    "piper-negative-time.json": ("/nodes/1/TMPCs/1/0/timePerSample", "negative"),
    "piper-huge-time.json": ("/nodes/1/TMPCs/1/0/timePerSample", "2^62"),
    "piper-text-for-a-time.json": ("/nodes/1/TMPCs/1/0/timePerSample", "must be a number"),
    "piper-not-a-number.json": ("/nodes/1/TMPCs/1/0/timePerSample", "NaN"),
    "native-no-configurations.json": ("/layers/1/configurations", "'b' has no configuration"),
    "native-degree-zero.json": ("/layers/1/configurations/0", "at least 1"),
    "native-degree-word.json": ("/layers/1/configurations/two", "'two' is not a degree of tensor parallelism"),
    "native-memory-of-zero.json": ("/defaults/memory_bytes", "at least 1"),
    "native-cycle.json": ("/edges/0", "a cycle: a -> b -> a"),
    "native-edge-to-nowhere.json": ("/edges/0", "no layer 'c'"),
    "native-duplicate-edge.json": ("/edges/1", "duplicate edge", "first at /edges/0"),
    "native-duplicate-layer.json": ("/layers/1", "duplicate", "'a'"),
    "native-sync-without-edge.json": ("/layers/1/configurations/1/0/sync_out/a", "an edge that does not exist"),
    "native-sync-missing.json": ("/layers/1/configurations/2/0/sync_in", "no cost of synchronisation", "from 'a'"),
    "native-unknown-key.json": ("/layers/1/configurations/1/0", "unknown key 'memory'", "memory_bytes"),
    "native-missing-key.json": ("/layers/1/configurations/1/0", "missing key 'memory_bytes'"),
    "native-wrong-version.json": ("/version", "version 1"),
    "native-abstract-times.json": ("/time_unit", "'1'", "ps, ns, us, ms, s"),
    "native-no-layers.json": ("/layers", "no layers"),
    "native-size-zero.json": ("/layers/0/configurations/1/0/micro_batches/0", "at least 1"),
    "native-size-word.json": ("/layers/0/configurations/1/0/micro_batches/two", "'two' is not a number of samples"),
    "native-size-of-model-zero.json": ("/micro_batch_size", "at least 1"),
    "native-size-of-model-missing.json": ("/layers/0/configurations/1/0/micro_batches", "add micro_batch_size"),
    "native-size-without-forward.json": ("/layers/0/configurations/1/0/micro_batches/2", "missing key 'forward'"),
    "native-size-negative-backward.json": ("/layers/0/configurations/1/0/micro_batches/2/backward", "negative"),
    "native-size-other-time.json": ("/layers/0/configurations/1/0/micro_batches/2", "add up to 3.5", "must be", "3"),
    "a-graph.json": ("a graph, which the planner pfeife takes", "--planner pfeife --devices 4"),
    "a-plan.json": ("/format", "a training plan", "mtpp-training-model"),
    "a-list.json": ("not a model to be trained", "mtpp-training-model"),
    "truncated.json": ("line 1, column", "not valid JSON"),
}
"""Broken model to be trained → what the message has to hold besides the file's name."""

SYSTEMS = {
    "bare-number.toml": ("bandwidth", "no unit"),
    "unknown-key.toml": ("colour", "unknown key"),
    "missing-key.toml": ("memory_bandwidth", "missing key"),
    "syntax.toml": ("not a TOML file",),
}

OPTIONS = [
    (("-k", "0"), ("-k", "0 is not in the range")),
    (("-k", "-3"), ("-k",)),
    (("-k", "many"), ("-k", "'many'")),
    ((), ("-k", "--max-bottleneck")),
    (("-k", "2", "--max-bottleneck", "1ms"), ("-k", "--max-bottleneck")),
    (("--max-bottleneck", "5"), ("--max-bottleneck", "no unit", "1.5ms")),
    (("-k", "2", "--bandwidth", "25"), ("--bandwidth", "no unit", "25GB/s")),
    (("-k", "2", "--bandwidth", "0GB/s"), ("--bandwidth", "above zero")),
    (("-k", "2", "--bandwidth", "25GX/s"), ("--bandwidth", "unknown unit", "25GB/s")),
    (("-k", "2", "--fast-memory", "24"), ("--fast-memory", "no unit", "24MiB")),
    (("-k", "2", "--fast-memory", "-1MiB"), ("--fast-memory", "at least zero")),
    (("-k", "2", "--fast-memory", "1MiB", "--activation-reserve", "2MiB"), ("reserve", "above the fast memory")),
    (("-k", "2", "--stage-memory", "24"), ("--stage-memory", "no unit", "24MiB")),
    (("-k", "2", "--stage-memory", "1MiB", "--activation-reserve", "2MiB"), ("reserve", "above the stage memory")),
    (("-k", "2", "--peak", "most"), ("--peak", "'most'", "reserve", "order")),
    (("-k", "2", "--system", "no-such-machine"), ("--system", "no-such-machine", "`mtpp systems` lists the presets")),
    (("-k", "2", "--algorithm", "magic"), ("--algorithm", "'magic'", "auto, downset, anneal, brkga")),
    (("-k", "2", "--dim", "batch=1"), ("--dim", "ONNX")),
    (("-k", "2", "--dim", "batch=0"), ("--dim", "batch=0", "above zero")),
    (("-k", "2", "--dim", "batch"), ("--dim", "'batch'", "batch=1")),
    (("-k", "2", "--time-limit", "-1"), ("--time-limit",)),
    (("-k", "2", "--time-limit", "nan"), ("--time-limit", "finite")),
    (("-k", "2", "--require-ratio", "nan"), ("--require-ratio", "finite")),
    (("-k", "2", "--dim", "batch=" + "9" * 5000), ("--dim", "too large")),
    (("-k", "2", "--work-limit", "0"), ("--work-limit",)),
    (("-k", "2", "--jobs", "0"), ("--jobs",)),
    (("-k", "2", "--seed", "-1"), ("--seed",)),
    (("-k", "2", "--together", "a"), ("--together", "fewer than two")),
    (("-k", "2", "--together", "a,z"), ("--together", "'z'", "mtpp inspect --ops")),
    (("-k", "2", "--require-ratio", "0.5"), ("--require-ratio",)),
    (("-k", "2", "--from", "gexf"), ("--from", "gexf", "onnx")),
    (("-k", "2", "--time-unit", "fortnight"), ("--time-unit", "'fortnight'", "ps, ns, us, ms, s")),
    (("-k", "2", "--time-unit", "s"), ("--time-unit", "no effect", "good.json")),
    (("-k", "2", "--format", "yaml"), ("--format", "json")),
    (("-k", "2", "--max-input-size", "10B"), ("good.json", "--max-input-size")),
    (("-k", "2", "--max-input-size", "big"), ("--max-input-size", "'big'")),
]

PLANS = [
    (("--devices", "0"), ("--devices", "0")),
    (("--devices", "two"), ("--devices", "'two'")),
    (("--memory", "0GB"), ("--memory", "above zero")),
    (("--memory", "8"), ("--memory", "no unit", "24MiB")),
    (("--bandwidth", "0GB/s"), ("--bandwidth", "above zero")),
    (("--bandwidth", "25GiB/h"), ("--bandwidth", "unknown unit 'GiB/h'")),
    (("--max-micro-batches", "0"), ("--max-micro-batches", "0")),
    (("--time-unit", "h"), ("--time-unit", "'h'", "ps, ns, us, ms, s")),
    (("--time-unit", "ms"), ("--time-unit", "no effect", "good.json")),
]

LAYER = (
    '{"name": "a", "configurations": {"1": [{"id": "plain", "time": 1, "parameter_bytes": 2, '
    '"memory_bytes_per_micro_batch": 3, "memory_bytes": 4}]}}'
)

ASKED = ("--devices", "2", "--memory", "1GB", "--bandwidth", "1GB/s", "--max-micro-batches", "4")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Return a graph that nothing is wrong with."""
    path = tmp_path / "good.json"
    ops = [{"name": "a", "work": 1, "param_bytes": 8}, {"name": "b", "work": 2}]
    tensors = [{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 8}]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ms", "ops": ops, "tensors": tensors}
    path.write_text(json.dumps(graph))
    return path


def _refused(
    tmp_path: Path, words: tuple[str, ...], *arguments: str | Path, output: bool = True, stdin: bytes = b""
) -> None:
    """Run a command that has to fail, and hold its message against the rules."""
    target = tmp_path / "out.json"
    said = refused(*arguments, *(("-o", target) if output else ()), stdin=stdin)
    for word in words:
        assert word in said
    assert not target.exists()


def test_every_broken_file_is_listed() -> None:
    """The folders and the tables above agree."""
    assert {path.name for path in BAD.iterdir()} == {*FILES, *SYSTEMS}
    assert {path.name for path in TRAINED.iterdir()} == set(MODELS)


@pytest.mark.parametrize("name", sorted(FILES))
def test_broken_files(name: str, tmp_path: Path) -> None:
    """The message names the file, the place and the fault."""
    _refused(tmp_path, (name, *FILES[name]), "inspect", BAD / name, output=False)


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_broken_systems(name: str, tmp_path: Path, good: Path) -> None:
    """The message names --system, its file and the key."""
    words = ("--system", name, *SYSTEMS[name])
    _refused(tmp_path, words, "partition", good, "-k", "2", "--system", BAD / name)


@pytest.mark.parametrize(("arguments", "words"), OPTIONS, ids=[" ".join(arguments)[:60] for arguments, _ in OPTIONS])
def test_broken_options(arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path, good: Path) -> None:
    """The message names the option and what it takes."""
    _refused(tmp_path, words, "partition", good, *arguments)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_broken_models_to_be_trained(name: str, tmp_path: Path) -> None:
    """The message names the file, the place in it and the fault."""
    unit = () if name.startswith("native") else ("--time-unit", "s")
    _refused(tmp_path, (f"bad_training/{name}: ", *MODELS[name]), "plan", TRAINED / name, *ASKED, *unit)


@pytest.mark.parametrize(("changes", "words"), PLANS, ids=[" ".join(changes) for changes, _ in PLANS])
def test_broken_options_of_plans(changes: tuple[str, str], words: tuple[str, ...], tmp_path: Path) -> None:
    """The message names the option and what it takes."""
    good = tmp_path / "good.json"
    good.write_text((TRAINED / "native-no-layers.json").read_text().replace('"layers": []', f'"layers": [{LAYER}]'))
    _refused(tmp_path, words, "plan", good, *ASKED, *changes)


def test_a_piper_file_needs_a_unit_of_time(tmp_path: Path) -> None:
    """It is asked for before anything that depends on it is judged."""
    words = ("piper-huge-time.json: /nodes: ", "what unit its times are in", "--time-unit s, ms, us or ns")
    _refused(tmp_path, words, "plan", TRAINED / "piper-huge-time.json", *ASKED)


def test_broken_standard_input(tmp_path: Path) -> None:
    """The message calls it so."""
    words = ("error: <stdin>: /edges/0: the layers make a cycle: a -> b -> a; ",)
    _refused(tmp_path, words, "plan", "-", *ASKED, stdin=(TRAINED / "native-cycle.json").read_bytes())


def _truncated_onnx(folder: Path) -> Path:
    path = folder / "truncated.onnx"
    path.write_bytes((LIGHT / "light_resnet50.onnx").read_bytes()[:40_000])
    return path


def _symbolic_onnx(folder: Path) -> Path:
    path = folder / "symbolic.onnx"
    path.write_bytes(built("y = Relu(x)", {"x": ["batch", 3]}, {"y": None}).SerializeToString())
    return path


def _made(name: str, text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_text(text)
        return path

    make.__name__ = f"_{name}"
    return make


_PROFILE = "a -- ReLU() -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n"


def _nested(folder: Path) -> Path:
    path = folder / "nested.json"
    path.write_bytes(b"[" * 10**7)
    return path


def _huge_integer(folder: Path) -> Path:
    path = folder / "digits.json"
    path.write_text('{"format": "mtpp-graph", "version": ' + "9" * 5000 + "}")
    return path


def _bomb(folder: Path) -> Path:
    path = folder / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b" " * 2**20)
    return path


def _cut_gzip(folder: Path) -> Path:
    path = folder / "cut.json.gz"
    path.write_bytes(gzip.compress(b'{"format": "mtpp-graph"}' * 100)[:-12])
    return path


def _link_loop(folder: Path) -> Path:
    path = folder / "loop.json"
    path.symlink_to(path)
    return path


def _missing(folder: Path) -> Path:
    return folder / "missing.json"


def _folder(folder: Path) -> Path:
    return folder


MADE: list[tuple[Callable[[Path], Path], tuple[str, ...], tuple[str, ...]]] = [
    (_truncated_onnx, (), ("truncated.onnx", "truncated")),
    (_symbolic_onnx, ("--dim", "nosuch=1"), ("symbolic.onnx", "'nosuch'", "batch")),
    (_nested, (), ("nested.json", "nested")),
    (_huge_integer, (), ("digits.json", "/version")),
    (_bomb, ("--max-input-size", "10MB"), ("bomb.json.gz", "--max-input-size")),
    (_cut_gzip, (), ("cut.json.gz", "gzip")),
    (_link_loop, (), ("loop.json", "cannot be read")),
    (_made("graph.txt", f"{_PROFILE}{_PROFILE}"), (), ("graph.txt", "line 2", "duplicate node 'a'")),
    (_made("cut.txt", f"{_PROFILE}b -- ReLU() -- forw"), (), ("cut.txt", "line 2", "'forw'")),
    (_made("cut.pbtxt", "node {\n  name: 'a"), (), ("cut.pbtxt", "line 2", "a string without an end")),
    (
        _made("piper.json", '{"nodes": [{"id": 1, "TMPCs": {"1": [{"timePerSample": 1}]}}], "edges": []}'),
        (),
        ("piper.json", "/nodes/0/TMPCs/1/0", "'parameterSize'"),
    ),
    (
        _made("workload.json", '{"nodes": [{"id": 1, "fpgaLatency": 1e400}], "edges": []}'),
        (),
        ("workload.json",),
    ),
    (
        _made("workload.json", '{"nodes": [{"id": 1, "fpgaLatency": 1}], "edges": []}'),
        ("--loading-time",),
        ("--loading-time", "no effect", "workload.json"),
    ),
    (_missing, (), ("missing.json", "no such file")),
    (_folder, (), ("folder without a model", "one .onnx or .pt2")),
]


@pytest.mark.parametrize(("make", "arguments", "words"), MADE, ids=[f"{m.__name__}{' '.join(a)}" for m, a, _ in MADE])
def test_broken_files_made_here(
    make: Callable[[Path], Path], arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    """Files too large or too odd to keep in a repository."""
    _refused(tmp_path, words, "inspect", make(tmp_path), *arguments, output=False)


def test_outputs_that_cannot_be_written(tmp_path: Path, good: Path) -> None:
    """A missing folder and a folder in place of a file are noticed before the search."""
    for target, word in ((tmp_path / "no" / "plan.json", "no directory"), (tmp_path, "is a directory")):
        _refused(tmp_path, (str(target), word), "partition", good, "-k", "2", "-o", target, output=False)
    _refused(tmp_path, ("'.xyz'", "--to"), "convert", good, tmp_path / "graph.xyz", output=False)
    assert sorted(os.listdir(tmp_path)) == ["good.json"]


def test_plans_and_graphs_are_not_confused(tmp_path: Path, good: Path) -> None:
    """A plan where a graph belongs, and the other way round, is recognised as what it is."""
    plan = tmp_path / "plan.json"
    assert run("partition", good, "-k", "2", "-q", "-o", plan).returncode == 0
    _refused(tmp_path, ("plan.json", "a plan, not a graph"), "partition", plan, "-k", "2")
    _refused(tmp_path, ("good.json", "a graph, not a plan"), "verify", good, output=False)
    good.rename(tmp_path / "elsewhere.json")
    _refused(tmp_path, ("plan.json", "--model"), "verify", plan, output=False)


def test_a_fast_memory_on_an_abstract_graph(tmp_path: Path) -> None:
    """Overflow is a time: the graph needs a unit."""
    path = tmp_path / "abstract.json"
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "1", "ops": [{"name": "a", "work": 1}]}
    path.write_text(json.dumps({**graph, "tensors": []}))
    words = ("abstract.json", "/time_unit", "--fast-memory")
    _refused(tmp_path, words, "partition", path, "-k", "2", "--fast-memory", "1MiB")
