"""Compilation of kernels, and machine code that is found again by what they do."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, typeof, types

from mtpp.solvers.compilation import watched_compilation
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.kernel_cache import CodeFiles, CodeName
from mtpp.solvers.kernel_stamp import NoStamp, signature_text

ROOT = Path(__file__).resolve().parents[2]

CALLEE = """
from mtpp.solvers.jit import subroutine

@subroutine
def step(x):
    return x + 1
"""
CALLER = """
from callee import step
from mtpp.solvers.jit import kernel

FACTOR = 10

@kernel
def scaled(x):
    return FACTOR * step(x)
"""
MADE = """
from mtpp.solvers.jit import kernel

@kernel
def first(x):
    return x

def inner_of(n):
    @kernel
    def inner(x, a):  # too long to become a part of what calls it
        total = 0
        for i in range(x):
            for j in range(x):
                if a[(i * n + j) % len(a)] > 3:
                    total += a[(j * n * n + i) % len(a)] * n + i
                elif a[(i + j * n) % len(a)] > 2:
                    total -= a[(j + n * i) % len(a)] // n + j * n
                else:
                    total ^= a[(i * i + n) % len(a)] % (n + i)
        return total * n
    return inner

def outer_of(n):
    inner = inner_of(n)
    @kernel
    def outer(x, a):
        total = inner(x, a)
        for i in range(x):
            total += inner(i, a) + inner(x - i, a) * 3 - inner(x + i, a)
        return total
    return outer
"""
PROGRAM = """
import sys
from mtpp.solvers.compilation import watched_compilation
import caller

said = []
with watched_compilation(lambda: said.append("compiled")):
    value = caller.scaled(4)
print(value, *said)
"""


def _call(folder: Path, cache: Path | None, program: str = PROGRAM, **settings: str) -> str:
    """Return what the program says that imports the modules of a folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1", **settings}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, capture_output=True, text=True, timeout=300
    )
    return done.stdout.strip()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Return a folder with a kernel and, in another file, one that it calls."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "callee.py").write_text(CALLEE)
    (folder / "caller.py").write_text(CALLER)
    return folder


def test_code_is_found_again_wherever_the_source_is(modules: Path, tmp_path: Path) -> None:
    """A later process compiles nothing, nor does one that finds the same source in another folder, on other lines."""
    cache = tmp_path / "cache"
    assert _call(modules, cache) == "50 compiled"
    assert _call(modules, cache) == "50"
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(modules, elsewhere)
    for path in elsewhere.glob("*.py"):
        path.write_text(f'"""Moved."""\n\n\n{path.read_text()}\n# the end\n')
    assert _call(elsewhere, cache) == "50"


