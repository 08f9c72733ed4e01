"""``mtpp.api.run_pipeline``: the command's measurements in Python, and parameters refused at the door."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import pytest
from processes import run
from stage_folders import bypass, whole_bypass

import mtpp
from mtpp.api.observer import MtppWarning, Observer
from mtpp.api.run_pipeline import run_pipeline
from mtpp.errors import InputError, Interrupted, LimitReached

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::mtpp.api.observer.MtppWarning")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with stages, and the model that they are of."""
    folder = tmp_path_factory.mktemp("run")
    bypass(folder / "stages")
    whole_bypass(folder / "whole.onnx")
    return folder


def test_the_document_is_the_command_s(place: Path) -> None:
    """The same keys, and the same of all that is no time."""
    stages, model = place / "stages", place / "whole.onnx"
    found = run_pipeline(stages, model=model, batches=4, warmup=1, seed=2, pin="all")
    flags = ("--model", model, "--batches", "4", "--warmup", "1", "--seed", "2", "--format", "json")
    due = json.loads(run("run", stages, *flags, "--pin").stdout)
    own = found.document()
    assert list(own) == list(due)
    for key in ("model", "k", "batches", "warmup", "queue_depth", "threads", "seed", "cores", "stopped", "outputs"):
        assert own[key] == due[key]
    assert [stage["predicted_s"] for stage in own["stages"]] == [stage["predicted_s"] for stage in due["stages"]]
    assert (found.agrees, found.stopped, found.batches, len(found.stages)) == (True, "finished", 4, 4)
    assert found.throughput_per_s > 0
    assert found.hand_overs.line is not None
    assert found.pays is (own["pays"])
    with pytest.raises(InputError, match="stage 0 has 2 ops in the run, and 3 here"):
        found.against(mtpp.evaluate(model, [0, 0, 0, 1, 1, 1]))
    assert found.speedup > 0
    assert repr(found).startswith("toy: 4 stages as a pipeline, 4 batches\n")
    assert "--" not in repr(run_pipeline(stages, batches=1, warmup=0))


def test_what_spoils_figures_is_a_warning(place: Path) -> None:
    """The prediction of the stages is in picoseconds."""
    with pytest.warns(MtppWarning, match="the prediction is of another machine"):
        run_pipeline(place / "stages", batches=1, warmup=0)


def test_a_limit_and_ctrl_c_before_there_is_anything(place: Path) -> None:
    """The error names the parameter; an interruption is a KeyboardInterrupt."""
    with pytest.raises(LimitReached, match=r"0\.001 s were up before every stage had done a batch") as caught:
        run_pipeline(place / "stages", time_limit_s=0.001)
    assert caught.value.parameter == "time_limit_s"

    class Impatient(Observer):
        def note(self, text: str) -> None:
            signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is threading.main_thread():
        with pytest.raises(Interrupted):
            run_pipeline(place / "stages", observer=Impatient())


def test_a_folder_without_stages(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(InputError, match="give a folder that `mtpp split` wrote"):
        run_pipeline(tmp_path / "nowhere")
