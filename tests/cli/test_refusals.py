"""Command lines that are refused: exit code 2, one line that says what is wrong, and nothing printed or written."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import onnx
import pytest
from graph_strategies import chain
from processes import ROOT, refused, run
from profiled_models import chain as open_chain
from stage_folders import bypass

from mtpp.formats.graphs.native import write_native

TEXTS = {
    "assignment.json": json.dumps({"op0": 0, "op1": 0, "op2": 1, "op3": 2}),
    "list.json": "[1]",
    "graph-head.json": '{"format": "mtpp-graph", "version": 1}',
    "plan-head.json": '{"format": "mtpp-plan", "version": 1}',
    "comparison-head.json": '{"format": "mtpp-comparison"}',
    "simulation-3.json": '{"format": "mtpp-simulation", "version": 3}',
    "simulation-head.json": '{"format": "mtpp-simulation", "version": 1, "name": 5}',
    "table-2.json": '{"format": "mtpp-certificates", "version": 2}',
    "table-head.json": '{"format": "mtpp-certificates", "version": 1}',
    "table-rows.json": '{"format": "mtpp-certificates", "version": 1, "rows": [{}]}',
    "table-row.json": '{"format": "mtpp-certificates", "version": 1, "rows": [{}], "summary": []}',
}
"""Files beside the chain, whose plan is plan.json: results that are none, by name."""

TRAINING = (
    "generate transformer-training --layers 2 --hidden 64 --heads 4 -o training.json",
    "plan training.json --devices 2 --memory 2GiB --bandwidth 25GB/s --max-micro-batches 4 -o line.json",
)
"""Command lines that make a model to be trained, and a plan for it."""

EVOLVE = "anneal has no population; it goes with brkga, mla, mla-weighted"
REFUSED: list[tuple[str, ...]] = [
    ("portition", "No such command 'portition'. Did you mean 'partition'"),
    ("xyz", "No such command 'xyz'; see"),
    ("generate chian", "Did you mean 'chain'"),
    ("partition chain.json -k 2 --format jsn", "'json', 'csv', 'markdown'; did you mean 'json'; see"),
    ("partition chain.json -k 2 --algorithm anneall", "no algorithm is called 'anneall'; did you mean 'anneal'?"),
    ("partition chain.json -k 2 --together op0,opp1", "no op is called 'opp1'; did you mean 'op1'"),
    ("partition chain.json -k 2 --system a1000", "no such preset and no such file; did you mean 'a100'"),
    ("partition chain.json -k 2 --emit cutnames", "unknown form 'cutnames'; did you mean 'cut-names'?"),
    ("evaluate chain.json --cuts opp1", "no op is called 'opp1'; did you mean 'op1'"),
    ("plan chain.json", "type `mtpp plan chain.json --planner pfeife --devices 4 --micro-batches 8`"),
    ("plan model.onnx --devices 2", "an ONNX model, which the planner pfeife takes; ", "--dims auto`"),
    ("plan chain.json --planner grafpipe", "did you mean 'graphpipe' or"),
    ("convert chain.json x.dot --from nativ", "unknown format 'nativ'; did you mean 'native'?"),
    ("systems xyz", "NAME: no preset is called 'xyz'; `mtpp systems` lists the presets"),
    ("partition chain.json -k 2 --system no.toml", "no such file; check the path; `mtpp systems` lists the presets"),
    ("partition model.onnx -k 2 --dim bach=3", "the model has no dimension 'bach'; did you mean 'batch'?"),
    ("systems a1000", "NAME: no preset is called 'a1000'; did you mean 'a100'"),
    ("partition", "Missing argument 'MODEL'"),
    (f"partition chain.json -k 2 --seed {2**63}", "--seed: "),
    ("partition chain.json -k 2 -o ''", "the name of a file is empty"),
    ("partition chain.json", "-k"),
    ("partition chain.json --stage 3", "No such option '--stage'. (Did you mean"),
    ("partition chain.json -k 5 --algorithm anneal --population 5", f"--population: {EVOLVE}"),
    ("partition chain.json -k 5 --algorithm anneal --generations 5", f"--generations: {EVOLVE}"),
    ("partition model.onnx -k 2 --dims auto --dim '*=1'", "--dims: auto proposes what --dim *=1 sets already; leave "),
    ("partition model.onnx -k 2 --dims all", "'all' is not 'auto'"),
    ("partition model.onnx -k 2 --dim '*=0'", "'*=0' is not NAME=VALUE with a whole number above zero"),
    ("partition model.onnx -k 2 --dim width=3 --dims auto", "the model has no dimension 'width'; it has: batch"),
    ("partition model.onnx -k 2 --dim '*=1' --dim '*=2'", "'*' is set twice"),
    ("bound chain.json", "-k"),
    ("bound chain.json -k 2,x", "-k", "'x'"),
    ("bound chain.json -k 2 --bounds simple,magic", "--bounds", "magic"),
    ("bound chain.json -k 2 --bounds nodes", "no bound is called 'nodes'; did you mean 'node'?"),
    ("bound chain.json -k 2 --time-limit inf", "--time-limit"),
    ("bound chain.json -k 2 --export m.mps", "--export", "one bound"),
    ("bound chain.json -k 2 --bounds simple --export m.txt", "--export", ".mps"),
    ("bound chain.json -k 2 --bounds simple --export nowhere/m.mps", "nowhere"),
    ("bound chain.json -k 2 --bounds simple --position 1", "--position", "--export"),
    ("bound chain.json -k 2 --bounds exact-mip --export m.mps --position 1", "--position", "exact-mip"),
    ("bound chain.json -k 2 --bounds exact-mip --export m.mps -o t.json", "--output", "--export"),
    ("bound chain.json -k 2,4 --bounds simple --export m.mps", "--export", "one number of stages"),
    ("bound chain.json -k 2 --cutoff 0", "--cutoff"),
    ("bound chain.json -k 2 --cutoff 1.5ms", "--cutoff"),
    (f"bound chain.json -k 2 --cutoff {2**62}", "--cutoff"),
    ("bound chain.json -k 2 --proof-limit many", "--proof-limit"),
    ("bound chain.json -k 2 --proof-limit 8", "--proof-limit"),
    ("bound chain.json -k 2 --proof-limit -1MB", "--proof-limit"),
    ("bound chain.json -k 2 --proof-limit 1.5B", "--proof-limit"),
    ("certify chain.json -k 0", "-k"),
    ("certify chain.json", "-k"),
    ("certify chain.json -k 2 --bounds magic", "--bounds", "magic", "simple"),
    ("certify chain.json -k 2 --bounds ' , '", "--bounds", "no bound"),
    ("certify chain.json -k 2 --algorithm magic", "--algorithm", "magic"),
    ("certify chain.json -k 2 --target-ratio 0.5", "--target-ratio"),
    ("certify chain.json -k 2 --target-ratio nan", "--target-ratio"),
    ("certify chain.json -k 2 --target-ratio x", "--target-ratio", "'x' is not a valid number"),
    ("certify chain.json -k 2 --require-ratio 0", "--require-ratio"),
    ("certify chain.json -k 2 --time-limit 0", "--time-limit"),
    ("certify chain.json -k 2 --total-time-limit -1", "--total-time-limit"),
    ("certify chain.json -k 2 --jobs 0", "--jobs"),
    ("certify chain.json -k 2 --memory-limit 5", "--memory-limit"),
    ("certify chain.json -k 2 --as percent", "--as"),
    ("certify chain.json -k 2 --store nowhere/s.db", "nowhere/s.db"),
    ("certify chain.json -k 2 --store .", "directory"),
    ("certify chain.json -k 2 -o nowhere/o.json", "nowhere/o.json"),
    ("certify chain.json -k 2 --store t.json -o ./t.json", "--store", "t.json is the file of --output too"),
    ("certify chain.json -k 2 --plot p.png -o p.csv", "--plot", "p.csv is the file of --output too"),
    ("certify chain.json -k 2 --scheduler tcp://127.0.0.1:1 --jobs 2", "--jobs"),
    ("certify chain.json -k 2 --dim batch=2", "--dim"),
    ("compare b.json", "-k"),
    ("compare b.json -k 2,,4", "-k", "missing", "2,4,8"),
    ("compare b.json -k ''", "-k", "missing"),
    ("compare b.json -k 8-2", "-k", "8-2 is a range that ends before it begins"),
    ("compare b.json -k 2,x", "-k", "'x'"),
    ("compare b.json -k 0,2", "-k", "0 is not in the range"),
    ("compare b.json -k 2,1000001", "-k", "1000001 is not in the range"),
    ("compare b.json -k " + "9" * 5000, "-k", "number of stages"),
    ("compare b.json -k 2 --algorithms auto,magic", "--algorithms", "'magic'", "auto, downset, anneal, brkga"),
    ("compare b.json -k 2 --algorithms slice-3", "--algorithms", "slice takes no number"),
    ("compare b.json -k 2 --algorithms ,", "--algorithms", "names no algorithm"),
    ("compare b.json -k 2 --time-limit 0", "--time-limit"),
    ("compare b.json -k 2 --fast-memory 1MiB", "b.json", "/time_unit"),
    ("compare b.json -k 2 -o /no/such/folder/x.json", "no directory"),
    ("inspect ''", "the name of a file is empty"),
    ("inspect chain.json --ops --modules 2", "error: --modules: excludes --ops; give one of them"),
    ("convert chain.json - --to csv", "error: -: csv files list stages, and none were given; add --assignment plan.js"),
    ("convert chain.json - --assignment assignment.json", "error: --assignment: native files have no place for stages; "
     "choose --to node-link or graphml or dot or csv"),
    ("convert chain.json a.png", "error: a.png: no format goes with the suffix '.png'"),
    ("convert chain.json o.json --assignment assignment.json", "Model Explorer does not open it"),
    ("generate regal-style -n 4", "-n: 4 is below 5"),
    ("generate regal-style -n 200-50", "-n: 200-50 is a range that ends before it begins"),
    ("generate regal-style -n 5-x", "-n: '5-x' is neither a whole number nor a range"),
    ("generate regal-style -n 1-2-3", "-n: '1-2-3' is neither"),
    ("generate regal-style -n -7", "-n: '-7' is neither"),
    ("generate regal-style -n 1e3", "-n: '1e3' is neither"),
    ("generate regal-style -n 99999999999999999999", "-n: 99999999999999999999 is above"),
    ("generate regal-style -n 2000000", "too large"),
    ("generate regal-style --family grid", "--family: 'grid' is not one of"),
    ("generate chain --seed -1", "--seed: -1 is not in the range"),
    ("generate chain --count 0 -o bed/", "--count: 0 is not in the range"),
    ("generate chain --count 2", "--count: several graphs are no single output"),
    ("generate chain --count 2 -o g.json", "g.json: several graphs do not go into one file"),
    ("generate chain --count 2 -o plan.json/", "plan.json/: is not a directory"),
    ("generate chain --count 2 -o nowhere/bed", "nowhere/bed: there is no directory 'nowhere'"),
    ("generate chain -o nowhere/g.json", "nowhere/g.json: there is no directory"),
    ("generate chain -n 4 --skips 4", "4 skips, where 3 pairs"),
    ("generate chain --longest-skip 1", "--longest-skip: 1 is not in the range"),
    ("generate transformer --heads 5", "5 heads cannot share"),
    ("generate transformer --count 2 -o bed", "--count: all graphs would be the same"),
    ("generate multi-branch --branches 1 --cross-links 1", "room for 0"),
    ("generate multi-branch --branches 2000000 --length 2000000", "too large"),
    ("generate in-tree --fan-in 1", "--fan-in: 1 is below 2"),
    ("generate in-tree --leaves 0", "--leaves: 0 is below 1"),
    ("generate transformer-training --heads 5", "5 heads cannot share"),
    ("generate transformer-training -o nowhere/g.json", "nowhere/g.json: there is no directory"),
    ("generate mmt --micro-batch-sizes 0", "--micro-batch-sizes: 0 is below 1"),
    ("generate mmt --micro-batch-sizes two", "--micro-batch-sizes: 'two' is neither a whole number nor a range"),
    ("generate mmt --micro-batch-sizes 2-1", "--micro-batch-sizes: 2-1 does not go up"),
    ("generate mmt --micro-batch-sizes 10000000", "--micro-batch-sizes: 10000000 is above 1,000,000"),
    ("generate forest", "No such command 'forest'"),
    ("profile chain.json", "chain.json: neither an ONNX model nor an exported program; only ONNX models"),
    ("profile model.onnx --backward", "--backward: ONNX Runtime does not train: model.onnx has no backward pass; "),
    ("profile model.onnx", "set it: --dim batch=1, or take what is proposed: --dims auto"),
    ("profile model.onnx --inputs chain.json", "chain.json: no arrays by name can be read"),
    ("profile model.onnx --inputs none.npz", "none.npz: no arrays by name can be read"),
    ("profile model.onnx --dim batch=2 --memory-limit 1KiB", "give at least 512MiB"),
    ("profile model.onnx --dim batch=2 -o nowhere/graph.json", "there is no directory"),
    ("split chain.json plan.json --emit cut-names -o out", "neither an ONNX model nor an exported PyTorch program"),
    ("split chain.json plan.json --emit torch", "does not say which modules its ops came from"),
    ("split chain.json plan.json", "error: give -o FOLDER, --check or --emit NAME"),
    ("split chain.json plan.json --inputs x.npz -o out", "error: --inputs: are for a check; give --check too, or "),
    ("split - - -o out", "error: model and plan cannot both be standard input"),
    ("split chain.json plan.json -o -", "error: stages go to a folder, not to standard output"),
    ("run nowhere", "error: nowhere: no such folder; give a folder that `mtpp split` wrote"),
    ("run --pin stages", "write --pin 0,1, or --pin after the folder"),
    ("run stages --model none.onnx", "none.onnx: no such file; give the model that was split"),
    ("run stages --steps 3", "error: --steps goes with --engine torch"),
    ("run stages --engine torch --queue-depth 3", "error: --queue-depth has no effect with --engine torch: leave "),
    ("run stages --engine torch", "error: --engine torch trains a model: give --model FILE"),
    ("simulate broken.json --gantt chart.svg", "error: broken.json: /stages/0/micro_batch: "),
    ("simulate broken.json", "do not divide the mini-batch of 32"),
    ("simulate three-towers.json --gantt chart.png", "--gantt: 'chart.png' has none of the endings .txt, .svg, .html"),
    ("simulate three-towers.json -o three-towers.json", "the pipeline"),
    ("simulate none.json --gantt chart.svg", "none.json"),
    ("simulate README.md --gantt chart.svg", "error: README.md: not a stage graph"),
    ("report alone.json -o page.html", "alone.json: /graph: the plan embeds no graph; give the model with --model\n"),
    ("report plan.json --model chain.json -o none/page.html", "there is no directory"),
    ("report plan.json --model chain.json -o stages", "is a directory"),
    ("report list.json -o page.html", "no result of mtpp"),
    ("report graph-head.json -o page.html", "'mtpp-graph' is no result that a report is made of"),
    ("report simulation-3.json -o page.html", "a version that this program does not know"),
    ("report simulation-head.json -o page.html", "missing key"),
    ("report plan-head.json -o page.html", "error: "),
    ("report table-rows.json -o page.html", "missing key"),
    ("report simulated.json --model chain.json -o page.html", "error: chain.json: "),
    ("report simulated.json --model three-towers.json --model chain.json -o page.html",
     "error: --model: 2 files for one simulation; give the pipeline alone, or a plan and its model\n"),
    ("verify ''", "error: documents: the name of a file is empty; see `mtpp verify --help`\n"),
    ("verify plan.json ''", "error: documents: the name of a file is empty; see `mtpp verify --help`\n"),
    ("verify - -", "error: only one of plan, model and costs can be standard input; see `mtpp verify --help`\n"),
    ("verify alone.json", "--model"),
    ("verify moved.json", "moved.json: /model/path: its model is not at elsewhere.json; give the model with --model"),
    ("verify plan.json --model chain.json --model chain.json", "a plan is for one model"),
    ("verify --beside --model nowhere x.json", "error: nowhere: no such file or folder; check the path\n"),
    ("verify --beside --model - x.json", "error: MODEL: has to be a file or a folder; leave --beside out\n"),
    ("verify line-alone.json", "line-alone.json: a training plan embeds no model; give the model with --model"),
    ("verify line.json --model line.json", "/format: a training plan, not the model it is for"),
    ("verify line.json --model training.json --costs line.json", "--costs: has no effect on a training plan; leave it"),
    ("verify line.json --model training.json --time-unit s", "--time-unit: has no effect on mtpp-training-model"),
    ("verify table-2.json", "table-2.json: /version: "),
    ("verify table-head.json", "table-head.json: /rows: missing key"),
    ("verify table-row.json", "table-row.json: /rows/0/model"),
    ("verify list.json", "list.json: neither a plan nor a table of certificates"),
    ("verify comparison-head.json", "comparison-head.json: "),
]  # fmt: skip
"""Command lines, and words of what they say."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of files of each kind; the chain has four ops of 10, 20, 30 and 40 ms."""
    folder = tmp_path_factory.mktemp("refused")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "b.json").write_text(write_native(chain([10, 20], [5])))
    (folder / "chain.json").write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    onnx.save(open_chain(4), folder / "model.onnx")
    bypass(folder / "stages")
    for source in ("datasets/samples/three-towers.json", "README.md"):
        shutil.copy(ROOT / source, folder)
    pipeline = (folder / "three-towers.json").read_text()
    (folder / "broken.json").write_text(pipeline.replace('"micro_batch": 4', '"micro_batch": 5', 1))
    assert run("partition", "chain.json", "-k", "2", "-q", "-o", "plan.json", cwd=folder).returncode == 0
    assert run("simulate", "three-towers.json", "-q", "-o", "simulated.json", cwd=folder).returncode == 0
    for line in TRAINING:
        assert run(*line.split(), "-q", cwd=folder).returncode == 0
    for name, plan in (("alone", "plan"), ("line-alone", "line"), ("moved", "plan")):
        document = json.loads((folder / f"{plan}.json").read_text())
        path = document["model"].pop("path")
        if name == "moved":
            document["model"]["path"] = path.replace("chain", "elsewhere")
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize(("line", "words"), [(line, words) for line, *words in REFUSED], ids=lambda one: str(one)[:60])
def test_refused(line: str, words: list[str], place: Path) -> None:
    """Whatever is asked for besides, files stay as they are."""
    if line.startswith(("profile", "run")):
        pytest.importorskip("onnxruntime")
    before = _files(place)
    said = refused(*shlex.split(line), cwd=place)
    for word in words:
        assert word in said
    assert _files(place) == before


def _files(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
