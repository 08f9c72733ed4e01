"""Stamps of kernels: the same wherever they stand, another one for whatever they do otherwise."""

from __future__ import annotations

import enum
import importlib
import math
import pkgutil
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import mtpp.solvers
from mtpp.solvers.kernel_stamp import NoStamp, kernel_stamp

BASE = '''
def callee(x):
    return x + STEP

def kernel(x, y=1):
    """Add."""
    return callee(x) + y * np.int64(2)
'''


class _Kernel:
    """What of numba's dispatcher a digest is made of."""

    def __init__(self, function: Any, **options: object) -> None:
        self.py_func = function
        self.targetoptions = options


def _stamp(source: str = BASE, *, file: str = "a.py", options: Any = None, **values: Any) -> str:
    names: dict[str, Any] = {"np": np, "STEP": 3, **values, "__name__": "mtpp.example"}
    exec(compile(source, file, "exec"), names)
    names["callee"] = _Kernel(names["callee"])
    return kernel_stamp(_Kernel(names["kernel"], **(options or {})))


@pytest.mark.parametrize(
    "source",
    [
        "\n\n\n" + BASE,
        BASE.replace('"""Add."""', '"""Say it otherwise."""'),
        BASE.replace("    return callee", "    # why\n    return callee"),
    ],
    ids=["lines", "docstring", "comment"],
)
def test_what_it_does_is_all_that_counts(source: str) -> None:
    """Neither the place nor what is said of a kernel changes its stamp."""
    assert _stamp(source, file="/elsewhere/b.py") == _stamp()


@pytest.mark.parametrize(
    ("source", "values"),
    [
        (BASE.replace("x + STEP", "x - STEP"), {}),
        (BASE.replace("y=1", "y=2"), {}),
        (BASE.replace("np.int64(2)", "np.int64(3)"), {}),
        (BASE.replace("np.int64(2)", "np.int32(2)"), {}),
        (BASE.replace("(x, y=1)", "(x, z=1)").replace("y *", "z *"), {}),
        (BASE, {"STEP": 4}),
        (BASE, {"STEP": 3.0}),
        (BASE, {"STEP": True}),
        (BASE, {"STEP": np.int64(3)}),
        (BASE, {"STEP": np.int32(3)}),
        (BASE, {"STEP": np.array([3])}),
        (BASE, {"STEP": (3,)}),
        (BASE, {"options": {"inline": "always"}}),
    ],
    ids=str,
)
def test_whatever_else_it_does_is_another_stamp(source: str, values: dict[str, Any]) -> None:
    """Callees, defaults, constants, types of constants, names of parameters and options all count."""
    assert _stamp(source, **values) != _stamp()


def test_fields_of_records_count() -> None:
    """A named tuple with other fields is another type to the kernel that makes it."""
    source = BASE.replace("x + STEP", "STEP(x, 1)[0]")
    made = {
        fields: _stamp(source, STEP=namedtuple("Pair", fields, module="mtpp.example"))
        for fields in ("a b", "b a", "a b c")
    }
    assert len(set(made.values())) == 3
    defaults = [
        _stamp(source, STEP=namedtuple("Pair", "a b", defaults=values, module="mtpp.example")) for values in ([1], [2])
    ]
    assert len({made["a b"], *defaults}) == 3


def test_fields_of_a_record_that_is_a_value_count() -> None:
    """What a kernel reads by name from a constant is another constant under another name."""
    pairs = [namedtuple("Pair", fields, module="mtpp.example")(1, 2) for fields in ("a b", "b a")]
    assert len({_stamp(BASE.replace("STEP", "STEP.a"), STEP=pair) for pair in pairs}) == 2


def test_functions_of_one_name_are_told_apart() -> None:
    """``floor`` returns a whole number in one library and a fraction in the other."""
    source = BASE.replace("x + STEP", "STEP(x)")
    assert len({_stamp(source, STEP=function) for function in (math.floor, np.floor, np.ceil, round)}) == 4


