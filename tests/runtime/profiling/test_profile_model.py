"""Models measured: every op has a cost, sizes are those of the run, and what cannot be run is said in one line."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_text import built, nodes_of
from profiled_models import chain, convolutions, data_dependent, half_precision, looped

from mtpp.errors import InputError
from mtpp.formats.io.source import read_source
from mtpp.formats.onnx import read_onnx
from mtpp.machine.presets import load_device
from mtpp.runtime.profiling.profile_model import profile_model
from mtpp.runtime.profiling.profiled_graph import MeasuredProfile
from mtpp.runtime.profiling.timing import ProfileChoices, ProfileRequest

pytest.importorskip("onnxruntime")

SLOWEST = ("light_vgg19", "light_zfnet512", "light_densenet121")
LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


def profiled(
    model: onnx.ModelProto, folder: Path, choices: ProfileChoices | None = None, **request: object
) -> MeasuredProfile:
    """Measure a model with few runs."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    asked = ProfileRequest(choices or ProfileChoices(1, 3), load_device(), **request)  # type: ignore[arg-type]
    return profile_model(read_source(str(path)), asked)


def test_every_op_has_a_cost_and_the_names_of_the_graph(tmp_path: Path) -> None:
    """Nodes without names run under those of the graph; folded ones are no ops; costs are whole nanoseconds."""
    profile = profiled(chain(), tmp_path, dims={"batch": 5})
    graph = profile.graph
    assert graph.op_names == profile.modelled.op_names == ("MatMul_1", "MatMul_2", "MatMul_3")
    assert graph.time_unit == "us"
    assert all(cost > 0 and (Fraction(cost) * 1000).denominator == 1 for cost in graph.work)
    assert graph.tensor_bytes.tolist() == [5 * 64 * 4] * 3
    said = graph.metadata["profile"]
    assert said["repeats"] == 3
    assert said["random_inputs"] == ["x"]
    assert said["model_sha256"] == read_source(str(tmp_path / "model.onnx")).sha256
    assert len(said["op_quartiles_us"]) == 3


def test_costs_add_up_to_a_run_without_the_profiler(tmp_path: Path) -> None:
    """Σ work = Σ kernels + what is between them, to rounding; never more than kernels that the profiler slows down."""
    profile = profiled(chain(), tmp_path, dims={"batch": 5})
    together, ops = sum(profile.graph.work), profile.ops
    if ops.between_kernels >= 0:
        assert abs(together - ops.kernels - ops.between_kernels) <= Fraction(3, 1000)
    else:
        assert min(ops.kernels, ops.wall[0]) - Fraction(3, 1000) <= together <= ops.kernels + Fraction(3, 1000)


def test_sizes_that_depend_on_data_are_those_of_the_run(tmp_path: Path) -> None:
    """A graph that cannot be read without running it is read with the sizes seen; equal names are told apart."""
    x = np.array([[1, 0, 2, 0, 0, 0, 0, -1], [0, 0, 0, 3, 0, 0, 0, 0]], dtype=np.float32)
    profile = profiled(data_dependent(), tmp_path, arrays={"x": x})
    assert profile.graph.op_names == ("same", "same_2", "Cast_2")
    assert profile.random_inputs == ()
    assert dict(zip(profile.graph.tensor_names, profile.graph.tensor_bytes.tolist(), strict=True)) == {
        "r": 64,
        "found": 2 * 3 * 8,
        "y": 2 * 3 * 4,
    }


def test_results_that_numpy_has_no_name_for(tmp_path: Path) -> None:
    """A model may read and give bfloat16, and give sequences."""
    nodes = nodes_of(
        f"h = Cast <to = {TensorProto.FLOAT}>(x) y = Cast <to = {TensorProto.BFLOAT16}>(h) s = SequenceConstruct(h, h)"
    )
    model = built(nodes, {"x": [4]}, ["y", "s"])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.BFLOAT16
    graph = profiled(model, tmp_path).graph
    assert graph.tensor_bytes.tolist() == [16, 8, 32]
    assert all(work > 0 for work in graph.work)


def test_a_loop_is_one_op(tmp_path: Path) -> None:
    """What the nodes of a body take is in the time of the loop, once."""
    profile = profiled(looped(), tmp_path)
    assert profile.graph.op_names == ("Relu_0", "loop")
    assert profile.ops.kernel[1] > 0


def test_absent_weights_are_made_up(tmp_path: Path) -> None:
    """A graph that was passed on without its weights runs on random ones, which is said."""
    model = chain(2)
    tensor = model.graph.initializer[1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="gone.bin")
    profile = profiled(model, tmp_path, dims={"batch": 2})
    assert profile.random_weight_bytes == 64 * 64 * 4
    assert profile.graph.metadata["profile"]["random_weight_bytes"] == 64 * 64 * 4


