"""Machine files made of lists of GPUs: names, memory, places, open rates, and lines that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtpp.errors import InputError
from mtpp.machine.boards import _BOARDS, RATES, board_of, rates_of
from mtpp.machine.gpu_listing import Gpu, gpus_of_listing
from mtpp.machine.machine import Machine
from mtpp.machine.machine_text import MeasuredCpu, text_of_cpu, text_of_gpus, text_of_processes
from mtpp.machine.presets import load_device
from mtpp.machine.tensor_group import TensorGroup
from mtpp.units import parse_bandwidth, parse_compute_rate

HEADER = "name, memory.total [MiB], memory.used [MiB]\n"
ROWS = "Tesla V100-SXM2-32GB, 32510 MiB, 3 MiB\nTesla V100-SXM2-32GB, 32510 MiB, 3 MiB\nNVIDIA L4, 23034 MiB, 500 MiB\n"


def _read(tmp_path: Path, text: str) -> Machine:
    path = tmp_path / "machine.toml"
    path.write_text(text, encoding="utf-8")
    return Machine.read(str(path))


@pytest.mark.parametrize(
    "listing",
    [
        HEADER + ROWS,
        ROWS,
        ROWS.replace(" MiB", ""),
        HEADER + ROWS.replace(" MiB", ""),
        (HEADER + ROWS).replace("\n", "\r\n") + "\r\n",
        "\ufeff" + HEADER + ROWS,
        "\n\r\n" + HEADER + "\n" + ROWS.replace("\n", "\n\n"),
    ],
)
def test_a_list_becomes_devices_in_order(tmp_path: Path, listing: str) -> None:
    """Equal GPUs in a row are one table; what is in use is their reserve; each has its place."""
    made = text_of_gpus(gpus_of_listing(listing, "gpus.csv"), "two kinds")
    assert (made.devices, made.open_names, made.text.count("[[device]]")) == (3, (), 2)
    machine = _read(tmp_path, made.text)
    assert (machine.name, machine.order) == ("two kinds", "fixed")
    assert list(machine.names) == ["v100-sxm2-32gb", "v100-sxm2-32gb", "l4"]
    assert list(machine.places) == ["cuda:0", "cuda:1", "cuda:2"]
    assert [one.memory_bytes for one in machine.devices] == [(32510 - 3) << 20] * 2 + [(23034 - 500) << 20]
    for device, preset in zip(machine.devices, ("v100", "v100", "l4"), strict=True):
        due = load_device(preset)
        assert (device.rates, device.link, device.fast_memory_bytes) == (due.rates, due.link, due.fast_memory_bytes)


def test_equal_gpus_apart_have_tables_of_their_own(tmp_path: Path) -> None:
    """Their names get numbers, as do those of equal boards of which more is in use."""
    gpus = [Gpu("NVIDIA L4", 100, 1), Gpu("Tesla T4", 100, 1), Gpu("NVIDIA L4", 100, 1), Gpu("NVIDIA L4", 100, 2)]
    machine = _read(tmp_path, text_of_gpus(gpus, "m").text)
    assert list(machine.names) == ["l4", "t4", "l4-2", "l4-3"]
    assert list(machine.class_of) == [0, 1, 0, 2]


def test_gpus_of_one_board_are_a_node(tmp_path: Path) -> None:
    """With a link between them: powers of two share a stage, the fullest decides what is reserved; one is alone."""
    gpus = [Gpu("NVIDIA L4", 100, used) for used in (1, 7, 2, 1, 1)] + [Gpu("Tesla T4", 100, 1)]
    made = text_of_gpus(gpus, "m", tensor_link=32 * 10**9)
    assert made.devices == 2
    machine = _read(tmp_path, made.text)
    assert (list(machine.names), list(machine.places)) == (["l4", "t4"], ["cuda:0", "cuda:5"])
    assert [one.tensor for one in machine.devices] == [TensorGroup((1, 2, 4), 32 * 10**9), TensorGroup()]
    assert machine.devices[0].memory_bytes == (100 - 7) << 20
    assert 'tensor_link = "32GB/s"' in made.text
    assert 'tensor_link = "7B/s"' in text_of_gpus(gpus, "m", tensor_link=7).text


def test_names_may_have_commas(tmp_path: Path) -> None:
    """The last two columns are sizes, all before them the name."""
    (gpu,) = gpus_of_listing(HEADER + "NVIDIA L4, Rev. 2,b, 5 MiB, 3 MiB\n", "gpus.csv")
    assert gpu == Gpu("NVIDIA L4, Rev. 2, b", 5, 3)
    made = text_of_gpus([gpu], "m")
    assert made.open_names == ("l4-rev-2-b",)
    with pytest.raises(InputError, match="its rates are open"):
        _read(tmp_path, made.text)


def test_every_known_board_has_rates(tmp_path: Path) -> None:
    """Those of its preset, where it does not differ."""
    gpus = [Gpu(name, 40960, 0) for name in _BOARDS]
    machine = _read(tmp_path, text_of_gpus(gpus, "boards").text)
    for name, device in zip(_BOARDS, machine.devices, strict=True):
        board = board_of(f"NVIDIA {name}")
        assert board is not None
        due = rates_of(*board)
        assert device.peak_flops_per_s == parse_compute_rate(due["peak_flops"])
        assert device.memory_bandwidth_bytes_per_s == parse_bandwidth(due["memory_bandwidth"])
        assert device.link.bandwidth_bytes_per_s == parse_bandwidth(due["bandwidth"])
    assert board_of("NVIDIA TITAN RTX") is None


def test_rates_of_unknown_boards_are_to_be_filled_in(tmp_path: Path) -> None:
    """The file is refused in one line until they are, or a preset takes their place."""
    made = text_of_gpus([Gpu("NVIDIA TITAN RTX", 24576, 1)], "m")
    assert made.open_names == ("titan-rtx",)
    with pytest.raises(InputError, match="/device/0/system: its rates are open; fill in " + ", ".join(RATES)):
        _read(tmp_path, made.text)
    values = {"peak_flops": "71TFLOP/s", "memory_bandwidth": "936GB/s", "bandwidth": "16GB/s"}
    lines = made.text.splitlines()
    for key, value in values.items():
        (at,) = (i for i, line in enumerate(lines) if line.startswith(f"# {key} = "))
        lines[at] = f'{key} = "{value}"'
    (device,) = _read(tmp_path, "\n".join(lines)).devices
    assert device.rates == (71 * 10**12, 936 * 10**9)


def test_names_of_any_letters_can_be_read(tmp_path: Path) -> None:
    """Quotes, control characters and letters of other scripts do no harm."""
    for name in ('a "b" \\ c', "a\x7fb\x01", "显卡", "---"):
        _read(tmp_path, text_of_gpus([Gpu("NVIDIA L4", 5, 1)], name).text)
        text = text_of_gpus([Gpu(name, 5, 1)], "m").text
        with pytest.raises(InputError, match="its rates are open"):
            _read(tmp_path, text)


def test_a_processor_is_a_device_with_measured_rates(tmp_path: Path) -> None:
    """Its memory in use is the reserve."""
    cpu = MeasuredCpu("Some CPU", 4, 8 << 30, 6 << 30, 123 * 10**9, 45 * 10**9)
    machine = _read(tmp_path, text_of_cpu(cpu).text)
    (device,) = machine.devices
    assert (device.rates, device.memory_bytes) == ((123 * 10**9, 45 * 10**9), 6 << 30)
    assert (list(machine.names), list(machine.places)) == (["cpu"], ["cpu"])
    (device,) = _read(tmp_path, text_of_cpu(MeasuredCpu("x", 1, None, None, 10**9, 10**9)).text).devices
    assert device.memory_bytes is None


def test_processes_have_the_link_that_was_measured(tmp_path: Path) -> None:
    """Their rates are those of their share of the cores; a bandwidth without limit is the memory's."""
    cpu = MeasuredCpu("Some CPU", 4, 8 << 30, 6 << 30, 120 * 10**9, 40 * 10**9)
    machine = _read(tmp_path, text_of_processes(cpu, 2, 2, 7_552_123, 31_718_400_000).text)
    assert (machine.count, list(machine.names), list(machine.places)) == (2, ["core"] * 2, ["cpu"] * 2)
    (device,) = machine.classes
    assert (device.rates, device.memory_bytes) == ((60 * 10**9, 20 * 10**9), None)
    assert (device.link.latency_ps, device.link.bandwidth_bytes_per_s) == (7_552_000, 31_718_000_000)
    (device,) = _read(tmp_path, text_of_processes(cpu, 4, 1, 1, None).text).classes
    assert (device.link.latency_ps, device.link.bandwidth_bytes_per_s) == (1000, 10**10)