def test_kernels_may_call_themselves() -> None:
    """A digest ends where a kernel comes round to itself."""

    def digest(step: int) -> str:
        names: dict[str, Any] = {"__name__": "mtpp.example"}
        exec(f"def count(n):\n    return 0 if n <= 0 else 1 + count(n - {step})\n", names)
        names["count"] = _Kernel(names["count"])
        return kernel_stamp(names["count"])

    assert digest(1) == digest(1) != digest(2)


def test_kernels_that_call_each_other_have_none() -> None:
    """Wherever the circle is entered, and however far it is from the kernel."""
    names: dict[str, Any] = {"__name__": "mtpp.example"}
    exec(
        "def even(n):\n    return n == 0 or odd(n - 1)\ndef odd(n):\n    return n != 0 and even(n - 1)\n"
        "def outer(n):\n    return middle(n)\ndef middle(n):\n    return odd(n)\n",
        names,
    )
    for name in ("even", "odd", "outer", "middle"):
        names[name] = _Kernel(names[name])
    for name in ("even", "odd", "outer", "middle"):
        with pytest.raises(NoStamp):
            kernel_stamp(names[name])


def test_values_that_change_leave_none() -> None:
    """Whether machine code in this process has the value of before or of now cannot be told, neither of callers."""
    names: dict[str, Any] = {"STEP": 1, "__name__": "mtpp.example"}
    exec("def kernel(x):\n    return x + STEP\n\ndef outer(x):\n    return kernel(x)\n", names)
    kernel = names["kernel"] = _Kernel(names["kernel"])
    outer = _Kernel(names["outer"])
    before = kernel_stamp(kernel)
    names["STEP"] = 2
    for one in (kernel, outer):
        with pytest.raises(NoStamp, match="has changed"):
            kernel_stamp(one)
    names["STEP"] = 1
    assert kernel_stamp(kernel) == before != kernel_stamp(outer)


def test_two_kernels_of_one_name_leave_none() -> None:
    """The name of a callee is all that its caller says of it."""
    names: dict[str, Any] = {"__name__": "mtpp.example"}
    exec("def inner(x):\n    return x\n\ndef outer(x):\n    return one(x) - two(x)\n", names)
    names["one"] = _Kernel(names["inner"])
    exec("def inner(x):\n    return x + 1\n", names)
    names["two"] = _Kernel(names["inner"])
    with pytest.raises(NoStamp, match="two kernels"):
        kernel_stamp(_Kernel(names["outer"]))


@pytest.mark.parametrize(
    "value",
    [
        object(),
        enum.IntEnum("Kind", "A B"),
        type("Record", (tuple,), {}),
        np.dtype(np.int32),
        [3],
        {3: 4},
        np.zeros(1, dtype=[("a", np.int64)]),
        np.zeros(1, dtype=[("a", np.int64)])[0],
    ],
    ids=lambda value: type(value).__name__,
)
def test_unknown_values_have_no_stamp(value: object) -> None:
    """What might mean anything, or has values inside that are not looked at, is no reason to take old machine code."""
    with pytest.raises(NoStamp):
        _stamp(STEP=value)


def test_functions_inside_functions_have_none() -> None:
    """Neither a kernel that a function makes nor one that calls it can be told from others of the same name."""

    def make(step: int) -> Any:
        def local(x: int) -> int:
            return x + step

        return _Kernel(local)

    with pytest.raises(NoStamp):
        kernel_stamp(make(1))
    with pytest.raises(NoStamp):
        _stamp(BASE.replace("x + STEP", "STEP(x)"), STEP=make(1))


def test_every_kernel_has_one() -> None:
    """No kernel of the package reads a value that keeps it from being kept on disk."""
    kernels: dict[int, Any] = {}
    for module in pkgutil.walk_packages(mtpp.solvers.__path__, "mtpp.solvers."):
        for value in vars(importlib.import_module(module.name)).values():
            if hasattr(value, "py_func") and hasattr(value, "targetoptions"):
                kernels[id(value)] = value
    digests = {kernel_stamp(kernel) for kernel in kernels.values()}
    assert len(digests) == len(kernels) > 200
