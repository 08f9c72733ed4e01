"""No command writes over its inputs: every output option against every input, along every way to one file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from checkpoint_files import write_safetensors
from graph_strategies import chain
from language_models import LLAMA, llama_tensors
from onnx import TensorProto, numpy_helper
from onnx_text import built
from processes import MTPP, ROOT, environment, printed, run

from mtpp.api.options.path_kinds import InputPath, OutputPath
from mtpp.cli.main import root
from mtpp.cli.options.file_types import FileType
from mtpp.errors import InputError
from mtpp.formats.graphs.native import write_native

NO_FILES = {
    *(
        "--title",
        "-k",
        "--max-bottleneck",
        "--max-latency",
        "--algorithm",
        "--algorithms",
        "--together",
        "--memory-limit",
        "--proof-limit",
        "--bandwidth",
        "--cuts",
        "--keep-state",
        "--layout",
        "--utilization",
        "--tensor-link",
        "--layouts",
    ),
    *(
        "--fast-memory",
        "--activation-reserve",
        "--stage-memory",
        "--dim",
        "--trips",
        "--from",
        "--to",
        "--time-unit",
        "--memory",
    ),
    *(
        "--max-input-size",
        "--sweep",
        "--sums",
        "--bounds",
        "--scheduler",
        "--emit",
        "--import",
        "-n",
        "--skips",
        "--leaves",
        "--trips",
    ),
    *("--micro-batch-sizes", "--kfkb", "--latency", "--loops", "--prefetch", "--backward-ratio", "--state", "--speed"),
    *("--context", "name"),
    *("--fan-in", "--branches", "--length", "--blocks", "--cross-links", "--layers", "--sequence", "--for"),
}
"""Options that take text and name no file; a new one belongs here or gets one of :mod:`mtpp.cli.options.file_types`."""

NEEDED = {"k": ["-k", "2"]}
WAYS = ("direct", "around", "symbolic link", "hard link")


def _leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, (*path, name))


COMMANDS = dict(_leaves(root))


def _of_type(command: click.Command, kind: type[InputPath | OutputPath]) -> list[click.Parameter]:
    return [param for param in command.params if isinstance(getattr(param.type, "kind", None), kind)]


PAIRS = [
    pytest.param(words, source, target, id=f"{' '.join(words)}: {target.name} over {source.name}")
    for words, command in COMMANDS.items()
    for target in _of_type(command, OutputPath)
    for source in _of_type(command, InputPath)
]


def _arguments(words: Sequence[str], given: dict[str, str], folder: Path) -> list[str]:
    """Return a command line with the parameters *given* by name, and others only where they are required."""
    options, arguments = [], []
    for param in COMMANDS[tuple(words)].params:
        value = given.get(param.name or "")
        if isinstance(param, click.Argument):
            arguments.append(value if value is not None else str(folder / f"other-{param.name}"))
        elif value is not None:
            options += [param.opts[-1], value]
        elif param.required:
            options += NEEDED[param.name or ""]
    return [*words, *options, "--", *arguments]


def _refused(arguments: list[str]) -> str:
    with pytest.raises(InputError) as caught:
        root.main(arguments, prog_name="mtpp", standalone_mode=False)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_parameter_with_text_says_whether_it_is_a_file() -> None:
    """What takes a file without saying so could be written over: a new option has to choose."""
    for words, command in COMMANDS.items():
        for param in command.params:
            assert not isinstance(param.type, click.File | click.Path), (words, param.name)
            if isinstance(param.type, click.types.StringParamType):
                assert param.opts[0] in NO_FILES, (words, param.name)
            if (param.metavar or "").startswith(("FILE", "FOLDER", "PATH", "MODEL")):  # type: ignore[attr-defined]
                assert isinstance(param.type, FileType), (words, param.name)


def _path_to(file: Path, way: str, folder: Path) -> Path:
    """Return another path to a file."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    if way == "around":
        return Path(os.path.relpath(elsewhere)) / ".." / file.relative_to(folder)
    if way == "direct":
        return file
    other = elsewhere / f"{file.stem}-link{file.suffix}"
    if way == "hard link":
        os.link(file, other)
    else:
        other.symlink_to(file)
    return other


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("words", "source", "target"), PAIRS)
def test_an_output_is_no_input(
    words: tuple[str, ...], source: click.Parameter, target: click.Parameter, way: str, tmp_path: Path
) -> None:
    """Refused before any work with one line and exit code 2, and what is there stays."""
    kind = getattr(target.type, "kind", None)
    assert isinstance(kind, OutputPath)
    place = tmp_path / "inputs"
    place.mkdir()
    file = place / "input.json"
    file.write_text("what must stay")
    given = {source.name or "": str(file)}
    if kind.folder and way == "hard link":
        (place / "split").mkdir()
        os.link(file, place / "split" / "stage-0.onnx")
        given[target.name or ""] = str(place / "split")
    else:
        given[target.name or ""] = str(_path_to(place if kind.folder else file, way, tmp_path))
    before = _contents(tmp_path)
    assert "too; name another file" in _refused(_arguments(words, given, tmp_path))
    assert _contents(tmp_path) == before