def test_given_inputs_tell_the_symbolic_sizes(tmp_path: Path) -> None:
    """An array of five rows makes the batch five."""
    profile = profiled(chain(), tmp_path, arrays={"x": np.ones((5, 64), dtype=np.float32)})
    assert profile.graph.metadata["dims"] == {"batch": 5}


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"z": np.zeros(1)}, "the model has no input 'z'"),
        ({"x": np.zeros((2, 64))}, "holds float64, the model's float32"),
        ({"x": np.zeros(64, dtype=np.float32)}, "has 1 axes, the model's has 2"),
        ({"x": np.zeros((2, 65), dtype=np.float32)}, "has size 65 on axis 1, the model's has 64"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray], problem: str) -> None:
    """Wrong names, types and shapes are named."""
    with pytest.raises(InputError, match=problem):
        profiled(chain(), tmp_path, arrays=arrays, dims={"batch": 2} if "z" in arrays else {})


def test_a_symbolic_input_needs_its_size(tmp_path: Path) -> None:
    """What only the user can say is asked for."""
    with pytest.raises(InputError, match=r"set dims=\{'batch': 1\}"):
        profiled(chain(), tmp_path)


def test_what_does_not_fit_is_refused_with_numbers(tmp_path: Path) -> None:
    """A limit below what the weights take is said before anything runs."""
    with pytest.raises(InputError, match=r"takes about .* of weights.*and there are 10 KiB"):
        profiled(chain(), tmp_path, dims={"batch": 1}, memory_bytes=10 * 1024)


def test_without_room_for_two_sessions_one_does_both(tmp_path: Path) -> None:
    """Runs without the profiler come after those with it then."""
    profile = profiled(chain(), tmp_path, dims={"batch": 1}, memory_bytes=200 * 1024)
    assert profile.graph.metadata["profile"]["interleaved"] is False
    assert all(cost > 0 for cost in profile.graph.work)


def test_a_model_that_fails_says_what_to_do(tmp_path: Path) -> None:
    """An index out of range is no fault of the program: real inputs may be in range."""
    nodes = nodes_of(f"i = Cast <to = {TensorProto.INT64}>(x) y = Gather(table, i)")
    model = built(nodes, {"x": [50]}, ["y"], {"table": np.zeros((1, 4), dtype=np.float32)})
    with pytest.raises(InputError, match=r"ONNX Runtime cannot run it: .*inputs FILE.npz"):
        profiled(model, tmp_path)


def test_others_can_run_beside_it(tmp_path: Path) -> None:
    """As the stages of a pipeline do; each takes memory of its own."""
    choices = ProfileChoices(1, 3, beside=1)
    profile = profiled(chain(), tmp_path, choices, dims={"batch": 5})
    assert profile.graph.metadata["profile"]["beside"] == 1
    with pytest.raises(InputError, match="2 at the same time"):
        profiled(chain(), tmp_path, choices, dims={"batch": 5}, memory_bytes=200 * 1024)


def test_what_is_fused_is_shared_out(tmp_path: Path) -> None:
    """Every op that does arithmetic gets a part of the kernel that it was fused into, in proportion."""
    profile = profiled(convolutions(), tmp_path, ProfileChoices(1, 3, optimise=True))
    costs = dict(zip(profile.graph.op_names, profile.graph.work, strict=True))
    assert costs["first"] > costs["relu"]
    assert costs["second"] > costs["sum"]
    assert sum(costs.values()) > 0
    assert profile.graph.metadata["profile"]["optimise"] is True


def test_nodes_that_are_put_in_work_for_an_op(tmp_path: Path) -> None:
    """Casts around ops without kernels, and bodies in place of ops, are laid to the ops of the model."""
    profile = profiled(half_precision(), tmp_path)
    assert profile.graph.op_names == ("Cast_0", "product", "mish", "back")
    costs = dict(zip(profile.graph.op_names, profile.graph.work, strict=True))
    assert costs["product"] > 0
    assert costs["mish"] > 0
    assert dict(zip(profile.graph.tensor_names, profile.graph.tensor_bytes.tolist(), strict=True))["m"] == 4 * 64 * 2


def test_places_of_weights_outside_the_folder_are_refused(tmp_path: Path) -> None:
    """A model comes from anywhere."""
    model = chain(2)
    tensor = model.graph.initializer[1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret.bin")
    with pytest.raises(InputError, match="leads out of the model's folder"):
        profiled(model, tmp_path, dims={"batch": 2})


def test_inputs_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    """Strings and sequences cannot be made up."""
    model = built("y = Identity(x)", {"x": [2]}, ["y"])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    with pytest.raises(InputError, match="no values can be made up for tensor 'x'"):
        profiled(model, tmp_path)
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    model.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    with pytest.raises(InputError, match="input 'x' is a sequence"):
        profiled(model, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("optimise", [False, True])
@pytest.mark.parametrize("path", [path for path in LIGHT if path.stem not in SLOWEST], ids=lambda path: path.stem)
def test_light_models(path: Path, optimise: bool) -> None:
    """Real networks of older operator sets, whose weights are computed by the file, run and are covered whole."""
    request = ProfileRequest(ProfileChoices(0, 2, optimise=optimise), load_device())
    profile = profile_model(read_source(str(path)), request)
    graph = profile.graph
    due = read_onnx(path, path.read_bytes(), source=path.name, system=load_device())
    assert graph.op_names == due.op_names
    read = np.diff(graph.consumer_offsets) > 0
    assert (graph.tensor_bytes[read] == due.tensor_bytes[read]).all()
    assert 0 < sum(graph.work) <= max(profile.ops.profiled_wall[2], profile.ops.kernels)