@pytest.mark.slow
def test_an_edit_counts_in_whichever_file(modules: Path, tmp_path: Path) -> None:
    """A callee in another file, or a constant, that has changed is seen, although the kernel's own file has not."""
    cache = tmp_path / "cache"
    assert _call(modules, cache) == "50 compiled"
    times = (modules / "callee.py").stat()
    (modules / "callee.py").write_text(CALLEE.replace("x + 1", "x + 2"))
    os.utime(modules / "callee.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert _call(modules, cache) == "60 compiled"
    (modules / "caller.py").write_text(CALLER.replace("FACTOR = 10", "FACTOR = 20"))
    assert _call(modules, cache) == "120 compiled"
    (modules / "callee.py").write_text(CALLEE)
    (modules / "caller.py").write_text(CALLER)
    assert _call(modules, cache) == "50"


@pytest.mark.slow
def test_broken_files_are_made_anew(modules: Path, tmp_path: Path) -> None:
    """Machine code that was cut short on the disk, or is whole but none, is compiled again, and replaced."""
    cache = tmp_path / "cache"
    _call(modules, cache)
    whole = {path: path.read_bytes() for path in cache.glob("*.kernel")}
    for path, data in whole.items():
        path.write_bytes(data[:-100])
    assert _call(modules, cache) == "50 compiled"
    for content in (b"no code", pickle.dumps((pickle.dumps((("name", "object", (b"no code", b"")), None)), b""))):
        for path in whole:
            CodeFiles(cache).save(CodeName(*path.stem.split("-")), content)
        assert _call(modules, cache) == "50 compiled"
    assert _call(modules, cache) == "50"


@pytest.mark.slow
def test_folders_that_cannot_be_written_are_no_error(modules: Path, tmp_path: Path) -> None:
    """Where no folder takes the code it is compiled each time, without a word about it."""
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert _call(modules, tmp_path / "file" / "cache") == "50 compiled"


@pytest.mark.slow
def test_code_for_other_processors_and_settings_is_not_taken(modules: Path, tmp_path: Path) -> None:
    """What was compiled for this processor is not run on another, nor without the checks that were asked for."""
    cache = tmp_path / "cache"
    assert _call(modules, cache) == "50 compiled"
    assert _call(modules, cache, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == "50 compiled"
    assert _call(modules, cache, NUMBA_BOUNDSCHECK="1") == "50 compiled"
    assert _call(modules, cache) == "50"


@pytest.mark.slow
def test_kernels_that_call_kept_ones_are_compiled_with_them(modules: Path, tmp_path: Path) -> None:
    """A kernel that was loaded can still become a part of one that has to be compiled."""
    cache = tmp_path / "cache"
    _call(modules, cache)
    (modules / "outer.py").write_text(
        "from caller import scaled\nfrom mtpp.solvers.jit import kernel\n\n"
        "@kernel\ndef outer(x):\n    return scaled(x) + scaled(x + 1)\n"
    )
    program = "import caller, outer\nprint(caller.scaled(4), outer.outer(4))"
    for _ in range(2):
        assert _call(modules, cache, program) == "50 110"


@pytest.mark.slow
def test_kernels_that_functions_make_are_not_kept(modules: Path, tmp_path: Path) -> None:
    """All that one function makes has one name in machine code: what is at hand would be called in place of another."""
    cache = tmp_path / "cache"
    (modules / "made.py").write_text(MADE)
    begin = "import numpy as np, made; a = np.arange(10); "
    alone = _call(modules, cache, begin + "print(made.outer_of(2)(10, a))")
    due = _call(modules, None, begin + "print(made.outer_of(2)(10, a))", NUMBA_DISABLE_JIT="1")
    beside = begin + "made.first(1.0); made.inner_of(3)(10, a); print(made.outer_of(2)(10, a))"
    assert alone == due == _call(modules, cache, beside)
    assert [path.name.partition("-")[0] for path in cache.iterdir()] == ["made.first"]


@pytest.mark.slow
def test_kernels_that_call_each_other_are_compiled_each_time(modules: Path, tmp_path: Path) -> None:
    """Code of a circle of kernels cannot be loaded; that of one that calls itself can."""
    (modules / "circle.py").write_text(
        "from mtpp.solvers.jit import kernel\n\n@kernel\ndef odd(n):\n    return n != 0 and even(n - 1)\n\n"
        "@kernel\ndef even(n):\n    return n == 0 or odd(n - 1)\n\n"
        "@kernel\ndef fibonacci(n):\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n"
    )
    for _ in range(2):
        said = _call(modules, tmp_path / "cache", "import circle as c; print(c.even(7), c.odd(7), c.fibonacci(10))")
        assert said == "False True 55"
    assert [path.name.partition("-")[0] for path in (tmp_path / "cache").iterdir()] == ["circle.fibonacci"]


NAMESAKES = """
from typing import NamedTuple
from mtpp.solvers.jit import kernel, subroutine

class Pair(NamedTuple):
    FIELDS: int

@subroutine
def deep(x, pair):
    total = 0
    for i in range(x):
        for j in range(x):
            if (i * pair.a + j) % 7 > 3:
                total += pair.a * i - pair.b * j + (i ^ j) % (pair.b + 9)
            elif (i + j * pair.b) % 5 > 2:
                total -= pair.b // 3 + j * pair.a
            else:
                total ^= (i * i + pair.a) % (x + i + 1)
    return total

@kernel
def outer(x, pair):
    total = deep(x, pair)
    for i in range(x):
        total += deep(i, pair) + deep(x - i, pair) * 3 - deep(x + i, pair)
    return total
"""


@pytest.mark.slow
def test_code_of_two_processes_is_told_apart(modules: Path, tmp_path: Path) -> None:
    """Types of one name in two modules, compiled in a process each, keep their own code in a third."""
    for name, fields in (("first", "a: int\n    b: int"), ("second", "b: int\n    a: int")):
        text = NAMESAKES.replace("FIELDS: int", fields)
        if name == "second":
            text = text.replace(text[text.index("@subroutine") :], "from first import outer\n")
        (modules / f"{name}.py").write_text(text)
    calls = [
        f"import {name}; print({name}.outer(9, {name}.Pair(a=5, b=2)), flush=True)" for name in ("first", "second")
    ]
    due = [_call(modules, None, call, NUMBA_DISABLE_JIT="1") for call in calls]
    assert [_call(modules, tmp_path / "cache", call) for call in calls] == due
    assert _call(modules, tmp_path / "cache", "\n".join(calls)).split() == due


@pytest.mark.slow
def test_compiling_leaves_numba_as_it_is(modules: Path, tmp_path: Path) -> None:
    """Others in the same process still have numba's functions of linear algebra, by BLAS, once they use them."""
    program = (
        "import sys, caller, numba, numpy as np\n"
        "caller.scaled(4)\nfrom numba.np import arraymath, linalg\n"
        "print('scipy.linalg' in sys.modules, arraymath._HAVE_BLAS, linalg.ensure_blas.__name__)\n"
        "print(numba.njit(lambda a: np.dot(a, a).sum())(2 * np.eye(3)))\n"
    )
    assert _call(modules, tmp_path / "cache", program).split() == ["False", "True", "ensure_blas", "12.0"]


def test_without_compilation_kernels_are_functions(modules: Path) -> None:
    """Numba's switch for debugging leaves plain Python."""
    program = "import caller\nprint(caller.scaled(4), type(caller.scaled).__name__)"
    assert _call(modules, None, program, NUMBA_DISABLE_JIT="1") == "50 function"


def test_subroutines_are_for_kernels() -> None:
    """A subroutine is compiled once for all whole numbers that kernels call it with, and refuses calls from Python."""
    never_before = time.time_ns() // 1000

    @subroutine
    def moved(x: Any) -> Any:
        return x + never_before

    @kernel
    def sums(small: Any, large: Any) -> Any:
        total = moved(1) + moved(large[0])
        for i in range(len(small)):
            total += moved(small[i]) + moved(i)
        return total

    due = 1 + 5 + 1 + 2 + 0 + 1 + 6 * never_before
    assert sums(np.array([1, 2], dtype=np.int32), np.array([5], dtype=np.int64)) == due
    assert len(moved.signatures) == 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="for other kernels to call"):
        moved(1)


@subroutine
def _arithmetic(x: Any, y: Any, items: Any) -> Any:
    ends = min(x, y) - max(x, y) * 3 + abs(x) + (x // 7) - (y % 5) - (~x) + (x << 30) + (y >> 2)
    return ends + items[x % len(items)] + (1 if x < y else 2) + (x & 6) - (y | 9)


@kernel
def _of_all(small: Any, large: Any, items: Any, found: Any) -> None:
    for i in range(len(small)):
        for j in range(len(large)):
            found[i, j] = _arithmetic(small[i], large[j], items)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
def test_subroutines_compute_with_narrow_numbers_as_python_does(kind: Any) -> None:
    """What a kernel computes from narrow whole numbers, their extremes included, is what Python computes."""
    ends = np.iinfo(kind)
    small = np.array([ends.min, ends.min + 1, -3, -1, 0, 1, 2, 100, ends.max - 1, ends.max], dtype=kind)
    items = np.arange(10, 17)
    found = np.zeros((len(small), len(small)), dtype=np.int64)
    _of_all(small, small[::-1].copy(), items, found)
    whole, turned = small.tolist(), small[::-1].tolist()
    due = [[_arithmetic.py_func(x, y, items.tolist()) for y in turned] for x in whole]  # type: ignore[attr-defined]
    assert found.tolist() == due


def test_compilation_is_told_once() -> None:
    """Whoever watches hears of the first kernel that is compiled meanwhile, and of none that is at hand."""
    never_before = time.time()

    @kernel
    def fresh(x: Any) -> Any:
        return x - never_before

    said: list[str] = []
    with watched_compilation(lambda: said.append("compiling")):
        fresh(3)
        fresh(3.0)
    with watched_compilation(lambda: said.append("again")):
        fresh(4)
    assert said == ["compiling"]


class Ends(NamedTuple):
    """Two numbers."""

    first: int
    last: int


def _other_ends() -> Any:
    class Ends(NamedTuple):
        last: int
        first: int

    return Ends(1, 2)


def test_each_type_has_its_own() -> None:
    """Types that machine code differs for differ as text, those that numba calls by one name included."""
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    kinds = [
        *map(typeof, (1, 1.0, True, None, np.int32(1), np.uint64(1), (1, 2), (1, 2.0), Ends(1, 2), _other_ends())),
        *map(typeof, (np.zeros(3), np.zeros(3, dtype=np.int32), np.zeros((3, 3)), np.zeros((3, 3)).T, read_only)),
        *map(typeof, (np.zeros(6)[::2], Ends(np.zeros(3), 2), Ends(np.zeros((3, 3)), 2), (Ends(1, 2), 3))),
        *(types.literal(value) for value in (0, 1, True, False)),
        types.Optional(types.int64),
        types.Optional(typeof(Ends(1, 2))),
        types.Optional(typeof(_other_ends())),
        types.Omitted(1),
        types.Omitted(2),
        types.Omitted(1.0),
        types.Omitted(True),
    ]
    assert len({signature_text([kind]) for kind in kinds}) == len(kinds)
    assert len({signature_text([kinds[0], kind]) for kind in kinds}) == len(kinds)


def test_it_is_the_same_each_time() -> None:
    """The text of a signature holds nothing of the process that asks for it."""
    values = (1, np.zeros(3), Ends(np.zeros(3), 2), None)
    first, second = (signature_text(map(typeof, values)) for _ in range(2))
    assert first == second
    assert "0x" not in first


def test_types_that_text_does_not_tell_have_none() -> None:
    """A function is named by where it lies in memory, where another may lie the next time."""
    function = njit(lambda x: x)
    kind = typeof(function)
    kinds = (
        kind,
        types.Tuple([types.int64, kind]),
        types.Optional(kind),
        types.List(types.int64),
        types.Omitted(function),
    )
    for kind in kinds:
        with pytest.raises(NoStamp):
            signature_text([types.int64, kind])