@pytest.mark.parametrize("way", WAYS[:3])
@pytest.mark.parametrize(("words", "source", "target"), PAIRS)
def test_an_output_that_is_no_file_yet_is_no_input(
    words: tuple[str, ...], source: click.Parameter, target: click.Parameter, way: str, tmp_path: Path
) -> None:
    """Paths are compared even where they lead to nothing."""
    file = tmp_path / "missing.json"
    given = {source.name or "": str(file), target.name or "": str(_path_to(file, way, tmp_path))}
    assert "too; name another file" in _refused(_arguments(words, given, tmp_path))
    assert not file.exists()


@pytest.mark.parametrize("exists", [True, False])
def test_two_outputs_are_two_files(exists: bool, tmp_path: Path) -> None:
    """Of each command, files beside those that are named included."""
    for words, command in COMMANDS.items():
        outputs = [param.name or "" for param in _of_type(command, OutputPath)]
        for first in outputs:
            for second in outputs:
                if first < second:
                    file, link = tmp_path / "out", tmp_path / "link"
                    link.unlink(missing_ok=True)
                    link.symlink_to(file)
                    if exists:
                        file.write_text("{}")
                    assert "is the file of --" in _refused(
                        _arguments(words, {first: str(file), second: str(link)}, tmp_path)
                    )
    beside = {"plot": str(tmp_path / "a.png"), "output": str(tmp_path / "a.csv")}
    assert "a.csv is the file of --output too" in _refused(_arguments(("certify",), beside, tmp_path))
    beside = {"store": str(tmp_path / "a.db"), "output": str(tmp_path / "a.db-wal")}
    assert "a.db-wal is the file of --output too" in _refused(_arguments(("certify",), beside, tmp_path))


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _model_with_weights(folder: Path) -> Path:
    """Write a model of two products whose weights lie in ``data/weights.bin``."""
    (folder / "data").mkdir(parents=True)
    weights = []
    for i in range(2):
        tensor = numpy_helper.from_array(np.full((4, 4), 0.5, np.float32), f"w{i}")
        raw = tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "data/weights.bin"), ("offset", str(64 * i)), ("length", "64")):
            tensor.external_data.add(key=key, value=value)
        with (folder / "data" / "weights.bin").open("ab") as file:
            file.write(raw)
        weights.append(tensor)
    model = built(
        "[m0] x1 = MatMul(x0, w0) [m1] x2 = MatMul(x1, w1)", {"x0": [1, 4]}, {"x2": [1, 4]}, stored=weights, opset=17
    )
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


