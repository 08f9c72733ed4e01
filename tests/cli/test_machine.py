"""``mtpp machine`` as a process: lists from files and standard input, this machine, and files that are kept."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest
from processes import refused, run

import mtpp
from mtpp.errors import InputError
from mtpp.machine.machine import Machine

LISTING = "name, memory.total [MiB], memory.used [MiB]\nTesla T4, 15360 MiB, 2 MiB\nTesla T4, 15360 MiB, 2 MiB\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a list of GPUs."""
    (tmp_path / "gpus.csv").write_text(LISTING)
    return tmp_path


def _fake(folder: Path, script: str) -> str:
    """Return a search path whose nvidia-smi is a script."""
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def test_a_list_becomes_a_file_that_plans_are_made_for(folder: Path) -> None:
    """On standard output and with -o it is the same; a partition on it is proven."""
    shown = run("machine", "gpus.csv", cwd=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    piped = run("machine", "-", cwd=folder, stdin=LISTING.encode())
    assert piped.stdout == shown.stdout.replace('name = "gpus"', 'name = "GPUs"')
    assert run("machine", "gpus.csv", "-o", "machine.toml", cwd=folder).returncode == 0
    assert (folder / "machine.toml").read_text() == shown.stdout == mtpp.describe_machine(folder / "gpus.csv").text
    plan = mtpp.partition(mtpp.read(mtpp.datasets.sample_path("resnet50"), machine=folder / "machine.toml"))
    assert (plan.k, plan.optimal) == (2, True)


def test_a_share_of_the_memory(folder: Path) -> None:
    """Limits are that share of each memory, less what is in use; shares above 1 are refused."""
    whole = mtpp.describe_machine(folder / "gpus.csv")
    assert run("machine", "gpus.csv", "--utilization", "0.9", "-o", "machine.toml", cwd=folder).returncode == 0
    text = (folder / "machine.toml").read_text()
    assert text == mtpp.describe_machine(folder / "gpus.csv", utilization=Fraction(9, 10)).text
    assert text.replace("utilization = 0.9\n", "") == whole.text
    assert 'utilization = "1/3"' in mtpp.describe_machine(folder / "gpus.csv", utilization=Fraction(1, 3)).text
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"), machine=folder / "machine.toml")
    assert model.machine is not None
    sizes = [line.split(", ")[1:] for line in LISTING.splitlines()[1:]]
    total, used = (int(sizes[0][i].split()[0]) * 2**20 for i in (0, 1))
    assert model.machine.devices[0].memory_bytes == total * 9 // 10 - used
    line = refused("machine", "gpus.csv", "--utilization", "1.5", cwd=folder)
    assert line.endswith("--utilization: 1.5 is above 1; give a share such as 0.9\n")


def test_nodes_of_gpus(folder: Path) -> None:
    """A link between the GPUs of a board makes a node of them, of which stages take some."""
    assert run("machine", "gpus.csv", "--tensor-link", "450GB/s", "-o", "machine.toml", cwd=folder).returncode == 0
    text = (folder / "machine.toml").read_text()
    assert text == mtpp.describe_machine(folder / "gpus.csv", tensor_link="450GB/s").text
    assert 'tensor_parallel = [1, 2]  # of 2 GPUs: those that may share its stage\ntensor_link = "450GB/s"' in text
    line = refused("machine", "gpus.csv", "--tensor-link", "fast", cwd=folder)
    assert "--tensor-link" in line


def test_files_that_are_there_stay(folder: Path) -> None:
    """Whoever wrote them: rates may have been filled in."""
    (folder / "machine.toml").write_text("mine")
    line = refused("machine", "gpus.csv", "-o", "machine.toml", cwd=folder)
    assert line == "error: machine.toml: is there already; name another file\n"
    assert (folder / "machine.toml").read_text() == "mine"
    with pytest.raises(InputError, match="is there already"):
        mtpp.describe_machine(folder / "gpus.csv").save(folder / "machine.toml")
    assert "the list of GPUs too" in refused("machine", "gpus.csv", "-o", "gpus.csv", cwd=folder)


def test_unknown_boards_are_told(folder: Path) -> None:
    """A warning says what to fill in, and so does the refusal of the file."""
    (folder / "gpus.csv").write_text("Some GPU, 100 MiB, 0 MiB\n")
    done = run("machine", "gpus.csv", "-o", "machine.toml", cwd=folder)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        0,
        "warning: some-gpu: no rates are known; fill in peak_flops, memory_bandwidth and bandwidth of its system",
    )
    model = mtpp.datasets.sample_path("resnet50")
    line = refused("partition", model, "--machine", "machine.toml", cwd=folder)
    assert line == (
        "error: machine.toml: /device/0/system: its rates are open; fill in peak_flops, memory_bandwidth, bandwidth\n"
    )
    (folder / "machine.toml").write_text('[[device]]\nname = "a"\n[device.system]\nbandwidth = "1GB/s"\n')
    line = refused("partition", model, "--machine", "machine.toml", cwd=folder)
    assert line.startswith("error: machine.toml: /device/0/system: device a: its system has no peak_flops")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either FILE or --this"),
        (("gpus.csv", "--this"), "give either FILE or --this"),
        (("absent.csv",), "absent.csv"),
        (("gpus.csv", "-o", "no/such/folder.toml"), "there is no directory"),
    ],
)
def test_wrong_use_is_told(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    """One line, exit code 2."""
    assert message in refused("machine", *arguments, cwd=folder)


def test_bad_lists_are_refused(folder: Path) -> None:
    """With the number of the line; texts that are none, too."""
    (folder / "gpus.csv").write_text(LISTING + "Tesla T4, [N/A], 2 MiB\n")
    assert refused("machine", "gpus.csv", cwd=folder).startswith("error: gpus.csv: line 4: memory.total is")
    (folder / "gpus.csv").write_bytes(b"\xff\xfe\x00")
    assert "is not a text in UTF-8" in refused("machine", "gpus.csv", cwd=folder)


def test_this_machine_has_what_its_driver_lists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for name, total and used memory as CSV; where it fails, that is said."""
    listed = LISTING.replace("\n", "\\n")
    monkeypatch.setenv("PATH", _fake(folder, f'[ "$2" = --format=csv ] && printf "{listed}"'))
    made = mtpp.describe_machine()
    assert (made.devices, 'name = "t4"\ncount = 2' in made.text) == (2, True)
    (folder / "bin" / "nvidia-smi").write_text("#!/bin/sh\necho no driver >&2\nexit 9\n")
    with pytest.raises(InputError, match="nvidia-smi: fails with exit code 9: no driver"):
        mtpp.describe_machine()


def test_a_machine_without_gpus_is_its_processor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rates are measured, its memory is that of the system; plans can be made for it at once."""
    monkeypatch.setenv("PATH", str(folder))
    made = mtpp.describe_machine()
    made.save(folder / "this.toml")
    (device,) = Machine.read(str(folder / "this.toml")).devices
    assert min(device.peak_flops_per_s or 0, device.memory_bandwidth_bytes_per_s or 0) > 10**6
    assert device.memory_bytes is None or device.memory_bytes > 0


def test_large_lists_are_refused(folder: Path) -> None:
    """The line names no option that the command does not have."""
    (folder / "gpus.csv").write_text("Tesla T4, 15360 MiB, 2 MiB\n" * 700_000)
    line = refused("machine", "gpus.csv", cwd=folder)
    assert line == "error: gpus.csv: the input is larger than 16 MiB; give a list of GPUs\n"


@pytest.mark.parametrize(
    "arguments",
    [("certify",), ("bound",), ("compare", "--algorithms", "auto"), ("partition", "--max-latency", "1ms"),
     ("partition", "--objective", "latency", "--max-bottleneck", "1ms")],
)  # fmt: skip
def test_memories_that_fail_are_what_is_said(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Also under goals with limits of their own; tables say where to learn how far the limits have to grow."""
    ops = [{"name": name, "work": 1, "param_bytes": size} for name, size in (("a", 60), ("b", 50), ("c", 60))]
    graph = {"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "ms", "ops": ops, "tensors": []}
    (tmp_path / "g.json").write_text(json.dumps(graph))
    (tmp_path / "m.toml").write_text('[[device]]\nmemory = "100B"\n[[device]]\nspeed = 2\nmemory = "99B"\n')
    command, *rest = arguments
    done = run(command, "g.json", "--machine", "m.toml", *rest, cwd=tmp_path)
    assert "no plan on 2 of the devices keeps each stage to the memory of its device" in done.stderr
    assert ("`mtpp partition` tells how far the limits have to grow" in done.stderr) == (command != "partition")