@pytest.mark.parametrize(
    ("listing", "message"),
    [
        ("", "lists no GPU"),
        (HEADER, "lists no GPU"),
        ("\n\n", "lists no GPU"),
        (ROWS + "NVIDIA L4, [N/A], 3 MiB", "line 4: memory.total is '[N/A]'"),
        (HEADER + "NVIDIA L4, 5 MiB, [N/A]", "line 2: memory.used is '[N/A]'"),
        (HEADER + "[N/A], 5 MiB, 3 MiB", "line 2: name is '[N/A]'"),
        (HEADER + "NVIDIA L4, [Not Supported], 3 MiB", "line 2: memory.total is '[Not Supported]'"),
        (HEADER + "NVIDIA L4, 5 GiB, 3 MiB", "line 2: memory.total is '5 GiB'"),
        (HEADER + "NVIDIA L4, -5 MiB, 3 MiB", "line 2: memory.total is '-5 MiB'"),
        (HEADER + "NVIDIA L4, 0 MiB, 0 MiB", "line 2: memory.total is 0"),
        (HEADER + "NVIDIA L4, 5 MiB, 6 MiB", "line 2: memory.used (6 MiB) is above memory.total (5 MiB)"),
        (HEADER + ", 5 MiB, 3 MiB", "line 2: name is empty"),
        (HEADER + "NVIDIA L4, 5 MiB", "line 2: 2 columns"),
        (HEADER + "NVIDIA L4, 5 MiB, 3 MiB, 2", "line 2: 4 columns"),
        (HEADER + "NVIDIA L4, 5 MiB, 3 MiB,", "line 2: 4 columns"),
        ("0, NVIDIA L4, 5 MiB, 3 MiB", "line 1: 4 columns"),
        (ROWS + HEADER, "line 4: memory.total is 'memory.total [MiB]'"),
        ('"NVIDIA L4","5 MiB","3 MiB"', "line 1: memory.total is "),
        ("name, memory.used [MiB], memory.total [MiB]\n" + ROWS, "line 1: the columns are name, memory.used [MiB]"),
        ("index, name, memory.total [MiB]\n0, NVIDIA L4, 3", "line 1: the columns are index, name"),
        ("NVIDIA-SMI has failed because it could not talk to the driver", "line 1: 1 column,"),
        (HEADER + "NVIDIA L4, " + "9" * 30 + ", 3", "line 2: memory.total is"),
    ],
)
def test_malformed_lists_are_refused_with_the_line(listing: str, message: str) -> None:
    """One line names the file, the line and what is wrong with it."""
    with pytest.raises(InputError) as refused:
        gpus_of_listing(listing, "gpus.csv")
    assert f"gpus.csv: {message}" in str(refused.value)