def _in_one_line(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for part in parts:
        assert part in done.stderr


@pytest.mark.parametrize("command", ["partition", "profile", "evaluate", "compare", "bound", "certify", "convert"])
@pytest.mark.slow
def test_weights_beside_a_model_are_part_of_it(command: str, tmp_path: Path) -> None:
    """A result must not take their place, by their own name or by another."""
    model = _model_with_weights(tmp_path)
    link = tmp_path / "link.json"
    os.link(tmp_path / "data" / "weights.bin", link)
    options = {"evaluate": ["--cuts", "m0"], "profile": [], "convert": ["--to", "native"]}.get(command, ["-k", "2"])
    before = _contents(tmp_path)
    for target in (tmp_path / "data" / "weights.bin", link):
        output = [str(target)] if command == "convert" else ["-o", str(target)]
        _in_one_line(run(command, model, *output, *options), "is a file of weights of")
    assert _contents(tmp_path) == before


SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


@pytest.mark.parametrize(
    "model", [".", "config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"]
)
@pytest.mark.parametrize("target", ["config.json", "model.safetensors.index.json", "model-00002-of-00002.safetensors"])
def test_files_of_a_language_model_stay(model: str, target: str, tmp_path: Path) -> None:
    """Whichever of them names the model, and the file of a layout that is audited."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    tensors = llama_tensors()
    names = list(tensors)
    shards = {shard: names[i::2] for i, shard in enumerate(SHARDS)}
    for shard, own in shards.items():
        write_safetensors(folder / shard, {name: tensors[name] for name in own})
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {name: shard for shard, own in shards.items() for name in own}})
    )
    (folder / "config.json").write_text(json.dumps(LLAMA))
    before = _contents(tmp_path)
    arguments = ["partition", str(folder / model), "-k", "2", "-o", str(folder / target)]
    assert "too; name another file" in _refused(arguments)
    assert _contents(tmp_path) == before
    layout = tmp_path / "map.json"
    layout.write_text(json.dumps({"model": 0, "lm_head": 0}))
    assert "is the layout too" in _refused(
        ["evaluate", str(folder), "--layout", f"accelerate={layout}", "-k", "1", "-o", str(layout)]
    )


def test_a_folder_of_stages_keeps_its_model_plan_and_weights(tmp_path: Path) -> None:
    """``split --force`` replaces all that is in the folder, so none of its inputs may lie there."""
    model = _model_with_weights(tmp_path / "a")
    plan, stages = tmp_path / "plan.json", tmp_path / "stages"
    assert run("partition", model, "-k", "2", "-q", "-o", plan).returncode == 0
    assert run("split", model, plan, "-o", stages).returncode == 0
    again = next(stages.glob("stage-*.onnx"))
    before = _contents(tmp_path)
    _in_one_line(run("split", again, plan, "-o", stages, "--force"), "stages is the folder of a model too")
    os.link(plan, stages / "weights-7.bin")
    _in_one_line(run("split", model, plan, "-o", stages, "--force"), "is the folder of an assignment too")
    (stages / "weights-7.bin").unlink()
    _in_one_line(run("split", model, plan, "-o", tmp_path / "a" / "data", "--force"), "is the folder of weights of")
    for target in (again, stages / "manifest.json", *stages.glob("weights-*.bin")):
        _in_one_line(run("run", stages, "-o", target), "is a file of")
    assert _contents(tmp_path) == before
    assert run("split", model, plan, "-o", stages, "--force").returncode == 0


def test_results_may_lie_among_models(chain_file: Path, tmp_path: Path) -> None:
    """A folder of models keeps them and the results of earlier runs, which the next one replaces."""
    models = tmp_path / "models"
    models.mkdir()
    model = models / "chain.json"
    model.write_bytes(chain_file.read_bytes())
    before = model.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(model)
    for target in (model, link):
        _in_one_line(run("certify", models, "-k", "2", "-o", target), f"{target} is a model of {models} too")
    for name in ("table.json", "table.json.gz"):
        for _ in range(2):
            printed("certify", models, "-k", "2", "-q", "-o", models / name, "--store", models / "rows.db", stderr="")
    assert model.read_bytes() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_store_is_no_model(way: str, chain_file: Path, tmp_path: Path) -> None:
    """Neither a model, nor what is no store at all; and what is there stays."""
    before = chain_file.read_bytes()
    folder = chain_file.parent
    _in_one_line(run("certify", chain_file, "-k", "2", "--store", _path_to(chain_file, way, folder)), "is a model too")
    other = tmp_path / "notes.txt"
    other.write_text("notes")
    _in_one_line(run("certify", chain_file, "-k", "2", "--store", other), "notes.txt: is not a store")
    assert (chain_file.read_bytes(), other.read_text()) == (before, "notes")
    assert sorted(path.name for path in tmp_path.glob("*-wal")) == []


@pytest.mark.skipif(os.name != "posix", reason="shell redirections")
def test_standard_streams(chain_file: Path) -> None:
    """Standard input counts as the file it was taken from; pipes and devices may be given as often as one likes."""

    def shell(line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", line, "sh", *MTPP, *map(str, arguments)]
        return subprocess.run(
            command, cwd=ROOT, env={**environment(), "F": str(chain_file)}, capture_output=True, text=True
        )

    before = chain_file.read_bytes()
    _in_one_line(shell('"$@" < "$F"', "partition", "-", "-k", "2", "-o", chain_file), "is a model too")
    assert chain_file.read_bytes() == before
    piped = shell('cat "$F" | "$@" | cat', "convert", "/dev/stdin", "/dev/stdout")
    assert (piped.stderr, json.loads(piped.stdout)["format"]) == ("", "mtpp-graph")
    assert shell('"$@"', "partition", chain_file, "-k", "2", "-q", "-o", "/dev/null").returncode == 0


def test_names_that_are_no_files(tmp_path: Path) -> None:
    """A preset and an algorithm are no files, even if there are files of their names."""
    model = tmp_path / "model.json"
    model.write_text(write_native(chain([1, 2, 3, 4], [1, 1, 1], "ms")))
    for command in (
        ["partition", model, "-k", "2", "--system", "a100", "-o", "a100"],
        ["evaluate", model, "--cuts", "op1", "--against", "slice", "-o", "slice"],
    ):
        for _ in range(2):
            assert run(*command, "-q", cwd=tmp_path).returncode == 0
        assert json.loads((tmp_path / str(command[-1])).read_text())["format"] == "mtpp-plan"
