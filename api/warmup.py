"""Compilation of inner loops ahead of their use, by command lines on samples that call them."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from mtpp.errors import MtppError
from mtpp.wording import did_you_mean

_GPT2 = "gpt2.onnx --dim batch=1 --dim sequence=64"
_TRAIN = "plan training.json --batch-size 16 --micro-batch-size 2"

_MACHINE = (
    "partition resnet50.onnx --machine slow-and-fast.toml -o machine.json -q",
    "partition resnet50.onnx --machine slow-and-fast.toml --replicas -o replicas.json -q",
)
_NEIGHBOURS = ("partition resnet50.onnx --machine two-nodes.toml -o neighbours.json -q",)
_PARTITION = (
    ("partition resnet50.onnx -k 4 -o plan.json -q",),
    (f"partition {_GPT2} -k 6 --fast-memory 30MiB --peak order",),
    (
        "generate multi-branch --branches 3 --length 4 --blocks 3 --cross-links 2 -o branches.json",
        "partition branches.json -k 4 --algorithm series-parallel",
        "partition resnet50.onnx -k 4 --algorithm series-parallel",
    ),
    (
        "generate transformer --split-heads --layers 120 -o large.json",
        "partition large.json -k 8 --work-limit 2000",
    ),
    _MACHINE,
    _NEIGHBOURS,
)
_BOUND = (("bound resnet50.onnx -k 4 --time-limit 8",),)
_PIPER = (
    "generate transformer-training --layers 4 --sequence 512 --micro-batch-size 2 -o training.json",
    f"{_TRAIN} --memory 3GiB --devices 8 --bandwidth 50GB/s -o line.json",
    f"{_TRAIN} --memory 3GiB --topology two-levels.toml -o nested.json",
    f"{_TRAIN} --memory 900MiB --topology two-levels.toml",
)
_GRAPHPIPE = (
    "generate mmt --branches 2 --layers 4 -o mmt.json",
    "plan mmt.json --planner graphpipe --devices 4 --memory 16GiB --bandwidth 12.5GB/s --batch-size 64 -o graph.json",
)
_PFEIFE = (
    "plan resnet50.onnx --planner pfeife --devices 4 --micro-batches 4 --memory 8GiB --bandwidth 25GB/s",
    "generate transformer --layers 1 -o layer.json",
    "plan layer.json --planner pfeife --devices 2 --micro-batches 2 --memory 8GiB --bandwidth 25GB/s",
    "plan layer.json --planner pfeife --devices 2 --micro-batches 2 --memory 80MiB --bandwidth 25GB/s --search beam",
)
_RARE = (
    (
        "compare resnet50.onnx -k 3 --algorithms mla-100,mla-weighted-100,random-20",
        "compare resnet50.onnx -k 3 --algorithms random-20 --fast-memory 10MiB",
        "compare resnet50.onnx -k 3 --algorithms random-20 --fast-memory 10MiB --peak order",
    ),
)
_SIMULATE = (("simulate three-towers.json",),)
_VERIFY = (
    (*_PARTITION[0], "verify plan.json --model resnet50.onnx"),
    (*_MACHINE, "verify machine.json replicas.json --model resnet50.onnx"),
    (*_NEIGHBOURS, "verify neighbours.json --model resnet50.onnx"),
    (*_PIPER, "verify line.json nested.json --model training.json"),
    (*_GRAPHPIPE, "verify graph.json --model mmt.json"),
)

COMMANDS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "partition": _PARTITION,
    "certify": (*_PARTITION, *_BOUND),
    "bound": _BOUND,
    "evaluate": _PARTITION,
    "compare": (*_PARTITION, *_RARE),
    "simulate": _SIMULATE,
    "verify": _VERIFY,
    "report": (*_VERIFY, *_SIMULATE),
    "run": _SIMULATE,
    "plan": (_GRAPHPIPE, _PIPER, _PFEIFE),
}
"""Command → command lines that call its inner loops, each group one after the other in a folder of samples."""

IN_WHEELS = tuple(name for name in COMMANDS if name != "compare")
"""Commands whose inner loops a package ships: those of ``compare`` alone are for tables of baselines."""

_PROCESSES = 2
"""At a time: each kernel is compiled by whichever calls it first, and waits are short."""


def warmup(commands: str | Sequence[str] | None = None) -> tuple[str, ...]:
    """Compile inner loops now, so that later calls start at once.

    An installed package has most of them compiled already, for the versions of Python and numba that it was built with.
    What is missing is compiled for this processor, and kept in the user's cache folder, by command lines on samples in
    processes of their own. Without any that is a minute's work the first time, and seconds after that.

    Parameters
    ----------
    commands
        Names of commands such as ``["partition", "verify"]``, or ``"partition,verify"``; those that have inner loops
        by default.

    Returns
    -------
    The commands whose inner loops are ready.

    Raises
    ------
    InputError
        If there is no such command, or it has no inner loops.
    MtppError
        If one of the command lines fails, with its last line on standard error.

    Examples
    --------
    >>> warmup("simulate")
    ('simulate',)
    """
    from concurrent.futures import ThreadPoolExecutor
    from shutil import copytree, ignore_patterns
    from tempfile import TemporaryDirectory

    from mtpp.datasets import sample_path

    names = names_of_commands() if commands is None else _commands(commands)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return names
    groups = {lines for name in names for lines in COMMANDS[name]}
    begun = {other[:n] for other in groups for n in range(len(other))}
    running: set[subprocess.Popen[str]] = set()
    with TemporaryDirectory() as folder, ThreadPoolExecutor(_PROCESSES) as pool:
        copytree(sample_path("resnet50").parent, folder, dirs_exist_ok=True, ignore=ignore_patterns("pytorch"))
        jobs = [pool.submit(_run, folder, lines, running) for lines in sorted(groups - begun, key=len, reverse=True)]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.kill()
            raise
    return names


def _run(folder: str, lines: Sequence[str], running: set[subprocess.Popen[str]]) -> None:
    """Run command lines in a folder, each in a process that is in *running* meanwhile and does not outlive this one."""
    from mtpp.host.child_process import command_line

    settings = dict(os.environ)
    if cache := settings.get("NUMBA_CACHE_DIR"):
        settings["NUMBA_CACHE_DIR"] = os.path.abspath(cache)
    program = (
        "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
        "from mtpp.host.child_process import die_with_parent; die_with_parent(); from mtpp.__main__ import main; main()"
    )
    nothing = subprocess.DEVNULL
    for line in lines:
        process = subprocess.Popen(
            command_line(program, *shlex.split(line)),
            cwd=folder, env=settings, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.add(process)
        _, said = process.communicate()
        running.discard(process)
        if process.returncode not in (0, 1):  # 1: no plan fits
            *_, last = said.strip().splitlines() or [f"exit code {process.returncode}"]
            raise MtppError(f"mtpp {line}: {last}")


def names_of_commands() -> tuple[str, ...]:
    """Return the names of the commands that have inner loops."""
    return tuple(COMMANDS)


def warm_up_behind(commands: str | Sequence[str]) -> bool:
    """Start to compile what *commands* may need in a process that goes on after this one; tell whether it was started.

    It is not where this process had to compile nothing, or where no process can be started.
    """
    from mtpp.host.child_process import start_detached
    from mtpp.solvers.compilation import has_compiled

    names = _commands(commands)
    if not has_compiled():
        return False
    try:
        start_detached("mtpp.api.warmup", "_warm_up", *names)
    except OSError:
        return False
    return True


def _warm_up(*commands: str) -> None:
    warmup(commands)


def _commands(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of commands, each once."""
    from mtpp.api import parameters
    from mtpp.errors import InputError

    known = names_of_commands()
    remedy = f"use some of {', '.join(known)}"
    names = tuple(dict.fromkeys(parameters.names(given, "commands")))
    if not names:
        raise InputError("names no command", parameter="commands", remedy=remedy)
    for name in names:
        if name not in known:
            near, shown = did_you_mean(name, known, remedy), parameters.shortened(name)
            raise InputError(f"{shown} is no command that compiles anything", parameter="commands", remedy=near)
    return names
